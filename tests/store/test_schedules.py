"""Schedules changed while they run: S1's table of requirements 1.1-4.4, a test each, and G1-G4 on real PostgreSQL."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from ingest.admin import schedules as admin
from ingest.db import Database
from ingest.errors import NotFound, RefusedByState, ValueRefused
from ingest.settings import Settings
from ingest.store.views_schedules import ScheduleView, list_fires, list_schedules
from planner.tick import Planner
from tests.factories import make_planner, make_snapshot, make_table

CODE = "plain.items"
SECOND = timedelta(seconds=1)


def _sql(database: Database, statement: str) -> list[Any]:
    with database.transaction() as conn:
        done = conn.execute(text(statement))
        return [tuple(row) for row in done] if done.returns_rows else []


def _declare(database: Database, **columns: str) -> None:
    values = {"kind": "'every'", "every_s": "3600"} | columns
    _sql(
        database,
        f"""INSERT INTO reg_schedule
                   (schedule_code, provenance_code, endpoint_name, operation_code, {", ".join(values)})
            VALUES ('{CODE}', 'plain', 'items', 'HARVEST', {", ".join(values.values())})""",
    )


@pytest.fixture
def planner(database: Database, settings: Settings) -> Planner:
    """A planner of one endpoint."""
    snapshot = make_snapshot()
    make_table(database, snapshot)
    return make_planner(database, settings, snapshot)


def _read(database: Database) -> ScheduleView:
    with database.transaction() as conn:
        return admin.get_schedule(conn, CODE)


def _fires(database: Database) -> list[tuple[str, str]]:
    rows = _sql(database, "SELECT result_code, record_remarks ->> 'skipped' FROM ing_schedule_instance ORDER BY id")
    return [(result, (why or "").partition(":")[0]) for result, why in rows]


def _finish_work(database: Database) -> None:
    _sql(database, "UPDATE ing_task SET status_code = 'SUCCEEDED', finished_at = now()")
    _sql(database, "UPDATE ing_plan_slice SET open = false")


def _announce_planner(database: Database) -> None:
    _sql(
        database,
        """INSERT INTO ing_process (boot_id, kind, host, pid, capacity, version)
           VALUES ('p', 'PLANNER', 'h', 1, 0, '0')""",
    )


def test_s1_1_1_a_schedule_says_its_interval_its_next_run_and_who_changed_it(
    database: Database, planner: Planner
) -> None:
    _declare(database)
    planner.tick()
    shown = _read(database)
    assert (shown.rhythm.every_s, shown.enabled, shown.overrides, shown.updated_by) == (3600, True, [], "")
    assert shown.next_at is not None
    assert timedelta(minutes=59) < shown.next_at - shown.now <= timedelta(hours=1)


def test_s1_1_2_it_says_whether_a_planner_is_alive(database: Database) -> None:
    with database.transaction() as conn:
        assert not admin.planner_is_alive(conn)
    _announce_planner(database)
    with database.transaction() as conn:
        assert admin.planner_is_alive(conn)


def test_s1_1_3_with_nothing_stored_the_declared_value_holds(database: Database) -> None:
    _declare(database, every_s="43200")
    shown = _read(database)
    assert (shown.rhythm.every_s, shown.updated_at, shown.next_at) == (43200, None, None)


def test_s1_2_1_a_new_interval_counts_from_the_last_planned_fire_without_restart(
    database: Database, planner: Planner
) -> None:
    _declare(database, every_s="86400")
    planner.tick()
    after = admin.set_interval(database, CODE, 1800, actor="me", reason="catching up")
    assert after.last_fire_at is not None
    assert after.next_at == after.last_fire_at + timedelta(minutes=30)
    _finish_work(database)
    _sql(
        database,
        """UPDATE ing_schedule_state
              SET last_fire_at = last_fire_at - interval '31 min', next_fire_at = next_fire_at - interval '31 min'""",
    )
    _sql(database, "UPDATE reg_schedule SET grace_s = 3600")
    assert planner.tick().fired == 1


@pytest.mark.parametrize("seconds", [299, 604_801, 0, -5])
def test_s1_2_2_and_2_3_an_interval_out_of_range_is_refused_and_nothing_changes(
    database: Database, seconds: int
) -> None:
    _declare(database)
    with pytest.raises(ValueRefused, match="300 to 604800 seconds"):
        admin.set_interval(database, CODE, seconds, actor="me")
    assert _read(database).overrides == []


@pytest.mark.parametrize("seconds", [300, 604_800])
def test_s1_2_2_the_ends_of_the_range_are_allowed(database: Database, seconds: int) -> None:
    _declare(database)
    assert admin.set_interval(database, CODE, seconds, actor="me").rhythm.every_s == seconds


def test_s1_2_4_and_3_6_changes_are_stored_although_no_planner_runs(database: Database) -> None:
    _declare(database)
    admin.set_interval(database, CODE, 600, actor="me")
    moment = datetime.now(UTC) + timedelta(hours=5)
    admin.set_next_run(database, CODE, moment, actor="me")
    assert (_read(database).rhythm.every_s, _read(database).next_at) == (600, moment)


def test_s1_2_5_and_4_4_a_change_answers_with_what_holds_now_who_and_when(database: Database) -> None:
    _declare(database)
    after = admin.set_interval(database, CODE, 600, actor="ada", reason="because")
    assert (after.rhythm.every_s, after.updated_by, after.reason) == (600, "ada", "because")
    assert after.updated_at is not None
    ((actor, action, target, reason),) = _sql(database, "SELECT actor, action, target, reason FROM ing_audit")
    assert (actor, action, target, reason) == ("ada", "schedule interval", CODE, "because")


def test_s1_3_1_and_3_5_a_next_run_fires_once_and_then_the_rhythm_goes_on(database: Database, planner: Planner) -> None:
    _declare(database)
    planner.tick()
    _finish_work(database)
    grid = _read(database).next_fire_at
    at = datetime.now(UTC) - timedelta(seconds=20)  # within the tolerance: due at once
    assert admin.set_next_run(database, CODE, at, actor="me").next_at == at
    assert planner.tick().fired == 1
    after = _read(database)
    assert (after.next_run_at, after.next_fire_at) == (None, grid)
    assert _fires(database) == [("PLANNED", ""), ("PLANNED", "")]
    assert planner.tick().fired == 0


def test_s1_3_1_a_next_run_behind_the_next_planned_fire_puts_it_off(database: Database, planner: Planner) -> None:
    _declare(database)
    planner.tick()
    later = datetime.now(UTC) + timedelta(days=2)
    admin.set_next_run(database, CODE, later, actor="me")
    _sql(database, "UPDATE ing_schedule_state SET next_fire_at = now() - interval '1 second'")
    assert planner.tick().fired == 0
    assert _read(database).list_next(2)[0] == later


def test_s1_3_2_a_time_without_a_zone_is_utc(database: Database) -> None:
    _declare(database)
    moment = datetime.now(UTC) + timedelta(days=1)
    assert admin.set_next_run(database, CODE, moment.replace(tzinfo=None), actor="me").next_at == moment


def test_s1_3_3_a_time_in_the_past_is_refused(database: Database) -> None:
    _declare(database)
    with pytest.raises(ValueRefused, match="in the future") as refused:
        admin.set_next_run(database, CODE, datetime.now(UTC) - timedelta(seconds=40), actor="me")
    assert refused.value.code == "past"


def test_s1_3_4_a_time_more_than_thirty_days_ahead_is_refused(database: Database) -> None:
    _declare(database)
    with pytest.raises(ValueRefused, match="30 days") as refused:
        admin.set_next_run(database, CODE, datetime.now(UTC) + timedelta(days=30, minutes=1), actor="me")
    assert refused.value.code == "far"


def test_s1_4_1_and_4_2_changes_survive_the_planner_and_the_file(
    database: Database, settings: Settings, planner: Planner
) -> None:
    _declare(database)
    planner.tick()
    moment = datetime.now(UTC) + timedelta(days=3)
    admin.set_interval(database, CODE, 7200, actor="me")
    admin.set_next_run(database, CODE, moment, actor="me")
    admin.set_interval(database, CODE, 9000, actor="me")  # a next run survives a change of interval
    _sql(database, "DELETE FROM reg_schedule")  # as an apply does
    _declare(database, every_s="600")
    make_planner(database, settings, make_snapshot()).tick()
    after = _read(database)
    assert (after.rhythm.every_s, after.next_at, after.declared_every_s) == (9000, moment, 600)
    assert after.overrides == ["every", "next run"]


def test_s1_4_3_reset_goes_back_to_the_file(database: Database) -> None:
    _declare(database)
    admin.set_interval(database, CODE, 7200, actor="me")
    admin.set_enabled(database, CODE, False, actor="me")
    after = admin.reset(database, CODE, actor="me")
    assert (after.rhythm.every_s, after.enabled, after.overrides) == (3600, True, [])


def test_a_paused_schedule_does_not_fire_and_resumed_it_makes_nothing_up(database: Database, planner: Planner) -> None:
    _declare(database, on_missed="'all'")
    planner.tick()
    _finish_work(database)
    admin.set_enabled(database, CODE, False, actor="me", reason="maintenance")
    _sql(
        database,
        """UPDATE ing_schedule_state SET last_fire_at = last_fire_at - interval '5 h 10 min',
                  next_fire_at = next_fire_at - interval '5 h 10 min'""",
    )
    assert planner.tick().fired == 0
    after = admin.set_enabled(database, CODE, True, actor="me")
    assert after.next_at is not None
    assert after.next_at > after.now
    assert planner.tick().fired == 0
    assert _fires(database) == [("PLANNED", "")]


def test_cron_waits_for_its_moment_and_follows_a_changed_expression(database: Database, planner: Planner) -> None:
    _declare(database, kind="'cron'", every_s="NULL", cron="'30 2 * * *'", zone="'Asia/Shanghai'")
    assert planner.tick().fired == 0
    first = _read(database).next_at
    assert first is not None
    assert (first.astimezone(UTC).hour, first.minute) == (18, 30)
    _sql(database, "UPDATE reg_schedule SET cron = '0 5 * * *', zone = 'UTC'")
    planner.tick()
    changed = _read(database).next_at
    assert changed is not None
    assert (changed.astimezone(UTC).hour, changed.minute) == (5, 0)
    _sql(database, "UPDATE ing_schedule_state SET next_fire_at = date_trunc('minute', now())")
    _sql(database, "UPDATE reg_schedule SET cron = '* * * * *'")
    _sql(database, "UPDATE ing_schedule_state SET rhythm = '* * * * * UTC'")
    assert planner.tick().fired == 1


def test_a_schedule_that_cannot_be_read_stops_no_other(database: Database, planner: Planner) -> None:
    _declare(database)
    _sql(
        database,
        """INSERT INTO reg_schedule (schedule_code, provenance_code, endpoint_name, operation_code, kind, cron)
           VALUES ('bad.one', 'bad', 'one', 'HARVEST', 'cron', 'never'),
                  ('bad.two', 'bad', 'two', 'HARVEST', 'cron', 'never')""",
    )
    _sql(
        database,
        """INSERT INTO ing_schedule_state (schedule_code, next_fire_at, rhythm)
           VALUES ('bad.two', now() - interval '1 minute', 'never UTC')""",
    )
    done = planner.tick()
    assert done.fired == 1
    assert [problem for problem in done.problems if "bad.two" in problem]


def test_missed_fires_are_said_once_and_not_made_up_unless_asked_for(database: Database, planner: Planner) -> None:
    _declare(database)
    planner.tick()
    _finish_work(database)
    _sql(database, "UPDATE ing_schedule_state SET next_fire_at = next_fire_at - interval '4 h 30 min'")
    assert planner.tick().fired == 0
    assert _fires(database) == [("PLANNED", ""), ("SKIPPED", "missed")]
    _sql(database, "UPDATE reg_schedule SET on_missed = 'all'")
    _sql(database, "UPDATE ing_schedule_state SET next_fire_at = next_fire_at - interval '20 h'")
    assert planner.tick().fired == 20


def test_jitter_delays_a_fire_and_leaves_the_grid(database: Database, planner: Planner) -> None:
    _declare(database, jitter_s="600")
    planner.tick()
    _finish_work(database)
    ((delay, spacing),) = _sql(
        database, "SELECT delay_s, extract(epoch FROM next_fire_at - last_fire_at) FROM ing_schedule_state"
    )
    assert 0 < delay <= 600
    assert spacing == 3600
    _sql(database, "UPDATE ing_schedule_state SET next_fire_at = now() - interval '1 second', delay_s = 500")
    assert planner.tick().fired == 0
    _sql(database, "UPDATE ing_schedule_state SET next_fire_at = now() - interval '501 second', delay_s = 500")
    assert planner.tick().fired == 1


def test_in_quiet_hours_nothing_fires_and_it_is_said(database: Database, planner: Planner) -> None:
    now = datetime.now(UTC)
    stretch = f"{now - timedelta(hours=1):%H:%M}-{now + timedelta(hours=1):%H:%M}"
    _declare(database, quiet=f"'[\"{stretch}\"]'")
    assert planner.tick().fired == 0
    assert _fires(database) == [("SKIPPED", "quiet hours " + stretch.partition(":")[0])]


def test_a_fire_that_still_runs_refuses_another_run_now(database: Database, planner: Planner) -> None:
    _declare(database)
    planner.tick()
    with database.transaction() as conn, pytest.raises(RefusedByState, match="unfinished tasks"):
        admin.check_idle(conn, CODE)
    _finish_work(database)
    with database.transaction() as conn:
        admin.check_idle(conn, CODE)


def test_history_names_every_fire_with_its_result_and_reason(database: Database, planner: Planner) -> None:
    _declare(database)
    planner.tick()
    _sql(database, "UPDATE ing_schedule_state SET next_fire_at = now() - interval '1 second'")
    planner.tick()
    with database.transaction() as conn:
        newest, oldest = list_fires(conn, source="plain", endpoint="items")
        assert [schedule.code for schedule in list_schedules(conn)] == [CODE]
    assert (newest.result, "unfinished tasks" in newest.why) == ("SKIPPED", True)
    assert (oldest.result, oldest.open, oldest.why) == ("PLANNED", oldest.tasks, "")


def test_a_schedule_nobody_declared_is_not_found(database: Database) -> None:
    with pytest.raises(NotFound, match=r"no schedule plain\.items"):
        admin.set_enabled(database, CODE, False, actor="me")


def test_an_interval_of_a_cron_schedule_is_refused(database: Database) -> None:
    _declare(database, kind="'cron'", every_s="NULL", cron="'30 2 * * *'")
    with pytest.raises(ValueRefused, match="has no interval"):
        admin.set_interval(database, CODE, 600, actor="me")
