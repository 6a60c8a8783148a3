"""Pausing and cancelling as an operator does it, against real daemons at work (D10, S2 §5.9)."""

from pathlib import Path

from ingest.db import Database
from simulator.server import Simulator
from tests.flow.processes import all_tasks_ended, crew, rows, scalar, wait_until
from tests.flow.sources import PLAIN, apply_source, ingest


def test_a_cancelled_run_stores_no_further_page_and_the_executor_goes_on(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    with Simulator(sizes={"plain": 600}) as simulator, crew(database_url, tmp_path) as daemons:
        slow = PLAIN.format(url=simulator.url, term="x", columns="{title: text}").replace("1000/1s", "4/1s")
        apply_source(database_url, slow, folder=tmp_path)
        daemons.planner()
        executor = daemons.executor()
        wait_until(lambda: scalar(database, "SELECT max(pages_done) FROM ing_task") or 0, "a page")
        run = scalar(database, "SELECT max(id) FROM ing_task_run")
        done = ingest(database_url, "cancel", "run", str(run), "--reason", "wrong term", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        pages = scalar(database, "SELECT count(*) FROM ing_task_run_batch WHERE run_id = :run", run=run)
        again = ingest(database_url, "run", "plain.items", "--wait", folder=tmp_path)
        assert again.returncode == 0, again.stderr
        assert all_tasks_ended(database)
        assert scalar(database, "SELECT count(*) FROM ing_task_run_batch WHERE run_id = :run", run=run) == pages
        assert rows(database, "SELECT status_code FROM ing_task ORDER BY id") == [("CANCELLED",), ("SUCCEEDED",)]
        assert scalar(database, "SELECT count(*) FROM data.plain_items") == 600
        assert executor.stop() == 0


def test_pause_and_resume_from_the_command_line(database_url: str, tmp_path: Path) -> None:
    apply_source(
        database_url, PLAIN.format(url="http://127.0.0.1:9", term="x", columns="{title: text}"), folder=tmp_path
    )
    assert ingest(database_url, "pause", "plain", folder=tmp_path).returncode == 2  # a reason is missing
    done = ingest(database_url, "pause", "plain", "--reason", "upgrade", "--until", "2h", folder=tmp_path)
    assert (done.returncode, "paused: plain" in done.stdout) == (0, True)
    assert ingest(database_url, "run", "plain.items", folder=tmp_path).returncode == 6
    assert "upgrade" in ingest(database_url, "pause", folder=tmp_path).stdout
    assert ingest(database_url, "resume", "--all", folder=tmp_path).returncode == 0
    assert ingest(database_url, "resume", "plain", folder=tmp_path).returncode == 4
    assert ingest(database_url, "cancel", "task", "7", folder=tmp_path).returncode == 4
    assert ingest(database_url, "cancel", "window", "7", folder=tmp_path).returncode == 2
