"""Planning: fires become plans, bounded by stock, continued when it falls (D1, D6, D10, G1, G2, G7)."""

from datetime import timedelta
from itertools import pairwise
from typing import Any

from sqlalchemy import text

from ingest.db import Database
from ingest.settings import Settings
from ingest.spec.snapshot import Budget, Window
from tests.factories import lease_all, make_planner, make_snapshot, make_table, queue_tasks, request_run


def _rows(database: Database, statement: str, **values: object) -> list[Any]:
    with database.transaction() as conn:
        return [tuple(row) for row in conn.execute(text(statement), values)]


def _run_sql(database: Database, statement: str) -> None:
    with database.transaction() as conn:
        conn.execute(text(statement))


def _schedule(database: Database, **columns: str) -> None:
    values = {"kind": "'every'", "every_s": "3600"} | columns
    _run_sql(
        database,
        f"""INSERT INTO reg_schedule (schedule_code, provenance_code, endpoint_name, operation_code,
                                      {", ".join(values)})
            VALUES ('plain.items', 'plain', 'items', 'HARVEST', {", ".join(values.values())})""",
    )


def test_a_plan_stops_at_the_stock_limit_and_goes_on_when_stock_falls(database: Database, settings: Settings) -> None:
    snapshot = make_snapshot(budget=Budget(concurrency=4, inventory=10))
    queue_tasks(database, settings, snapshot)
    assert _rows(database, "SELECT status_code, count(*) FROM ing_task GROUP BY 1") == [("QUEUED", 10)]
    assert _rows(database, "SELECT status_code FROM ing_plan") == [("PARTIAL",)]
    lease_all(database, limit=4)
    planner = make_planner(database, settings, snapshot)
    assert planner.tick().continued == 4
    assert planner.tick().continued == 0
    assert _rows(database, "SELECT count(*) FROM ing_task WHERE status_code = 'QUEUED'") == [(10,)]
    spans = _rows(database, "SELECT lower(span), upper(span) FROM ing_plan_slice ORDER BY slice_no")
    assert all(before[1] == after[0] for before, after in pairwise(spans))


def test_a_plan_that_derived_everything_is_ready(database: Database, settings: Settings) -> None:
    snapshot = make_snapshot(
        window=Window(filter="server", field="u", start=make_snapshot().window.start, max_s=86400.0 * 5000)
    )
    queue_tasks(database, settings, snapshot)
    ((status, remarks),) = _rows(database, "SELECT status_code, record_remarks FROM ing_plan")
    assert (status, remarks["sliceCount"]) == ("READY", 1)


def test_no_window_passes_the_safety_lag(database: Database, settings: Settings) -> None:
    queue_tasks(database, settings, make_snapshot())
    ((late,),) = _rows(database, "SELECT max(upper(span)) <= now() - interval '10 minutes' FROM ing_plan_slice")
    assert late


def test_a_fire_with_nothing_missing_says_so_and_makes_no_plan(database: Database, settings: Settings) -> None:
    snapshot = make_snapshot()
    queue_tasks(database, settings, snapshot)
    request_run(database, snapshot)
    make_planner(database, settings, snapshot).tick()
    results = _rows(database, "SELECT result_code, record_remarks FROM ing_schedule_instance ORDER BY id")
    assert results[0][0] == "PLANNED"
    assert _rows(database, "SELECT count(*) FROM ing_plan") in ([(1,)], [(2,)])  # the microseconds since may be a plan


def test_a_walk_has_at_most_one_open_slice(database: Database, settings: Settings) -> None:
    snapshot = make_snapshot(window=Window(filter="none"))
    queue_tasks(database, settings, snapshot)
    request_run(database, snapshot)
    make_planner(database, settings, snapshot).tick()
    assert _rows(database, "SELECT result_code FROM ing_schedule_instance ORDER BY id") == [("PLANNED",), ("NOTHING",)]
    assert _rows(database, "SELECT purpose, count(*) FROM ing_plan_slice GROUP BY 1") == [("WALK", 1)]


def test_a_walk_that_found_no_room_is_walked_when_there_is_some_although_covered_before(
    database: Database, settings: Settings
) -> None:
    queue_tasks(database, settings, make_snapshot(budget=Budget(inventory=1)))  # fills the lane
    walk = make_snapshot(window=Window(filter="none"), budget=Budget(inventory=1))
    queue_tasks(database, settings, walk)
    _run_sql(
        database,
        """INSERT INTO ing_coverage (series_id, covered)
           SELECT id, tstzmultirange(tstzrange(anchor, now())) FROM ing_series ORDER BY id DESC LIMIT 1""",
    )
    _run_sql(database, "UPDATE ing_task SET status_code = 'CANCELLED'")
    _run_sql(database, "UPDATE ing_plan SET status_code = 'CANCELLED' WHERE plan_strategy = 'TIME'")
    assert make_planner(database, settings, walk).tick().continued == 1
    assert _rows(database, "SELECT count(*) FROM ing_plan_slice WHERE purpose = 'WALK'") == [(1,)]


def test_a_new_schedule_fires_at_once_then_on_its_grid_without_drift(database: Database, settings: Settings) -> None:
    snapshot = make_snapshot()
    make_table(database, snapshot)
    _schedule(database)
    planner = make_planner(database, settings, snapshot)
    assert planner.tick().fired == 1
    assert planner.tick().fired == 0
    # a planner that was away for two and a half intervals: nothing is made up, it is said, and the grid is kept (G2)
    _run_sql(database, "UPDATE ing_schedule_state SET next_fire_at = next_fire_at - interval '3 hours 30 minutes'")
    ((before,),) = _rows(database, "SELECT next_fire_at FROM ing_schedule_state")
    assert planner.tick().fired == 0
    ((skipped,),) = _rows(
        database, "SELECT record_remarks ->> 'skipped' FROM ing_schedule_instance ORDER BY id OFFSET 1"
    )
    assert skipped.startswith("missed")
    ((after,),) = _rows(database, "SELECT next_fire_at FROM ing_schedule_state")
    assert (after - before) % timedelta(hours=1) == timedelta(0)
    assert _rows(database, "SELECT next_fire_at > now() FROM ing_schedule_state") == [(True,)]


def test_a_changed_interval_takes_effect_without_drift(database: Database, settings: Settings) -> None:
    snapshot = make_snapshot()
    make_table(database, snapshot)
    _schedule(database, every_s="604800")
    planner = make_planner(database, settings, snapshot)
    planner.tick()
    _run_sql(database, "UPDATE reg_schedule SET every_s = 3600")
    planner.tick()
    planner.tick()
    ((wait,),) = _rows(database, "SELECT next_fire_at - last_fire_at FROM ing_schedule_state")
    assert wait == timedelta(hours=1)
    assert _rows(database, "SELECT count(*) FROM ing_schedule_instance") == [(1,)]


def test_a_schedule_whose_last_fire_still_runs_is_skipped_with_the_reason(
    database: Database, settings: Settings
) -> None:
    snapshot = make_snapshot()
    make_table(database, snapshot)
    _schedule(database)
    planner = make_planner(database, settings, snapshot)
    planner.tick()
    _run_sql(database, "UPDATE ing_schedule_state SET next_fire_at = now() - interval '1 second'")
    planner.tick()
    results = _rows(database, "SELECT result_code, record_remarks ->> 'skipped' FROM ing_schedule_instance ORDER BY id")
    assert results[1][0] == "SKIPPED"
    assert "unfinished tasks" in results[1][1]


def test_once_fires_once_and_is_missed_when_noticed_too_late(database: Database, settings: Settings) -> None:
    snapshot = make_snapshot()
    make_table(database, snapshot)
    _schedule(database, kind="'once'", every_s="NULL", start_at="now() - interval '5 minutes'")
    planner = make_planner(database, settings, snapshot)
    planner.tick()
    planner.tick()
    ((result, remarks),) = _rows(database, "SELECT result_code, record_remarks FROM ing_schedule_instance")
    assert result == "SKIPPED"
    assert remarks["skipped"].startswith("missed")


def test_a_disabled_schedule_does_not_fire(database: Database, settings: Settings) -> None:
    _schedule(database, enabled="false")
    assert make_planner(database, settings, make_snapshot()).tick().fired == 0


def test_a_held_endpoint_is_not_planned(database: Database, settings: Settings) -> None:
    snapshot = make_snapshot()
    _run_sql(
        database,
        """INSERT INTO ing_hold (scope, kind, provenance_code, reason, held_by)
           VALUES ('SOURCE', 'MANUAL', 'plain', 'the vendor asked', 'me')""",
    )
    request_run(database, snapshot)
    make_planner(database, settings, snapshot).tick()
    ((result, remarks),) = _rows(database, "SELECT result_code, record_remarks FROM ing_schedule_instance")
    assert (result, "the vendor asked" in remarks["skipped"]) == ("SKIPPED", True)


def test_concurrency_follows_the_workers_alive_and_the_sources_with_work(
    database: Database, settings: Settings
) -> None:
    queue_tasks(database, settings, *(make_snapshot(source=f"s{n}", budget=Budget()) for n in range(2)))
    _run_sql(
        database,
        """INSERT INTO ing_process (boot_id, kind, host, pid, capacity, version)
           VALUES ('a', 'EXECUTOR', 'h', 1, 6, '0'), ('b', 'PLANNER', 'h', 2, 0, '0')""",
    )
    make_planner(database, settings).tick()
    assert _rows(database, "SELECT DISTINCT c_max FROM ing_lane") == [(3,)]


def test_one_bad_fire_does_not_stop_the_others(database: Database, settings: Settings) -> None:
    good = make_snapshot(source="good")
    make_table(database, good)
    request_run(database, make_snapshot(source="unknown"))  # its compile raises
    request_run(database, good)
    done = make_planner(database, settings, good).tick()
    assert done.planned == 1
    assert len(done.problems) == 1
