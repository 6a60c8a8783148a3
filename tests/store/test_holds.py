"""Pausing and cancelling: what is held is neither planned nor leased; what is cancelled writes nothing more (D10)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from ingest.admin import cancels, pauses
from ingest.db import Database
from ingest.errors import LeaseLost, NotFound, RefusedByState, ValueRefused
from ingest.settings import Settings
from ingest.spec.snapshot import Budget
from ingest.store.pages import write_page
from ingest.store.pauses import list_holds
from ingest.store.rows import DatasetWriter
from tests.factories import (
    TTL,
    lease_all,
    make_page,
    make_planner,
    make_record,
    make_snapshot,
    queue_tasks,
    request_run,
    start,
)

ITEMS, SOURCE = ("plain", "items"), ("plain", None)


def _rows(database: Database, statement: str) -> list[Any]:
    with database.transaction() as conn:
        return [tuple(row) for row in conn.execute(text(statement))]


def _leases(database: Database) -> int:
    return len(lease_all(database, limit=3))


@pytest.mark.parametrize("target", [ITEMS, SOURCE])
def test_what_is_paused_is_not_leased_and_what_is_resumed_is(
    database: Database, settings: Settings, target: pauses.Target
) -> None:
    queue_tasks(database, settings, make_snapshot(budget=Budget(concurrency=9)), make_snapshot(source="other"))
    pauses.pause(database, [target], actor="me", reason="maintenance")
    assert {lease.provenance_code for lease in lease_all(database, limit=5)} == {"other"}
    assert pauses.resume(database, [target], actor="me") == 1
    assert "plain" in {lease.provenance_code for lease in lease_all(database, limit=5)}


def test_a_pause_of_one_endpoint_leaves_its_neighbour(database: Database, settings: Settings) -> None:
    queue_tasks(database, settings, make_snapshot(), make_snapshot(endpoint="others"))
    pauses.pause(database, [ITEMS], actor="me", reason="maintenance")
    assert {lease.endpoint_name for lease in lease_all(database, limit=5)} == {"others"}


def test_a_fire_of_what_is_paused_is_skipped_with_the_reason(database: Database, settings: Settings) -> None:
    snapshot = make_snapshot()
    pauses.pause(database, [SOURCE], actor="me", reason="the vendor asked")
    request_run(database, snapshot)
    make_planner(database, settings, snapshot).tick()
    ((result, why),) = _rows(database, "SELECT result_code, record_remarks ->> 'skipped' FROM ing_schedule_instance")
    assert (result, "the vendor asked" in why) == ("SKIPPED", True)


def test_a_pause_with_an_end_ends_by_itself(database: Database, settings: Settings) -> None:
    queue_tasks(database, settings, make_snapshot(budget=Budget(concurrency=9)))
    pauses.pause(database, [SOURCE], actor="me", reason="x", until=datetime.now(UTC) + timedelta(hours=1))
    assert _leases(database) == 0
    _ = _rows(database, "UPDATE ing_hold SET until = now() - interval '1 second' RETURNING id")
    assert _leases(database) == 3
    with database.transaction() as conn:
        assert list_holds(conn) == []


def test_a_pause_that_ends_in_the_past_is_refused(database: Database) -> None:
    with pytest.raises(ValueRefused, match="is past"):
        pauses.pause(database, [SOURCE], actor="me", reason="x", until=datetime(2020, 1, 1))  # noqa: DTZ001 -- a person's
    assert _rows(database, "SELECT count(*) FROM ing_hold") == [(0,)]


def test_resuming_what_no_person_paused_says_what_is_held(database: Database) -> None:
    pauses.pause(database, [ITEMS], actor="me", reason="x")
    with pytest.raises(NotFound, match=r"held now: plain\.items \(manual\)"):
        pauses.resume(database, [SOURCE], actor="me")


def test_pauses_are_in_the_audit_trail(database: Database) -> None:
    pauses.pause(database, [ITEMS], actor="ada", reason="because")
    pauses.resume(database, [ITEMS], actor="bob")
    trail = _rows(database, "SELECT actor, action, target, reason FROM ing_audit ORDER BY id")
    assert trail == [("ada", "pause", "plain.items", "because"), ("bob", "resume", "plain.items", "")]


@pytest.mark.parametrize("kind", ["plan", "slice", "task", "run"])
def test_a_cancelled_worker_can_write_nothing_more(database: Database, settings: Settings, kind: cancels.Kind) -> None:
    snapshot = make_snapshot()
    queue_tasks(database, settings, snapshot)
    lease = lease_all(database)[0]
    run = start(database, lease)
    number = {"plan": lease.plan_id, "slice": lease.slice_id, "task": lease.task_id, "run": run.id}[kind]
    cancels.cancel(database, kind, number, actor="me", reason="wrong window")
    with pytest.raises(LeaseLost), database.transaction() as conn:
        write_page(conn, lease, run, make_page([make_record("a")]), DatasetWriter(snapshot), task_page=1, ttl=TTL)
    assert _rows(database, "SELECT count(*) FROM data.plain_items") == [(0,)]
    state = _rows(
        database,
        f"""SELECT t.status_code, t.error, r.status_code, s.status_code, s.open FROM ing_task t
              JOIN ing_task_run r ON r.task_id = t.id JOIN ing_plan_slice s ON s.id = t.slice_id
             WHERE t.id = {lease.task_id}""",
    )
    assert state == [("CANCELLED", "cancelled by me: wrong window", "CANCELLED", "CANCELLED", False)]


def test_a_cancelled_plan_ends_its_queue_makes_no_more_tasks_and_its_windows_stay_gaps(
    database: Database, settings: Settings
) -> None:
    snapshot = make_snapshot(budget=Budget(concurrency=4, inventory=10))
    queue_tasks(database, settings, snapshot)
    ((plan,),) = _rows(database, "SELECT id FROM ing_plan WHERE status_code = 'PARTIAL'")
    assert cancels.cancel(database, "plan", plan, actor="me") == 10
    planner = make_planner(database, settings, snapshot)
    assert planner.tick().continued == 0
    assert _rows(database, "SELECT DISTINCT status_code FROM ing_task") == [("CANCELLED",)]
    request_run(database, snapshot)
    planner.tick()
    first = "SELECT min(lower(s.span)) FROM ing_plan_slice s WHERE s.plan_id"
    assert _rows(database, f"{first} = {plan}") == _rows(database, f"{first} > {plan}")


def test_what_has_ended_stays_as_it_is(database: Database, settings: Settings) -> None:
    queue_tasks(database, settings, make_snapshot())
    lease = lease_all(database)[0]
    cancels.cancel(database, "task", lease.task_id, actor="me")
    for kind, number in (("task", lease.task_id), ("slice", lease.slice_id)):
        with pytest.raises(RefusedByState, match="has ended"):
            cancels.cancel(database, kind, number, actor="me")  # type: ignore[arg-type]
    cancels.cancel(database, "plan", lease.plan_id, actor="me")
    with pytest.raises(RefusedByState, match="CANCELLED"):
        cancels.cancel(database, "plan", lease.plan_id, actor="me")
    assert _rows(database, f"SELECT error FROM ing_task WHERE id = {lease.task_id}") == [("cancelled by me",)]


@pytest.mark.parametrize("kind", ["plan", "slice", "task", "run"])
def test_what_does_not_exist_is_not_found(database: Database, kind: cancels.Kind) -> None:
    with pytest.raises(NotFound, match=f"no {kind} 999"):
        cancels.cancel(database, kind, 999, actor="me")
    assert _rows(database, "SELECT count(*) FROM ing_audit") == [(0,)]
