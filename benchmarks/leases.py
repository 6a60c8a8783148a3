"""The queue: picking tasks out of 100,000 pending over 20 lanes, and ending them, by the real functions.

`leave` cells end a leased task with the fence alone, one transaction a task: the least a task can cost. `life` cells
are a task's whole life without its source: lease, start of the run, and an empty last page with ledger row, event,
slice end, run end and coverage, in the three transactions an executor uses. Every leaser is a process of its own.
"""

import argparse
import multiprocessing
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Barrier
from typing import Any

from sqlalchemy import text

from benchmarks.latency import summarize
from benchmarks.ours import make_snapshot
from benchmarks.postgres import Postgres, fresh_database
from benchmarks.source import Source
from ingest.db import Database
from ingest.states import Operation, TaskStatus
from ingest.store import lanes, series
from ingest.store.leases import Lease, lease_tasks
from ingest.store.ledger import Position
from ingest.store.pages import Ending, Page, write_page
from ingest.store.rows import DatasetWriter
from ingest.store.runs import leave, start_run
from ingest.store.schema import migrate

LANES = 20
_TTL = timedelta(seconds=30)
_ANCHOR = datetime(2020, 1, 1, tzinfo=UTC)
_CELLS = [("leave", 1, 1), ("leave", 10, 1), ("leave", 1, 4), ("leave", 10, 4), ("life", 10, 1), ("life", 10, 4)]

_SLICES = text("""
    INSERT INTO ing_plan_slice (id, plan_id, series_id, provenance_code, endpoint_name, operation_code, slice_no,
           slice_spec, slice_signature_hash, expr_hash, expr_snapshot, purpose, span, status_code)
    SELECT n, 1, :series, :source, 'items', 'HARVEST', n, '{}', n::text, 'h1:expr', '{}', 'FILL',
           tstzrange(:anchor + n * interval '1 min', :anchor + (n + 1) * interval '1 min'), 'READY'
      FROM generate_series(CAST(:first AS integer), CAST(:first AS integer) + CAST(:count AS integer) - 1) AS n
""")

_TASKS = text("""
    INSERT INTO ing_task (lane_id, schedule_instance_id, plan_id, slice_id, series_id, provenance_code, endpoint_name,
           operation_code, spec_fingerprint, expr_hash, params, idempotent_key, priority)
    SELECT :lane, 1, 1, s.id, :series, :source, 'items', 'HARVEST', 'h1:spec', 'h1:expr',
           jsonb_build_object('from', lower(s.span), 'to', upper(s.span), 'purpose', 'FILL'), 'task-' || s.id, 50
      FROM ing_plan_slice s WHERE s.id >= :first AND s.series_id = :series
""")

_QUEUED = text("SELECT count(*) FROM ing_task WHERE status_code = 'QUEUED'")


class Backlog:
    """The pending tasks of 20 sources with one lane each."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._next = 1
        self._lanes: list[tuple[int, int, str]] = []
        with database.transaction() as conn:
            for number in range(LANES):
                source = f"source_{number:02d}"
                lane = lanes.ensure_lane(
                    conn, source=source, endpoint="items", operation=Operation.HARVEST, credential="", concurrency=50
                )
                which = series.ensure_series(conn, source=source, endpoint="items", selection="h1:s", anchor=_ANCHOR)
                self._lanes.append((lane, which.id, source))

    def fill(self, pending: int) -> None:
        """Queue tasks until so many are pending again; dead rows of earlier cells stay, as they would."""
        with self._database.transaction() as conn:
            missing = pending - int(conn.execute(_QUEUED).scalar_one())
            each = -(-missing // LANES)
            for lane, which, source in self._lanes:
                values = {"lane": lane, "series": which, "source": source, "first": self._next, "count": each}
                conn.execute(_SLICES, values | {"anchor": _ANCHOR})
                conn.execute(_TASKS, values)
                self._next += max(0, each)
        with self._database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
            conn.exec_driver_sql("ANALYZE ing_task")
            conn.exec_driver_sql("CHECKPOINT")


def _end_by_fence(database: Database, lease: Lease, _writer: DatasetWriter) -> None:
    with database.transaction() as conn:
        leave(conn, lease, TaskStatus.SUCCEEDED, error=None)


def _end_by_page(database: Database, lease: Lease, writer: DatasetWriter) -> None:
    with database.transaction() as conn:
        run = start_run(conn, lease, ttl=_TTL)
    page = Page(
        position=Position(page_no=1), request={"hash": "h1:request"}, response={"status": 200},
        stats={"itemsCount": 0}, records=[], rejects=[], duplicate=0, filtered=0, observed_max=None,
        cursor_key="updated_at", checkpoint={"next": None}, ending=Ending(TaskStatus.SUCCEEDED, covers=True),
    )  # fmt: skip
    with database.transaction() as conn:
        write_page(conn, lease, run, page, writer, task_page=1, ttl=_TTL)


_ENDINGS: dict[str, Callable[[Database, Lease, DatasetWriter], None]] = {"leave": _end_by_fence, "life": _end_by_page}


def _work(url: str, mode: str, k: int, seconds: float, together: Barrier, told: "Queue[Any]") -> None:
    """Lease and end tasks until the time is over; tell how many and how long each pick took."""
    database, end = Database(url, pool_size=1), _ENDINGS[mode]
    writer = DatasetWriter(make_snapshot(Source("http://127.0.0.1:1", 0, 1, 1), part=0, typed=False))
    database.check()
    owner, picks, done = f"leaser-{multiprocessing.current_process().pid}", [], 0
    together.wait()
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        with database.transaction() as conn:
            leases = lease_tasks(conn, owner=owner, limit=k, ttl=_TTL)
        picks.append(time.monotonic() - began)
        for lease in leases:
            end(database, lease, writer)
        done += len(leases)
    database.close()
    told.put((done, picks))


def _run_cell(url: str, mode: str, k: int, leasers: int, seconds: float) -> dict[str, Any]:
    context = multiprocessing.get_context("spawn")
    together, told = context.Barrier(leasers + 1), context.Queue()
    workers = [
        context.Process(target=_work, args=(url, mode, k, seconds, together, told), daemon=True) for _ in range(leasers)
    ]
    for worker in workers:
        worker.start()
    together.wait(60)
    began = time.monotonic()
    answers = [told.get(timeout=seconds + 60) for _ in workers]
    elapsed = time.monotonic() - began
    for worker in workers:
        worker.join()
    picks = [pick for _, some in answers for pick in some]
    done = sum(count for count, _ in answers)
    return {"mode": mode, "k": k, "leasers": leasers, "tasks_per_s": done / elapsed, "pick": summarize(picks)}


def measure(postgres: Postgres, options: argparse.Namespace, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Measure every cell on one database that is filled up again before each."""
    with fresh_database(postgres, "bench_leases") as url:
        database = Database(url, pool_size=2, owner=True)
        migrate(database)
        backlog = Backlog(database)
        for repeat in range(options.repeats):
            for mode, k, leasers in _CELLS:
                backlog.fill(options.pending)
                cell = _run_cell(url, mode, k, leasers, options.seconds) | {"repeat": repeat}
                pick = cell["pick"]
                say(
                    f"queue {mode:5} k={k:<2} leasers={leasers}: {cell['tasks_per_s']:7,.0f} tasks/s  "
                    f"pick mean {pick['mean_ms']:.2f} ms, P95 {pick['p95_ms']:.2f} ms"
                )
                yield cell
        database.close()
