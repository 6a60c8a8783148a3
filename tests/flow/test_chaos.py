"""Two planners and three executors, each killed at random while 50,000 records are harvested: nothing is lost."""

import random
import signal
import threading
import time
from pathlib import Path

import pytest

from ingest.db import Database
from ingest.states import Operation
from ingest.store.schedules import request_run
from simulator.server import Simulator
from tests.flow.processes import Crew, Daemon, all_tasks_ended, crew, rows, scalar, wait_until
from tests.flow.sources import CROSSREF, apply_source
from tests.flow.truth import assert_ledger_sound, assert_same

_RECORDS, _KILLS = 50_000, 14


def _harvested(database: Database) -> bool:
    planned = scalar(database, "SELECT count(*) FROM ing_plan WHERE status_code = 'READY'")
    return bool(planned) and all_tasks_ended(database)


@pytest.mark.slow
@pytest.mark.timeout(420)
def test_two_planners_and_three_executors_killed_at_random_lose_nothing(database: Database, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    chance = random.Random(seed)
    with Simulator(sizes={"crossref": _RECORDS}, warm=True) as simulator, crew(database.url, tmp_path) as team:
        apply_source(database.url, CROSSREF.format(url=simulator.url, size=200, days=2), folder=tmp_path)
        daemons = [_start(team, kind) for kind in ("planner", "planner", "executor", "executor", "executor")]
        kills = 0
        pause = threading.Event()
        deadline = time.monotonic() + 240
        while not _harvested(database) and time.monotonic() < deadline:
            pause.wait(chance.uniform(0.2, 1.2))
            if kills < _KILLS and scalar(database, "SELECT count(*) FROM ing_task_run_batch"):
                number = chance.randrange(len(daemons))
                kind = "planner" if number < 2 else "executor"
                daemons[number].kill()
                daemons[number] = _start(team, kind)
                kills += 1
        assert _harvested(database), f"not done in time (seed {seed})"
        # failed windows stay gaps: the next fire plans them again; here every task that ended must have covered
        _settle(database)
        assert kills >= 5, f"too few kills to mean anything: {kills} (seed {seed})"
        assert_same(database, simulator, "crossref", "crossref_works")
        assert_ledger_sound(database)
        ((covered,),) = rows(database, "SELECT covered @> tstzrange('2024-01-01', '2024-03-02') FROM ing_coverage")
        assert covered, f"a window is missing from coverage (seed {seed})"
        expired = scalar(database, "SELECT count(*) FROM ing_task_run WHERE error = 'lease expired'")
        assert expired >= 1, f"no lease was ever lost (seed {seed})"
        for daemon in daemons:
            daemon.signal(signal.SIGTERM)


def _start(team: Crew, kind: str) -> Daemon:
    return team.planner() if kind == "planner" else team.executor(workers=2)


def _settle(database: Database) -> None:
    """Parked or failed windows are planned again by a fire of their own, as the schedule would in an hour."""
    for _ in range(3):
        if not scalar(database, "SELECT count(*) FROM ing_task WHERE status_code <> 'SUCCEEDED'"):
            break
        with database.transaction() as conn:
            request_run(
                conn,
                source="crossref",
                endpoint="works",
                operation=Operation.HARVEST,
                request_id=str(time.time()),
                params={},
            )
        wait_until(
            lambda: not scalar(database, "SELECT count(*) FROM ing_schedule_instance WHERE result_code = 'FIRED'"),
            "a plan",
        )
        wait_until(lambda: all_tasks_ended(database), "the gaps to be filled")
    # the cursor's second transaction may have died with its process: the planner's rescue recomputes it
    behind = """SELECT count(*) FROM ing_series s JOIN ing_coverage c ON c.series_id = s.id
                 CROSS JOIN LATERAL unnest(c.covered) r LEFT JOIN ing_cursor k ON k.series_id = s.id
                 WHERE r @> s.anchor AND k.normalized_instant IS DISTINCT FROM upper(r)"""
    wait_until(lambda: not scalar(database, behind), "the cursor to catch up")
    wait_until(
        lambda: not scalar(database, "SELECT count(*) FROM ing_task_run WHERE status_code = 'RUNNING'"), "runs to close"
    )
