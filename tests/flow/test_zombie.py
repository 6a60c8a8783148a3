"""A zombie, stopped past its lease and woken again, writes nothing (E1, DESIGN rule 3)."""

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from ingest.db import Database
from ingest.settings import Settings
from ingest.store.leases import take_back_expired
from ingest.store.pages import write_page
from ingest.store.rows import DatasetWriter
from simulator.server import Simulator
from tests.factories import TTL, lease_all, make_page, make_record, make_snapshot, plain_snapshot, queue_tasks, start
from tests.flow.processes import all_tasks_ended, crew, rows, scalar, wait_until

_ROOT = Path(__file__).parents[2]


def _outcome_of_a_frozen_writer(database: Database, settings: Settings, kind: str) -> str:
    """Freeze a worker inside its page, let another take the task over, wake it; return what it says it did."""
    snapshot = make_snapshot()
    queue_tasks(database, settings, snapshot)
    command = [sys.executable, "-m", "tests.flow.zombie_driver", database.url, kind]
    zombie = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT)
    try:
        assert zombie.stdout is not None
        assert zombie.stdout.readline() == "inside\n"
        os.waitid(os.P_PID, zombie.pid, os.WSTOPPED | os.WNOWAIT)

        def taken_back() -> bool:
            with database.transaction() as conn:
                return bool(take_back_expired(conn, poison=9, stall=timedelta(days=1)))

        wait_until(taken_back, "the zombie's task to be taken back")
        (lease,) = lease_all(database, owner="rightful")
        run = start(database, lease)
        zombie.send_signal(signal.SIGCONT)
        said = zombie.stdout.readline().strip()
        zombie.wait(30)
    finally:
        zombie.kill()
        zombie.wait()
        assert zombie.stdout is not None
        zombie.stdout.close()
    if said != "committed":
        with database.transaction() as conn:
            page = make_page([make_record("z", 10, "rightful")])
            write_page(conn, lease, run, page, DatasetWriter(snapshot), task_page=1, ttl=TTL)
    return said


def test_a_worker_frozen_inside_its_page_writes_nothing(database: Database, settings: Settings) -> None:
    said = _outcome_of_a_frozen_writer(database, settings, "real")
    assert said.startswith(("lease lost", "refused"))
    assert rows(database, "SELECT title FROM data.plain_items") == [("rightful",)]
    owners = "SELECT r.lease_owner FROM ing_task_run_batch b JOIN ing_task_run r ON r.id = b.run_id"
    assert rows(database, owners) == [("rightful",)]


def test_that_test_fails_when_the_fence_is_a_plain_select(database: Database, settings: Settings) -> None:
    """The mutant: a SELECT sees the lease, holds nothing, and lets the zombie write after it was replaced."""
    said = _outcome_of_a_frozen_writer(database, settings, "mutant")
    assert said == "committed"
    assert rows(database, "SELECT title FROM data.plain_items") == [("zombie",)]


@pytest.mark.slow
def test_an_executor_stopped_past_its_lease_writes_nothing_when_it_wakes(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    with Simulator(sizes={"plain": 3000}) as simulator, crew(database.url, tmp_path) as team:
        simulator.add_fault("plain", "slow", every=1, delay_s=0.03)
        queue_tasks(database, settings, plain_snapshot(simulator.url, size=30, max_days=5000))
        zombie = team.executor()
        wait_until(lambda: (scalar(database, "SELECT max(pages_done) FROM ing_task") or 0) >= 3, "three pages")
        zombie.signal(signal.SIGSTOP)
        team.executor()
        wait_until(lambda: all_tasks_ended(database), "the other executor to finish the task")
        before = rows(database, "SELECT id FROM ing_task_run_batch ORDER BY id")
        zombie.signal(signal.SIGCONT)
        wait_until(lambda: zombie.events("lease lost"), "the zombie to notice")
        assert rows(database, "SELECT id FROM ing_task_run_batch ORDER BY id") == before
        assert scalar(database, "SELECT count(*) FROM data.plain_items") == simulator.truth("plain")["count"]
        ended = rows(database, "SELECT status_code, error FROM ing_task_run ORDER BY id")
        assert ended == [("FAILED", "lease expired"), ("SUCCEEDED", None)]
        pages = rows(database, "SELECT task_page_no FROM ing_task_run_batch ORDER BY 1")
        assert [page for (page,) in pages] == list(range(1, len(pages) + 1))
