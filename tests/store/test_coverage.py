"""Coverage, gaps and cursors: merged by PostgreSQL, derived, never bridged (D8, E5, DESIGN rules 1, 4)."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from ingest.db import Database
from ingest.settings import Settings
from ingest.states import TaskStatus
from ingest.store import cursors, series
from ingest.store.leases import Lease
from ingest.store.pages import Ending, write_page
from ingest.store.rows import DatasetWriter
from tests.factories import START, TTL, lease_all, make_page, make_snapshot, queue_tasks, start

_DAY = timedelta(days=1)
_COVERED = Ending(TaskStatus.SUCCEEDED, covers=True)


def _finish(database: Database, lease: Lease, ending: Ending = _COVERED) -> None:
    run = start(database, lease)
    with database.transaction() as conn:
        write_page(conn, lease, run, make_page(ending=ending), DatasetWriter(make_snapshot()), task_page=1, ttl=TTL)


def _first_days(database: Database, count: int) -> dict[datetime, Lease]:
    with database.transaction() as conn:
        conn.execute(text("UPDATE ing_lane SET c_now = 100"))
    leases = {lease.span[0]: lease for lease in lease_all(database, limit=count) if lease.span}
    return dict(sorted(leases.items()))


@pytest.fixture
def queued(database: Database, settings: Settings) -> Database:
    queue_tasks(database, settings, make_snapshot())
    return database


def test_touching_windows_merge_and_a_gap_is_never_bridged(queued: Database) -> None:
    days = list(_first_days(queued, 5).values())
    for number in (3, 0, 1):  # out of order, the third is missing
        _finish(queued, days[number])
    with queued.transaction() as conn:
        assert series.list_covered(conn, days[0].series_id) == [
            (START, START + 2 * _DAY),
            (START + 3 * _DAY, START + 4 * _DAY),
        ]


def test_the_cursor_is_the_end_of_the_unbroken_run_from_the_anchor(queued: Database) -> None:
    days = list(_first_days(queued, 4).values())
    _finish(queued, days[1])
    with queued.transaction() as conn:
        assert not cursors.advance_cursor(conn, days[0].series_id)  # nothing contains the anchor yet
    _finish(queued, days[0])
    with queued.transaction() as conn:
        assert cursors.advance_cursor(conn, days[0].series_id)
        value, key, version = conn.execute(text("SELECT cursor_value, namespace_key, version FROM ing_cursor")).one()
        assert not cursors.advance_cursor(conn, days[0].series_id)  # equal is not forward
    assert (value, key, version) == ("2024-01-03T00:00:00.000000Z", str(days[0].series_id), 1)


def test_a_cursor_whose_second_transaction_was_lost_is_recomputed(queued: Database) -> None:
    (first, *_) = _first_days(queued, 1).values()
    _finish(queued, first)
    with queued.transaction() as conn:
        assert cursors.rescue_cursors(conn) == 1
        assert cursors.rescue_cursors(conn) == 0
        instant = conn.execute(text("SELECT normalized_instant FROM ing_cursor")).scalar_one()
    assert instant == START + _DAY


def test_a_failed_window_stays_a_gap_and_an_open_one_is_in_flight(queued: Database) -> None:
    days = list(_first_days(queued, 3).values())
    _finish(queued, days[0])
    _finish(queued, days[1], Ending(TaskStatus.PARTIAL, covers=False, error="no"))
    with queued.transaction() as conn:
        gaps = series.list_gaps(conn, days[0].series_id, wanted_from=START, wanted_to=START + 3 * _DAY)
    assert gaps == [(START + _DAY, START + 2 * _DAY)]


def test_the_next_fire_plans_the_failed_window_again(queued: Database, settings: Settings) -> None:
    days = list(_first_days(queued, 3).values())
    _finish(queued, days[1], Ending(TaskStatus.PARTIAL, covers=False, error="no"))
    queue_tasks(queued, settings, make_snapshot())
    with queued.transaction() as conn:
        again = conn.execute(
            text("SELECT count(*) FROM ing_task WHERE params ->> 'from' = :f"), {"f": "2024-01-02T00:00:00.000000Z"}
        ).scalar_one()
        once = conn.execute(
            text("SELECT count(*) FROM ing_task WHERE params ->> 'from' = :f"), {"f": "2024-01-03T00:00:00.000000Z"}
        ).scalar_one()
    assert (again, once) == (2, 1)


def test_the_anchor_is_set_once(database: Database) -> None:
    with database.transaction() as conn:
        first = series.ensure_series(conn, source="s", endpoint="e", selection="h", anchor=START)
        earlier = series.ensure_series(conn, source="s", endpoint="e", selection="h", anchor=START - 9 * _DAY)
    assert (earlier.id, earlier.anchor) == (first.id, START)


def test_copied_coverage_has_events_and_a_cursor_of_its_own(queued: Database) -> None:
    (first, *_) = _first_days(queued, 1).values()
    _finish(queued, first)
    with queued.transaction() as conn:
        target = series.copy_coverage(
            conn,
            from_series_id=first.series_id,
            provenance_code="plain",
            endpoint_name="items",
            partition_key="",
            selection_hash="other",
        )
        assert series.list_covered(conn, target) == series.list_covered(conn, first.series_id)
        cursors.rescue_cursors(conn)
        assert conn.execute(text("SELECT count(*) FROM ing_cursor")).scalar_one() == 2


def test_nothing_wanted_means_no_gap(database: Database) -> None:
    with database.transaction() as conn:
        moment = datetime(2024, 1, 1, tzinfo=UTC)
        assert series.list_gaps(conn, 1, wanted_from=moment, wanted_to=moment) == []
