"""Leases: due work once, over lanes in turn, taken back when their holder dies (E1, E2, DESIGN rule 3)."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from ingest.db import Database
from ingest.errors import LeaseLost
from ingest.settings import Settings
from ingest.spec.snapshot import Budget
from ingest.store.lanes import block_lane
from ingest.store.leases import Lease, renew_leases, take_back_expired
from ingest.store.runs import give_back
from tests.factories import TTL, lease_all, make_snapshot, queue_tasks, start

_NEVER = timedelta(days=1)


def _run_sql(database: Database, statement: str, **values: object) -> None:
    with database.transaction() as conn:
        conn.execute(text(statement), values)


def _expire(database: Database) -> None:
    _run_sql(database, "UPDATE ing_task SET leased_until = now() - interval '1 second' WHERE leased_until IS NOT NULL")


def _status(database: Database, lease: Lease) -> str:
    with database.transaction() as conn:
        return str(
            conn.execute(text("SELECT status_code FROM ing_task WHERE id = :i"), {"i": lease.task_id}).scalar_one()
        )


@pytest.fixture
def queued(database: Database, settings: Settings) -> Database:
    queue_tasks(database, settings, make_snapshot())
    return database


def test_a_lease_is_dispatched_with_owner_count_and_end(queued: Database) -> None:
    (lease,) = lease_all(queued)
    assert (lease.owner, lease.count, lease.pages_done) == ("worker-a", 1, 0)
    assert lease.span is not None
    assert lease.span[0] == datetime(2024, 1, 1, tzinfo=UTC)
    assert _status(queued, lease) == "DISPATCHED"


def test_no_task_is_leased_twice(queued: Database) -> None:
    taken = [lease.task_id for _ in range(3) for lease in lease_all(queued, limit=2)]
    assert len(taken) == len(set(taken)) == 4  # the lane's C_max


def test_lease_skips_tasks_not_yet_due(queued: Database) -> None:
    _run_sql(queued, "UPDATE ing_task SET scheduled_at = now() + interval '1 hour'")
    assert lease_all(queued, limit=5) == []


def test_lease_takes_the_most_urgent_then_the_earliest(queued: Database) -> None:
    _run_sql(queued, "UPDATE ing_task SET priority = 50 WHERE id = (SELECT max(id) FROM ing_task)")
    first, second = lease_all(queued, limit=2)
    assert first.task_id > second.task_id
    assert second.task_id == min(t.task_id for t in (first, second))


def test_lease_skips_a_blocked_lane(queued: Database) -> None:
    (lease,) = lease_all(queued)
    with queued.transaction() as conn:
        block_lane(conn, lease.lane_id, timedelta(minutes=5))
    assert lease_all(queued) == []


@pytest.mark.parametrize("scope", ["SOURCE", "ENDPOINT"])
def test_lease_skips_what_is_held(queued: Database, scope: str) -> None:
    _run_sql(
        queued,
        """INSERT INTO ing_hold (scope, kind, provenance_code, endpoint_name, reason, held_by)
           VALUES (:s, 'MANUAL', 'plain', CASE WHEN :s = 'ENDPOINT' THEN 'items' END, 'test', 'me')""",
        s=scope,
    )
    assert lease_all(queued) == []
    _run_sql(queued, "UPDATE ing_hold SET lifted_at = now()")
    assert len(lease_all(queued)) == 1


def test_lanes_of_equal_priority_are_served_in_turn(database: Database, settings: Settings) -> None:
    queue_tasks(database, settings, *(make_snapshot(source=f"s{n}", budget=Budget(concurrency=10)) for n in range(5)))
    sources = [lease_all(database)[0].provenance_code for _ in range(10)]
    assert sorted(sources[:5]) == sorted(sources[5:]) == ["s0", "s1", "s2", "s3", "s4"]


def test_expired_lease_goes_back_and_its_run_ends_failed(queued: Database) -> None:
    (lease,) = lease_all(queued)
    run = start(queued, lease)
    _expire(queued)
    with queued.transaction() as conn:
        (expired,) = take_back_expired(conn, poison=3, stall=_NEVER)
        stored = conn.execute(text("SELECT status_code, error FROM ing_task_run WHERE id = :r"), {"r": run.id}).one()
    assert expired.task_id == lease.task_id
    assert not expired.parked
    assert tuple(stored) == ("FAILED", "lease expired")
    assert _status(queued, lease) == "QUEUED"
    (again,) = lease_all(queued, owner="worker-b")
    assert (again.task_id, again.count) == (lease.task_id, 2)


def test_a_live_lease_is_not_taken_back(queued: Database) -> None:
    lease_all(queued)
    with queued.transaction() as conn:
        assert take_back_expired(conn, poison=3, stall=_NEVER) == []


def test_a_task_that_kills_its_workers_is_parked_and_its_window_is_free_again(queued: Database) -> None:
    (first,) = lease_all(queued)
    for count in range(1, 4):
        if count > 1:
            _run_sql(queued, "UPDATE ing_task SET scheduled_at = '-infinity' WHERE id = :i", i=first.task_id)
            assert lease_all(queued)[0].task_id == first.task_id
        _expire(queued)
        with queued.transaction() as conn:
            (expired,) = take_back_expired(conn, poison=3, stall=_NEVER)
        assert expired.parked is (count == 3)
    assert _status(queued, first) == "FAILED"
    with queued.transaction() as conn:
        assert conn.execute(
            text("SELECT open, status_code FROM ing_plan_slice WHERE id = :s"), {"s": first.slice_id}
        ).one() == (False, "FAILED")


def test_a_run_that_commits_nothing_is_taken_back_although_it_renews(queued: Database) -> None:
    (lease,) = lease_all(queued)
    start(queued, lease)
    _run_sql(queued, "UPDATE ing_task SET started_at = now() - interval '11 minutes' WHERE id = :i", i=lease.task_id)
    with queued.transaction() as conn:
        (expired,) = take_back_expired(conn, poison=3, stall=timedelta(minutes=10))
    assert expired.task_id == lease.task_id


def test_renewal_renews_all_of_ours_and_nothing_of_others(queued: Database) -> None:
    mine, other = lease_all(queued)[0], lease_all(queued, owner="worker-b")[0]
    with queued.transaction() as conn:
        renewed, ours = renew_leases(
            conn,
            owner="worker-a",
            held=[(mine.task_id, mine.count), (mine.task_id, 99), (other.task_id, other.count)],
            ttl=TTL,
        )
    assert renewed == ours == frozenset({mine.task_id})


def test_giving_back_keeps_the_checkpoint_and_is_no_expiry(queued: Database) -> None:
    (lease,) = lease_all(queued)
    run = start(queued, lease)
    with queued.transaction() as conn:
        give_back(conn, lease, run, reason="graceful stop")
        row = conn.execute(
            text("SELECT status_code, expiry_streak FROM ing_task WHERE id = :i"), {"i": lease.task_id}
        ).one()
        ended = conn.execute(text("SELECT status_code, error FROM ing_task_run")).one()
    assert tuple(row) == ("QUEUED", 0)
    assert tuple(ended) == ("PARTIAL", "graceful stop")


def test_a_lost_lease_can_neither_start_nor_give_back(queued: Database) -> None:
    (lease,) = lease_all(queued)
    _expire(queued)
    with queued.transaction() as conn:
        take_back_expired(conn, poison=3, stall=_NEVER)
    lease_all(queued, owner="worker-a")  # the same name leases it again: only the count tells them apart
    with pytest.raises(LeaseLost):
        start(queued, lease)
    with pytest.raises(LeaseLost), queued.transaction() as conn:
        give_back(conn, lease, None, reason="zombie")


def test_leasing_refuses_another_isolation_level(queued: Database) -> None:
    def lease() -> None:
        with queued.transaction() as conn:
            conn.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
            conn.execute(text("SELECT * FROM ing_lease('x', 1, interval '1 second')"))

    with pytest.raises(DBAPIError, match="READ COMMITTED"):
        lease()
