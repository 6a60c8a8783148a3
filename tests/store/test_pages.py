"""A page is one fenced transaction: all it changes is there together, or nothing is (DESIGN rules 2-4, 7, 10)."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from ingest.db import Database
from ingest.errors import LeaseLost
from ingest.settings import Settings
from ingest.spec.snapshot import Column, Mapping, Snapshot
from ingest.states import TaskStatus
from ingest.store.failures import FailedPage, fail_task
from ingest.store.leases import Lease, take_back_expired
from ingest.store.ledger import Position
from ingest.store.pages import Ending, Page, Reject, find_committed, write_page
from ingest.store.rows import DatasetWriter, Record
from ingest.store.runs import Run
from tests.factories import TTL, lease_all, make_page, make_record, make_snapshot, queue_tasks, start

_DONE = Ending(TaskStatus.SUCCEEDED, covers=True)


class Work:
    """One leased task with a run, and the writer for its dataset."""

    def __init__(self, database: Database, settings: Settings, snapshot: Snapshot | None = None) -> None:
        self.database = database
        self.snapshot = snapshot or make_snapshot()
        queue_tasks(database, settings, self.snapshot)
        self.writer = DatasetWriter(self.snapshot)
        self.lease: Lease = lease_all(database)[0]
        self.run: Run = start(database, self.lease)

    def write(self, page: Page, *, task_page: int = 1, writer: DatasetWriter | None = None) -> dict[str, Any]:
        with self.database.transaction() as conn:
            return write_page(conn, self.lease, self.run, page, writer or self.writer, task_page=task_page, ttl=TTL)

    def rows(self, statement: str, **values: object) -> list[Any]:
        with self.database.transaction() as conn:
            return [tuple(row) for row in conn.execute(text(statement), values)]


@pytest.fixture
def work(database: Database, settings: Settings) -> Work:
    return Work(database, settings)


def test_a_page_writes_records_ledger_outbox_event_and_checkpoint_together(work: Work) -> None:
    stats = work.write(make_page([make_record("b", 2), make_record("a", 1)]))
    assert (stats["inserted"], stats["updated"], stats["skipped"]) == (2, 0, 0)
    batch = work.rows("SELECT id, run_id, batch_no, status_code FROM ing_task_run_batch")[0]
    assert batch[1:] == (work.run.id, 1, "SUCCEEDED")
    assert work.rows("SELECT provider_id, _batch_id FROM data.plain_items ORDER BY 1") == [
        ("a", batch[0]),
        ("b", batch[0]),
    ]
    keys, operations = work.rows("SELECT keys, operations FROM ing_outbox")[0]
    assert set(keys) == {"a", "b"}
    assert len(operations) == 2
    assert work.rows("SELECT kind, observed_max_value FROM ing_cursor_event") == [
        ("PAGE", "2024-01-02T00:00:00.000000Z")
    ]
    assert work.rows("SELECT pages_done, status_code FROM ing_task WHERE id = :i", i=work.lease.task_id) == [
        (1, "EXECUTING")
    ]
    assert work.rows("SELECT covered FROM ing_coverage") == []


def test_the_last_page_ends_task_run_and_slice_and_covers_exactly_its_window(work: Work) -> None:
    work.write(make_page([make_record("a")], ending=_DONE))
    assert work.rows("SELECT status_code, lease_owner FROM ing_task WHERE id = :i", i=work.lease.task_id) == [
        ("SUCCEEDED", None)
    ]
    ((status, stats),) = work.rows("SELECT status_code, stats FROM ing_task_run")
    assert (status, stats["retCount"], stats["inserted"], stats["pagesVisited"]) == ("SUCCEEDED", 1, 1, 1)
    assert work.rows("SELECT open FROM ing_plan_slice WHERE id = :s", s=work.lease.slice_id) == [(False,)]
    assert work.lease.span is not None
    assert work.rows("SELECT lower(r), upper(r) FROM ing_coverage, unnest(covered) r") == [work.lease.span]
    assert work.rows("SELECT lower(span), upper(span) FROM ing_cursor_event WHERE kind = 'WINDOW'") == [work.lease.span]


def test_an_undeclared_end_ends_the_task_without_covering(work: Work) -> None:
    work.write(make_page([make_record("a")], ending=Ending(TaskStatus.PARTIAL, covers=False, error="max_page 5")))
    assert work.rows("SELECT count(*) FROM ing_coverage") == [(0,)]
    assert work.rows("SELECT open, status_code FROM ing_plan_slice WHERE id = :s", s=work.lease.slice_id) == [
        (False, "FAILED")
    ]


def test_the_same_page_cannot_be_written_twice(work: Work) -> None:
    work.write(make_page([make_record("a")]))
    with pytest.raises(LeaseLost):
        work.write(make_page([make_record("a")]))
    assert work.rows("SELECT count(*) FROM ing_task_run_batch") == [(1,)]


def test_a_page_cannot_be_skipped(work: Work) -> None:
    with pytest.raises(LeaseLost):
        work.write(make_page([make_record("a")], number=2), task_page=2)


def test_a_worker_that_lost_its_lease_writes_nothing(work: Work) -> None:
    with work.database.transaction() as conn:
        conn.execute(text("UPDATE ing_task SET leased_until = now() - interval '1 second'"))
        take_back_expired(conn, poison=9, stall=timedelta(days=1))
    with pytest.raises(LeaseLost):
        work.write(make_page([make_record("a")], rejects=[Reject(1, None, "{}", "$.id", "missing")]))
    for table in ("data.plain_items", "ing_task_run_batch", "ing_outbox", "ing_quarantine", "ing_cursor_event"):
        assert work.rows(f"SELECT count(*) FROM {table}") == [(0,)]


def test_a_newer_version_replaces_an_equal_one_does_not_and_an_older_is_dropped(work: Work) -> None:
    work.write(make_page([make_record("a", 2), make_record("b", 2), make_record("c", 2)]))
    again = [make_record("a", 3, "new"), make_record("b", 2, "same"), make_record("c", 1, "old"), make_record("d", 1)]
    stats = work.write(make_page(again, number=2), task_page=2)
    counts = {name: stats[name] for name in ("inserted", "updated", "unchanged", "stale", "itemsCount")}
    assert counts == {"inserted": 1, "updated": 1, "unchanged": 1, "stale": 1, "itemsCount": 4}
    titles = dict(work.rows("SELECT provider_id, title FROM data.plain_items"))
    assert titles == {"a": "new", "b": "a title", "c": "a title", "d": "a title"}


def test_the_guard_holds_even_when_the_keys_were_read_before_a_rival_wrote(work: Work) -> None:
    """The read may be stale: the statement itself must refuse to put an old version back."""
    work.write(make_page([make_record("a", 5, "newest")]))
    with work.database.transaction() as conn:
        cursor = conn.connection.driver_connection.cursor()  # type: ignore[union-attr]
        work.writer.write(cursor, [make_record("a", 3, "older")], batch_id=1, fetched_at=datetime.now(UTC))
        assert work.writer.written_of(cursor) == ([], [])
    assert work.rows("SELECT title FROM data.plain_items") == [("newest",)]


def test_at_equal_version_another_mapping_wins(work: Work) -> None:
    work.write(make_page([make_record("a", 1, "old mapping")]))
    mapping = work.snapshot.mapping
    changed = Mapping(**(mapping.model_dump() | {"columns": (Column(name="title", path="$.other"),)}))
    other = DatasetWriter(work.snapshot.model_copy(update={"mapping": changed}))
    stats = work.write(make_page([make_record("a", 1, "new mapping")], number=2), task_page=2, writer=other)
    assert stats["updated"] == 1
    assert work.rows("SELECT title FROM data.plain_items") == [("new mapping",)]


def test_without_updated_at_another_content_wins_and_the_same_does_not(database: Database, settings: Settings) -> None:
    mapping = Mapping(**(make_snapshot().mapping.model_dump() | {"updated_at": None}))
    work = Work(database, settings, make_snapshot(mapping=mapping))

    def record(content: str) -> Record:
        return Record(("a",), None, content, (content,), "{}")

    work.write(make_page([record("one")]))
    assert work.write(make_page([record("one")], number=2), task_page=2)["unchanged"] == 1
    assert work.write(make_page([record("two")], number=3), task_page=3)["updated"] == 1
    assert work.rows("SELECT title FROM data.plain_items") == [("two",)]


def test_rejects_are_quarantined_with_lineage_path_and_reason(work: Work) -> None:
    reject = Reject(7, None, '{"id": null}', "$.id", "the id is missing")
    stats = work.write(make_page([make_record("a")], rejects=[reject]))
    assert (stats["quarantined"], stats["failed"]) == (1, 1)
    ((run, item, record, path, reason, request),) = work.rows(
        "SELECT run_id, item_no, record, field_path, reason, request_hash FROM ing_quarantine"
    )
    assert (run, item, record, path) == (work.run.id, 7, '{"id": null}', "$.id")
    assert (reason, request) == ("the id is missing", "h1:request")


def test_every_fetched_record_is_accounted_for(work: Work) -> None:
    work.write(make_page([make_record("a", 2), make_record("b", 2)]))
    page = make_page(
        [make_record("a", 3), make_record("b", 1), make_record("c")],
        number=2,
        rejects=[Reject(0, None, "x", "$", "bad")],
    )
    stats = work.write(page, task_page=2)
    parts = ("inserted", "updated", "unchanged", "stale", "duplicate", "filtered", "quarantined")
    assert stats["itemsCount"] == sum(stats[part] for part in parts)


def test_a_token_cannot_come_twice_in_a_run(work: Work) -> None:
    work.write(make_page(token="t1"))
    with pytest.raises(Exception, match="uk_run_before_tok"):
        work.write(make_page(token="t1", number=2), task_page=2)


def test_a_lost_answer_to_commit_is_recognised_as_ours(work: Work) -> None:
    with work.database.transaction() as conn:
        assert find_committed(conn, work.lease, work.run, task_page=1) is None
    work.write(make_page([make_record("a")]))
    with work.database.transaction() as conn:
        stored = find_committed(conn, work.lease, work.run, task_page=1)
    assert stored is not None
    assert stored["inserted"] == 1


def test_a_request_that_failed_for_good_is_a_batch_with_its_evidence(work: Work) -> None:
    work.write(make_page([make_record("a")]))
    failed = FailedPage(
        position=Position(page_no=2, page_size=100),
        request={"hash": "h1:x", "url": "http://x/"},
        response={"status": 403, "sample": "no"},
        stats={"itemsCount": 0, "retryCount": 0, "429Count": 0},
    )
    with work.database.transaction() as conn:
        fail_task(conn, work.lease, work.run, failed, status=TaskStatus.PARTIAL, error="Refused: HTTP 403")
    batches = work.rows(
        "SELECT batch_no, status_code, error, response_digest ->> 'status' FROM ing_task_run_batch ORDER BY 1"
    )
    assert batches == [(1, "SUCCEEDED", None, "200"), (2, "FAILED", "Refused: HTTP 403", "403")]
    assert work.rows("SELECT status_code, error FROM ing_task_run") == [("PARTIAL", "Refused: HTTP 403")]
    assert work.rows("SELECT count(*) FROM ing_coverage") == [(0,)]
    assert work.rows("SELECT open FROM ing_plan_slice WHERE id = :s", s=work.lease.slice_id) == [(False,)]


def test_a_page_of_composite_typed_keys_is_written(database: Database, settings: Settings) -> None:
    identity = (
        {"column": "series_id", "path": "$.s", "type": "text"},
        {"column": "open_time", "path": "$.t", "type": "timestamp"},
    )
    mapping = Mapping(**(make_snapshot().mapping.model_dump() | {"identity": identity}))
    work = Work(database, settings, make_snapshot(mapping=mapping))
    moments = [datetime(2024, 1, day, tzinfo=UTC) for day in (1, 2)]
    records = [Record(("BTC/1m", moment), moment, None, ("x",), "{}") for moment in moments]
    assert work.write(make_page(records))["inserted"] == 2
    assert work.write(make_page(records, number=2), task_page=2)["unchanged"] == 2
    assert work.rows("SELECT keys[1] FROM ing_outbox") == [("BTC/1m/2024-01-01T00:00:00.000000Z",)]
