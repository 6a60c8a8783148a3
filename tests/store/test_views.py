"""What people are shown is what is stored: outcomes apart from activity, gaps apart from lag, nothing written."""

import hashlib
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from ingest.db import Connection, Database
from ingest.settings import Settings
from ingest.spec.snapshot import Http, Snapshot, Window
from ingest.states import ProcessKind, TaskStatus
from ingest.store import processes
from ingest.store.cursors import advance_cursor
from ingest.store.failures import FailedPage, fail_task
from ingest.store.leases import Lease, take_back_expired
from ingest.store.ledger import Position
from ingest.store.pages import Ending, Page, Reject, write_page
from ingest.store.rows import DatasetWriter
from ingest.store.runs import Run
from ingest.store.views import Stream, forbid_writes, list_endpoints, list_streams, read_queue
from ingest.store.views_records import (
    find_quarantined,
    hash_dataset,
    list_quarantine,
    list_versions,
    sum_ledger,
)
from ingest.store.views_runs import (
    find_run,
    get_fire,
    get_lineage,
    list_batches,
    list_held_tasks,
    list_runs,
)
from ingest.store.views_series import list_coverage, list_cursors, list_window_events
from tests.factories import TTL, lease_all, make_page, make_record, make_snapshot, queue_tasks, request_run, start

_DONE = Ending(TaskStatus.SUCCEEDED, covers=True)
_DAY = timedelta(days=1)
_REGISTER = """
    WITH source AS (INSERT INTO reg_provenance (provenance_code) VALUES (:source) ON CONFLICT DO NOTHING)
    INSERT INTO reg_prov_endpoint_def (provenance_code, endpoint_name, role_code, method_code, path, dataset_name)
    VALUES (:source, :endpoint, 'SEARCH', 'GET', '/x', :source || '_' || :endpoint)
"""


class Work:
    """A registered endpoint whose last ten days are queued as ten tasks of a day each."""

    def __init__(self, database: Database, settings: Settings) -> None:
        self.database = database
        self.settings = settings
        self.start = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - 10 * _DAY
        self.snapshot = self.make_snapshot()
        self.register("plain", "items")
        queue_tasks(database, settings, self.snapshot)
        self.writer = DatasetWriter(self.snapshot)

    def make_snapshot(self, **sections: Any) -> Snapshot:
        window = Window(filter="server", field="updated_at", start=self.start, precision="day", safety_lag_s=0.0)
        return make_snapshot(**({"window": window} | sections))

    def execute(self, statement: str, **values: object) -> None:
        with self.database.transaction() as conn:
            conn.execute(text(statement), values)

    def register(self, source: str, endpoint: str) -> None:
        self.execute(_REGISTER, source=source, endpoint=endpoint)

    def read(self, view: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        with self.database.transaction() as conn:
            forbid_writes(conn)  # a view that writes fails here
            return view(conn, *arguments, **options)

    def stream(self) -> Stream:
        found: list[Stream] = self.read(list_streams, source="plain", endpoint="items")
        return found[0]

    def begin(self, owner: str = "worker-a") -> tuple[Lease, Run]:
        lease = lease_all(self.database, owner=owner)[0]
        return lease, start(self.database, lease)

    def write(self, lease: Lease, run: Run, page: Page, *, task_page: int = 1) -> None:
        with self.database.transaction() as conn:
            write_page(conn, lease, run, page, self.writer, task_page=task_page, ttl=TTL)
        if page.ending is not None and page.ending.covers:
            with self.database.transaction() as conn:
                advance_cursor(conn, lease.series_id)

    def finish(self) -> Lease:
        lease, run = self.begin()
        self.write(lease, run, make_page([make_record(f"task-{lease.task_id}")], ending=_DONE))
        return lease

    def fail(self) -> Lease:
        lease, run = self.begin()
        evidence = FailedPage(
            position=Position(), request={"hash": "h1:x"}, response={"status": 500}, stats={"itemsCount": 0}
        )
        with self.database.transaction() as conn:
            fail_task(conn, lease, run, evidence, status=TaskStatus.FAILED, error="HTTP 500")
        return lease


@pytest.fixture
def work(database: Database, settings: Settings) -> Work:
    return Work(database, settings)


def test_endpoints_are_those_registered(work: Work) -> None:
    work.register("crossref", "works")
    work.execute("UPDATE reg_provenance SET enabled = false WHERE provenance_code = 'crossref'")
    found = work.read(list_endpoints)
    assert [(e.name, e.dataset, e.enabled) for e in found] == [
        ("crossref.works", "crossref_works", False),
        ("plain.items", "plain_items", True),
    ]


def test_a_stream_that_never_ran_is_never_and_idle(work: Work) -> None:
    work.register("crossref", "works")
    stream = work.read(list_streams, source="crossref")[0]
    assert (stream.state, stream.running, stream.queued, stream.watermark) == ("never", 0, 0, None)
    assert (stream.scheduled, stream.next_fire_at) == (False, None)


def test_queued_and_running_are_activity_not_outcome(work: Work) -> None:
    assert (work.stream().state, work.stream().queued) == ("never", 10)
    lease, run = work.begin()
    work.write(lease, run, make_page([make_record("a")]))
    stream = work.stream()
    assert (stream.state, stream.running, stream.queued, stream.page) == ("never", 1, 9, 1)


def test_a_finished_window_is_ok_and_moves_the_watermark(work: Work) -> None:
    work.finish()
    stream = work.stream()
    assert (stream.state, stream.watermark) == ("ok", work.start + _DAY)
    assert stream.last_ok_at is not None
    assert stream.lag is not None
    assert stream.lag > 8 * _DAY


def test_a_schedule_makes_a_stream_stale_and_says_when_it_runs_next(work: Work) -> None:
    work.finish()
    work.execute("""INSERT INTO reg_schedule (provenance_code, endpoint_name, schedule_code, operation_code, kind,
                                              every_s)
                    VALUES ('plain', 'items', 'plain.items', 'HARVEST', 'every', 3600)""")
    work.execute("INSERT INTO ing_schedule_state VALUES ('plain.items', now() + interval '5 minutes')")
    stream = work.stream()
    assert (stream.state, stream.scheduled, stream.every_s) == ("stale", True, 3600.0)
    assert stream.next_fire_at is not None


def test_a_failed_window_shows_although_later_ones_succeeded(work: Work) -> None:
    work.fail()
    work.finish()
    stream = work.stream()
    assert (stream.state, stream.error) == ("failed", "HTTP 500")
    assert stream.watermark is None  # the first window is the hole


def test_a_failed_window_is_forgotten_once_it_is_covered(work: Work) -> None:
    lease = work.fail()
    work.execute(
        "INSERT INTO ing_coverage (series_id, covered) VALUES (:s, tstzmultirange(tstzrange(:f, :t)))",
        s=lease.series_id,
        f=work.start,
        t=work.start + _DAY,
    )
    work.finish()
    assert work.stream().error is None


def test_a_fire_that_could_not_be_planned_is_a_failure(work: Work) -> None:
    fire = request_run(work.database, work.snapshot)
    work.execute(
        """UPDATE ing_schedule_instance SET result_code = 'FAILED', record_remarks = '{"errors": ["no path"]}'
            WHERE id = :id""",
        id=fire,
    )
    assert (work.stream().state, work.stream().error) == ("failed", "no path")


def test_a_hold_shows_until_it_is_lifted(work: Work) -> None:
    work.execute("""INSERT INTO ing_hold (scope, kind, provenance_code, reason, held_by)
                    VALUES ('SOURCE', 'MANUAL', 'plain', 'tests', 'ana')""")
    assert work.stream().held == "tests"
    work.execute("UPDATE ing_hold SET lifted_at = now()")
    assert work.stream().held is None


def test_a_new_selection_starts_without_watermark_and_marks_the_old_cursor(work: Work) -> None:
    work.finish()
    http = Http(method="GET", base_url="http://127.0.0.1:9/plain", path="/other")
    queue_tasks(work.database, work.settings, work.make_snapshot(http=http))
    assert (work.stream().watermark, work.stream().state) == (None, "never")
    assert [cursor.current for cursor in work.read(list_cursors)] == [False]
    assert [view.current for view in work.read(list_coverage)] == [True, False]


def test_the_queue_counts_and_names_who_is_alive(work: Work) -> None:
    def beat(conn: Connection, kind: ProcessKind, boot: str) -> None:
        processes.beat(conn, boot_id=boot, kind=kind, host="h", pid=1, capacity=4, version="1")

    with work.database.transaction() as conn:
        beat(conn, ProcessKind.EXECUTOR, "e1")
        beat(conn, ProcessKind.EXECUTOR, "e2")
        beat(conn, ProcessKind.PLANNER, "p1")
    work.execute("UPDATE ing_process SET last_seen_at = now() - interval '1 hour' WHERE boot_id IN ('e2', 'p1')")
    work.begin()
    work.execute("UPDATE ing_task SET scheduled_at = now() + interval '1 hour' WHERE id = 5")
    queue = work.read(read_queue)
    assert (queue.ready, queue.running, queue.waiting) == (8, 1, 1)
    assert (queue.count_alive("EXECUTOR"), queue.count_alive("PLANNER"), queue.workers) == (1, 0, 4)


def test_a_run_is_summed_from_its_batches_while_it_runs_and_after_its_worker_died(work: Work) -> None:
    lease, run = work.begin()
    work.write(lease, run, make_page([make_record("a"), make_record("b")]))
    running = work.read(find_run, run.id)
    assert (running.status, running.pages, running.records, running.inserted) == ("RUNNING", 1, 2, 2)
    work.execute("UPDATE ing_task SET leased_until = now() - interval '1 second' WHERE id = :id", id=lease.task_id)
    with work.database.transaction() as conn:
        take_back_expired(conn, poison=3, stall=timedelta(hours=1))
    dead = work.read(find_run, run.id)
    assert (dead.status, dead.error, dead.records) == ("FAILED", "lease expired", 2)
    lease, again = work.begin("worker-b")
    work.write(lease, again, make_page([make_record("c")], number=2, ending=_DONE), task_page=2)
    attempts = work.read(list_runs, task_id=lease.task_id)
    assert [(run.attempt_no, run.status, run.records) for run in attempts] == [(2, "SUCCEEDED", 1), (1, "FAILED", 2)]
    assert work.read(get_lineage, again.id).first_page == 1


def test_runs_are_listed_newest_first_and_by_status(work: Work) -> None:
    work.fail()
    work.finish()
    assert [run.status for run in work.read(list_runs, source="plain")] == ["SUCCEEDED", "FAILED"]
    assert [run.status for run in work.read(list_runs, status="FAILED")] == ["FAILED"]
    assert work.read(list_runs, source="crossref") == []
    assert work.read(find_run, 10**9) is None


def test_lineage_accounts_for_every_record(work: Work) -> None:
    lease, run = work.begin()
    reject = Reject(2, None, '{"title": "x"}', "$.id", "missing")
    work.write(lease, run, make_page([make_record("a")], rejects=[reject], ending=_DONE))
    lineage = work.read(get_lineage, run.id)
    assert {name: count for name, count in lineage.counts.items() if count} == {"inserted": 1, "quarantined": 1}
    assert (lineage.task_status, lineage.lease_owner) == ("SUCCEEDED", "worker-a")
    assert lineage.trigger.startswith("manual:")


def test_batches_come_in_order_and_can_be_paged(work: Work) -> None:
    lease, run = work.begin()
    for page in (1, 2, 3):
        work.write(lease, run, make_page([make_record(str(page))], number=page), task_page=page)
    assert [batch.batch_no for batch in work.read(list_batches, run.id, limit=2)] == [1, 2]
    last = work.read(list_batches, run.id, after=2)
    assert [(batch.batch_no, batch.http_status, batch.stats["inserted"]) for batch in last] == [(3, 200, 1)]


def test_a_fire_is_over_when_its_last_window_ended(database: Database, settings: Settings) -> None:
    work = Work(database, settings)
    with database.transaction() as conn:
        fire_id = conn.execute(text("SELECT id FROM ing_schedule_instance")).scalar_one()
    assert not work.read(get_fire, fire_id).over
    work.fail()
    for _ in range(9):
        work.finish()
    fire = work.read(get_fire, fire_id)
    assert (fire.over, fire.succeeded, fire.failed, fire.error) == (True, 9, 1, "HTTP 500")
    assert (fire.tasks, fire.pages, fire.records, fire.inserted) == (10, 9, 9, 9)


def test_a_fire_without_a_planner_waits(work: Work) -> None:
    fire = work.read(get_fire, request_run(work.database, work.snapshot))
    assert (fire.result, fire.over, fire.tasks) == ("FIRED", False, 0)


def test_held_tasks_are_found_by_process(work: Work) -> None:
    with work.database.transaction() as conn:
        processes.beat(
            conn, boot_id="worker-a", kind=ProcessKind.EXECUTOR, host="h", pid=os.getpid(), capacity=1, version="1"
        )
    lease, run = work.begin()
    work.write(lease, run, make_page([make_record("a")]))
    held = work.read(list_held_tasks, os.getpid())
    assert [(task.task_id, task.name, task.pages_done) for task in held] == [(lease.task_id, "plain.items", 1)]
    assert work.read(list_held_tasks, 1) == []


def test_coverage_tells_holes_from_what_is_in_flight_and_what_is_due(work: Work) -> None:
    work.finish()
    work.fail()
    work.finish()
    view = work.read(list_coverage)[0]
    first, last = work.start, work.start + 10 * _DAY
    assert view.covered == ((first, first + _DAY), (first + 2 * _DAY, first + 3 * _DAY))
    assert view.in_flight == ((first + 3 * _DAY, last),)
    assert view.holes == ((first + _DAY, first + 2 * _DAY),)
    assert view.due is None
    assert round(view.share, 2) == 0.2


def test_what_no_fire_asked_for_yet_is_due_not_missing(work: Work) -> None:
    work.finish()
    work.execute("UPDATE ing_plan_slice SET open = false")
    view = work.read(list_coverage)[0]
    assert view.holes == ()
    assert view.due == (work.start + _DAY, work.start + 10 * _DAY)


def test_a_source_without_a_time_filter_has_no_gaps(database: Database, settings: Settings) -> None:
    snapshot = make_snapshot(source="github", endpoint="issues", window=Window())
    queue_tasks(database, settings, snapshot)
    with database.transaction() as conn:
        view = list_coverage(conn, source="github")[0]
    assert (view.windowed, view.gaps, len(view.in_flight)) == (False, (), 1)


def test_cursor_events_are_the_finished_windows(work: Work) -> None:
    lease = work.finish()
    cursor = work.read(list_cursors, source="plain", endpoint="items")[0]
    assert (cursor.instant, cursor.cursor_key, cursor.current) == (work.start + _DAY, "updated_at", True)
    events = work.read(list_window_events, lease.series_id)
    assert [(event.window_from, event.window_to) for event in events] == [(work.start, work.start + _DAY)]


def test_quarantine_keeps_the_record_as_it_was_sent(work: Work) -> None:
    lease, run = work.begin()
    work.write(lease, run, make_page(rejects=[Reject(7, None, '{"a":1.10}', "$.id", "missing")]))
    found = work.read(list_quarantine, source="plain")[0]
    assert (found.record, found.item_no, found.batch_no, found.reason) == ('{"a":1.10}', 7, 1, "missing")
    assert work.read(find_quarantined, found.id).record == found.record
    assert work.read(find_quarantined, 10**9) is None
    work.execute("UPDATE ing_quarantine SET status_code = 'DROPPED'")
    assert work.read(list_quarantine) == []


def test_a_dataset_hashes_to_its_keys_and_versions_in_byte_order(work: Work) -> None:
    empty = work.read(hash_dataset, "plain_items")
    assert (empty.count, empty.sha256) == (0, hashlib.sha256(b"").hexdigest())
    lease, run = work.begin()
    work.write(lease, run, make_page([make_record("b", 2), make_record("B", 1), make_record("é", 3)]))
    lines = "B 2024-01-01T00:00:00Z\nb 2024-01-02T00:00:00Z\né 2024-01-03T00:00:00Z\n"
    content = work.read(hash_dataset, "plain_items")
    assert (content.count, content.sha256) == (3, hashlib.sha256(lines.encode()).hexdigest())
    assert work.read(list_versions, "plain_items")["b"] == datetime(2024, 1, 2, tzinfo=UTC)


def test_the_ledger_adds_up_over_all_runs(work: Work) -> None:
    work.finish()
    work.fail()
    totals = work.read(sum_ledger, source="plain", endpoint="items")
    assert (totals.requests, totals.pages, totals.inserted, totals.quarantined) == (2, 1, 1, 0)
