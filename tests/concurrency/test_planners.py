"""Several planners: a schedule fires once, and no gap is planned twice (D1, DESIGN §4)."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from sqlalchemy import text

from ingest.db import Database
from ingest.settings import Settings
from ingest.spec.snapshot import Snapshot
from ingest.states import Operation, SlicePurpose
from ingest.store.plans import Derivation, derive_tasks
from planner.slicing import make_slice
from tests.factories import make_planner, make_snapshot, make_table, queue_tasks, request_run
from tests.flow.processes import wait_until

_PLANNERS = 4
_OVERLAPS = text("""
    SELECT a.id, b.id FROM ing_plan_slice a JOIN ing_plan_slice b
        ON a.series_id = b.series_id AND a.id < b.id AND a.span && b.span AND a.open AND b.open
""")


def _at_once(database: Database, settings: Settings, snapshot: Snapshot) -> None:
    crowd = Database(database.url, pool_size=_PLANNERS)
    planners = [make_planner(crowd, settings, snapshot) for _ in range(_PLANNERS)]
    barrier = threading.Barrier(_PLANNERS)

    def tick(number: int) -> None:
        barrier.wait()
        assert planners[number].tick().problems == []

    with ThreadPoolExecutor(_PLANNERS) as pool:
        list(pool.map(tick, range(_PLANNERS)))
    crowd.close()


def test_a_schedule_fires_exactly_once_with_any_number_of_planners(database: Database, settings: Settings) -> None:
    with database.transaction() as conn:
        conn.execute(
            text("""
            INSERT INTO reg_schedule (schedule_code, provenance_code, endpoint_name, operation_code, kind, every_s)
            VALUES ('plain.items', 'plain', 'items', 'HARVEST', 'every', 3600)""")
        )
    snapshot = make_snapshot()
    make_table(database, snapshot)
    _at_once(database, settings, snapshot)
    with database.transaction() as conn:
        assert conn.execute(text("SELECT result_code FROM ing_schedule_instance")).scalars().all() == ["PLANNED"]
        assert conn.execute(text("SELECT count(*) FROM ing_plan")).scalar_one() == 1


def test_two_planners_never_plan_one_gap_twice(database: Database, settings: Settings) -> None:
    snapshot = make_snapshot()
    make_table(database, snapshot)
    for _ in range(_PLANNERS):  # as many fires as planners, all wanting the same gaps
        request_run(database, snapshot)
    _at_once(database, settings, snapshot)
    with database.transaction() as conn:
        assert conn.execute(_OVERLAPS).all() == []
        tasks, slices, windows = conn.execute(
            text("""
            SELECT (SELECT count(*) FROM ing_task), (SELECT count(*) FROM ing_plan_slice WHERE open),
                   (SELECT count(DISTINCT span) FROM ing_plan_slice)""")
        ).one()
        fires = conn.execute(text("SELECT result_code, count(*) FROM ing_schedule_instance GROUP BY 1")).all()
    assert tasks == slices == windows > 1000  # a window a day since 2024
    assert {row[0] for row in fires} <= {"PLANNED", "NOTHING"}
    assert sum(row[1] for row in fires) == _PLANNERS


def test_a_gap_opened_by_another_planner_is_simply_not_ours(database: Database, settings: Settings) -> None:
    """The constraint itself, with both planners past their reading of the gaps."""
    snapshot = make_snapshot()
    queue_tasks(database, settings, snapshot)
    with database.transaction() as conn:
        conn.execute(text("UPDATE ing_plan_slice SET open = false"))
        series_id, lane_id = conn.execute(text("SELECT series_id, lane_id FROM ing_task LIMIT 1")).one()
    start = datetime(2024, 1, 1, tzinfo=UTC)
    inserted = threading.Event()

    def derive(plan: int, trigger: str, days: float, *, before_commit: threading.Event | None) -> int:
        with database.transaction() as conn:
            shared = Derivation(
                plan_id=plan, schedule_instance_id=plan, series_id=series_id, lane_id=lane_id, provenance_code="plain",
                endpoint_name="items", operation_code="HARVEST", credential_code="", priority=100,
                spec_fingerprint=snapshot.spec_fingerprint, purpose=SlicePurpose.FILL,
            )  # fmt: skip
            span = (start, start + timedelta(days=days))
            one = make_slice(snapshot, Operation.HARVEST, span, slice_no=1, trigger=trigger, purpose=SlicePurpose.FILL)
            queued = derive_tasks(conn, shared, [one])
            if before_commit is not None:
                before_commit.set()
                # the rival is waiting for us inside its INSERT when it shows up in pg_locks
                waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
                with database.transaction() as look:
                    wait_until(lambda: look.execute(waiting).scalar_one(), "the rival to wait")
            return queued

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(derive, 101, "a", 2, before_commit=inserted)
        inserted.wait(10)
        second = pool.submit(derive, 102, "b", 5, before_commit=None)
        assert (first.result(), second.result()) == (1, 0)
