"""The seeds' acceptance lists, one test each: S2 §5.10 (two pipelines) and §9.9 (task, run, batch), as far as built.

§5.10-3's BACKFILL and UPDATE namespaces come with those operations; §9.9's scaling figure is measured in benchmarks/.
"""

from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pytest

from executor.request import RequestBuilder
from ingest.db import Database
from ingest.settings import Settings
from ingest.spec.snapshot import Snapshot
from ingest.spec.windows import render_window
from ingest.store.specs import get_spec
from simulator.server import Simulator
from tests.factories import crossref_snapshot, make_planner, plain_snapshot, queue_tasks
from tests.flow.processes import Crew, all_tasks_ended, crew, rows, scalar, wait_until
from tests.flow.sources import PLAIN, apply_source, ingest
from tests.flow.truth import assert_ledger_sound, assert_same


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(sizes={"plain": 800, "crossref": 1500}) as it:
        yield it


@pytest.fixture
def team(database: Database, tmp_path: Path) -> Iterator[Crew]:
    with crew(database.url, tmp_path) as it:
        yield it


def _harvest(database: Database, settings: Settings, team: Crew, snapshot: Snapshot, workers: int = 2) -> None:
    queue_tasks(database, settings, snapshot)
    team.executor(workers=workers)
    wait_until(lambda: all_tasks_ended(database), "every task to end")


def test_5_10_1_a_fire_planned_twice_makes_no_task_twice(database: Database, settings: Settings) -> None:
    snapshot = plain_snapshot("http://127.0.0.1:9", max_days=30)
    queue_tasks(database, settings, snapshot)
    before = rows(database, "SELECT id, idempotent_key FROM ing_task ORDER BY id")
    # a planner that died after writing the tasks but before finishing the fire would leave exactly this
    with database.transaction() as conn:
        conn.exec_driver_sql("UPDATE ing_schedule_instance SET result_code = 'FIRED'")
        conn.exec_driver_sql("UPDATE ing_plan_slice SET open = false")
    make_planner(database, settings, snapshot).tick()
    after = rows(database, "SELECT id, idempotent_key FROM ing_task ORDER BY id")
    assert after == before or [row for row in after if row not in before] == after[len(before) :]
    keys = [key for _, key in after]
    assert len(keys) == len(set(keys))
    assert scalar(database, "SELECT count(*) FROM ing_plan_slice WHERE open") == len(after) - len(before)


def test_5_10_2_batches_are_idempotent_and_throttles_slow_the_executor_down(
    database: Database, settings: Settings, team: Crew, simulator: Simulator
) -> None:
    simulator.add_fault("plain", "429", every=5, times=4)
    simulator.add_fault("plain", "disconnect", every=7, times=2)
    _harvest(database, settings, team, plain_snapshot(simulator.url, size=40, max_days=5000), workers=1)
    assert_same(database, simulator, "plain", "plain_items")
    assert_ledger_sound(database)
    assert scalar(database, "SELECT sum((stats ->> '429Count')::int) FROM ing_task_run_batch") == 4
    assert scalar(database, "SELECT (state ->> 'factor')::float FROM ing_rate_key") < 1.0


def test_5_10_3_the_cursor_moves_after_its_event_and_only_forward(
    database: Database, settings: Settings, team: Crew, simulator: Simulator
) -> None:
    _harvest(database, settings, team, plain_snapshot(simulator.url, max_days=20))
    ((scope, event_at, cursor_at),) = rows(
        database,
        """SELECT k.namespace_scope_code, e.created_at, k.updated_at FROM ing_cursor k
             JOIN ing_cursor_event e ON e.batch_id = k.batch_id AND e.kind = 'WINDOW'""",
    )
    assert scope == "EXPR"
    assert event_at <= cursor_at
    assert_ledger_sound(database)


def test_5_10_4_every_batch_can_be_rebuilt_to_the_byte_from_what_is_stored(
    database: Database, settings: Settings, team: Crew, simulator: Simulator
) -> None:
    simulator.add_fault("crossref", "404", after=2)
    _harvest(database, settings, team, crossref_snapshot(simulator.url, size=100, max_days=5000), workers=1)
    stored = rows(
        database,
        """SELECT b.spec_fingerprint, b.before_token, b.request_digest ->> 'hash', t.params, b.status_code
             FROM ing_task_run_batch b JOIN ing_task t ON t.id = b.task_id ORDER BY b.id""",
    )
    assert {status for *_, status in stored} == {"SUCCEEDED", "FAILED"}
    with database.transaction() as conn:
        snapshot = get_spec(conn, stored[0][0])
    builder = RequestBuilder(snapshot)
    for _, token, request_hash, params, _ in stored:
        window = render_window(
            snapshot.window, datetime.fromisoformat(params["from"]), datetime.fromisoformat(params["to"])
        )
        page = {"size": snapshot.pagination.size, "token": token, "number": None, "offset": None, "url": None}
        assert builder.build(window, page).digest()["hash"] == request_hash


def test_5_10_5_planner_and_executor_live_and_die_apart(
    database: Database, team: Crew, simulator: Simulator, tmp_path: Path
) -> None:
    apply_source(database.url, PLAIN.format(url=simulator.url, term="all", columns="{title: $.title}"), folder=tmp_path)
    planner = team.planner()
    wait_until(lambda: scalar(database, "SELECT count(*) FROM ing_task"), "tasks, with no executor alive")
    assert planner.stop() == 0
    executor = team.executor()
    wait_until(lambda: all_tasks_ended(database), "the harvest, with no planner alive")
    assert_same(database, simulator, "plain", "plain_items")
    assert executor.stop() == 0
    # asked for while nobody is alive, done when they are
    assert ingest(database.url, "run", "plain.items", folder=tmp_path).returncode == 0
    team.planner()
    wait_until(
        lambda: not scalar(database, "SELECT count(*) FROM ing_schedule_instance WHERE result_code = 'FIRED'"), "a plan"
    )


def test_9_9_neighbouring_windows_neither_repeat_nor_miss_a_record(
    database: Database, settings: Settings, team: Crew, simulator: Simulator
) -> None:
    """Records sit exactly on midnights; inclusive days at the source, half-open windows inside."""
    _harvest(database, settings, team, crossref_snapshot(simulator.url, max_days=1))
    assert_same(database, simulator, "crossref", "crossref_works")
    spans = rows(database, "SELECT lower(span), upper(span) FROM ing_plan_slice ORDER BY 1")
    assert all(before[1] == after[0] for before, after in pairwise(spans))
    fetched = scalar(database, "SELECT sum((stats ->> 'itemsCount')::int) FROM ing_task_run_batch")
    assert fetched == simulator.truth("crossref")["count"]  # not one record came twice


def test_9_9_at_least_95_percent_of_retried_requests_end_well(
    database: Database, settings: Settings, team: Crew, simulator: Simulator
) -> None:
    simulator.add_fault("plain", "503", probability=0.2, times=1000)
    simulator.add_fault("plain", "429", probability=0.1, times=1000)
    _harvest(database, settings, team, plain_snapshot(simulator.url, size=10, max_days=5000), workers=1)
    ((well, total),) = rows(
        database,
        """SELECT count(*) FILTER (WHERE status_code = 'SUCCEEDED'), count(*) FROM ing_task_run_batch
            WHERE (stats ->> 'retryCount')::int > 0""",
    )
    assert total >= 10
    assert well / total >= 0.95


def test_9_9_a_restart_resumes_within_one_batch(
    database: Database, settings: Settings, team: Crew, simulator: Simulator
) -> None:
    simulator.add_fault("plain", "slow", every=1, delay_s=0.05)
    queue_tasks(database, settings, plain_snapshot(simulator.url, size=40, max_days=5000))
    executor = team.executor()
    wait_until(lambda: (scalar(database, "SELECT pages_done FROM ing_task") or 0) >= 4, "four pages")
    executor.kill()
    done = scalar(database, "SELECT pages_done FROM ing_task")
    team.executor()
    wait_until(lambda: all_tasks_ended(database), "the rest")
    first = "SELECT min(task_page_no) FROM ing_task_run_batch WHERE run_id = (SELECT max(id) FROM ing_task_run)"
    assert scalar(database, first) == done + 1
    assert_same(database, simulator, "plain", "plain_items")
