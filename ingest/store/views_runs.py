"""Views of runs, their batches and the progress of a fire (read-only, bounded)."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import text

from ingest.db import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One attempt at a task, with the sums of its batches."""

    id: int
    source: str
    endpoint: str
    operation: str
    status: str
    task_id: int
    attempt_no: int
    window_from: datetime | None
    window_to: datetime | None
    started_at: datetime
    finished_at: datetime | None
    error: str | None
    pages: int
    records: int
    inserted: int
    updated: int
    quarantined: int
    requests: int
    throttled: int
    now: datetime

    @property
    def name(self) -> str:
        """source.endpoint, as people write it."""
        return f"{self.source}.{self.endpoint}"

    @property
    def took(self) -> timedelta:
        """How long it ran, up to now if it still does."""
        return (self.finished_at or self.now) - self.started_at


# A run's stored sums are written at its end; one that runs, or whose worker died, is summed from its batches.
_RUN = """
    SELECT r.id, r.provenance_code AS source, r.endpoint_name AS endpoint, r.operation_code AS operation,
           r.status_code AS status, r.task_id, r.attempt_no, r.window_from, r.window_to, r.started_at, r.finished_at,
           r.error, now() AS now,
           coalesce((r.stats ->> 'pagesVisited')::bigint, live.pages, 0) AS pages,
           coalesce((r.stats ->> 'retCount')::bigint, live.records, 0) AS records,
           coalesce((r.stats ->> 'inserted')::bigint, live.inserted, 0) AS inserted,
           coalesce((r.stats ->> 'updated')::bigint, live.updated, 0) AS updated,
           coalesce((r.stats ->> 'failed')::bigint, live.quarantined, 0) AS quarantined,
           coalesce((r.stats ->> 'reqCount')::bigint, live.requests, 0) AS requests,
           coalesce((r.stats ->> '429Count')::bigint, live.throttled, 0) AS throttled
      FROM ing_task_run r
      LEFT JOIN LATERAL (
           SELECT count(*) FILTER (WHERE b.status_code = 'SUCCEEDED') AS pages,
                  sum((b.stats ->> 'itemsCount')::bigint)::bigint AS records,
                  sum((b.stats ->> 'inserted')::bigint)::bigint AS inserted,
                  sum((b.stats ->> 'updated')::bigint)::bigint AS updated,
                  sum((b.stats ->> 'quarantined')::bigint)::bigint AS quarantined,
                  (count(*) + coalesce(sum((b.stats ->> 'retryCount')::bigint), 0))::bigint AS requests,
                  sum((b.stats ->> '429Count')::bigint)::bigint AS throttled
             FROM ing_task_run_batch b WHERE b.run_id = r.id AND r.stats = '{}') live ON true
"""

_LIST = text(f"""{_RUN}
     WHERE (CAST(:source AS text) IS NULL OR r.provenance_code = :source)
       AND (CAST(:endpoint AS text) IS NULL OR r.endpoint_name = :endpoint)
       AND (CAST(:status AS text) IS NULL OR r.status_code = :status)
       AND (CAST(:task AS bigint) IS NULL OR r.task_id = :task)
     ORDER BY r.id DESC LIMIT :limit
""")

_ONE = text(f"{_RUN} WHERE r.id = :run")


def list_runs(
    conn: Connection,
    *,
    source: str | None = None,
    endpoint: str | None = None,
    status: str | None = None,
    task_id: int | None = None,
    limit: int = 20,
) -> list[RunView]:
    """Return runs, newest first."""
    values = {"source": source, "endpoint": endpoint, "status": status, "task": task_id, "limit": limit}
    return [RunView(**row._mapping) for row in conn.execute(_LIST, values)]


def find_run(conn: Connection, run_id: int) -> RunView | None:
    """Return the run, or None."""
    row = conn.execute(_ONE, {"run": run_id}).one_or_none()
    return None if row is None else RunView(**row._mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Lineage:
    """Where a run comes from and what became of every record it was sent (DESIGN rule 10)."""

    schedule_instance_id: int
    plan_id: int
    slice_id: int
    task_status: str
    task_pages: int
    trigger: str
    lease_owner: str
    spec_fingerprint: str
    first_page: int
    checkpoint: dict[str, Any] | None
    counts: dict[str, int]


_LINEAGE = text("""
    SELECT r.schedule_instance_id, r.plan_id, r.slice_id, t.status_code AS task_status, t.pages_done AS task_pages,
           coalesce(i.scheduler_job_id, '') AS "trigger", r.lease_owner, t.spec_fingerprint, r.first_page, r.checkpoint,
           (SELECT coalesce(jsonb_object_agg(name, total), '{}') FROM (
                SELECT name, coalesce(sum((b.stats ->> name)::bigint), 0) AS total
                  FROM ing_task_run_batch b,
                       unnest(ARRAY['inserted', 'updated', 'unchanged', 'stale', 'duplicate', 'filtered',
                                    'quarantined']) AS name
                 WHERE b.run_id = r.id GROUP BY name) sums) AS counts
      FROM ing_task_run r JOIN ing_task t ON t.id = r.task_id
      LEFT JOIN ing_schedule_instance i ON i.id = r.schedule_instance_id
     WHERE r.id = :run
""")


def get_lineage(conn: Connection, run_id: int) -> Lineage:
    """Return where an existing run comes from."""
    return Lineage(**conn.execute(_LINEAGE, {"run": run_id}).one()._mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchView:
    """One line of the ledger."""

    id: int
    batch_no: int
    status: str
    task_page_no: int | None
    page_no: int | None
    created_at: datetime
    method: str | None
    url: str | None
    query: list[list[str]] | None
    http_status: int | None
    bytes: int | None
    stats: dict[str, Any]
    error: str | None


_BATCHES = text("""
    SELECT id, batch_no, status_code AS status, task_page_no, page_no, created_at,
           request_digest ->> 'method' AS method,
           request_digest ->> 'url' AS url, request_digest -> 'query' AS query,
           (response_digest ->> 'status')::integer AS http_status, (response_digest ->> 'bytes')::bigint AS bytes,
           stats, error
      FROM ing_task_run_batch WHERE run_id = :run AND batch_no > :after ORDER BY batch_no LIMIT :limit
""")


def list_batches(conn: Connection, run_id: int, *, after: int = 0, limit: int = 100) -> list[BatchView]:
    """Return the run's batches in order, those numbered above `after`."""
    rows = conn.execute(_BATCHES, {"run": run_id, "after": after, "limit": limit})
    return [BatchView(**row._mapping) for row in rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class FireView:
    """How far the work of one fire has come."""

    id: int
    source: str
    endpoint: str
    result: str
    remarks: dict[str, Any]
    slicing: bool
    live: int
    running: int
    succeeded: int
    failed: int
    pages: int
    records: int
    inserted: int
    updated: int
    quarantined: int
    error: str | None

    @property
    def name(self) -> str:
        """source.endpoint, as people write it."""
        return f"{self.source}.{self.endpoint}"

    @property
    def over(self) -> bool:
        """Nothing more will come of it."""
        return self.result != "FIRED" and not self.slicing and self.live == 0

    @property
    def tasks(self) -> int:
        """How many windows it was cut into so far."""
        return self.live + self.succeeded + self.failed


_FIRE = text("""
    SELECT i.id, i.provenance_code AS source, i.endpoint_name AS endpoint, i.result_code AS result,
           i.record_remarks AS remarks, coalesce(p.status_code IN ('DRAFT', 'SLICING', 'PARTIAL'), false) AS slicing,
           tasks.live, tasks.running, tasks.succeeded, tasks.failed, tasks.error, tasks.pages,
           coalesce(sums.records, 0) AS records, coalesce(sums.inserted, 0) AS inserted,
           coalesce(sums.updated, 0) AS updated, coalesce(sums.quarantined, 0) AS quarantined
      FROM ing_schedule_instance i
      LEFT JOIN ing_plan p ON p.schedule_instance_id = i.id
     CROSS JOIN LATERAL (
           SELECT count(*) FILTER (WHERE t.status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING')) AS live,
                  count(*) FILTER (WHERE t.status_code IN ('DISPATCHED', 'EXECUTING')) AS running,
                  count(*) FILTER (WHERE t.status_code = 'SUCCEEDED') AS succeeded,
                  count(*) FILTER (WHERE t.status_code IN ('FAILED', 'PARTIAL', 'CANCELLED')) AS failed,
                  max(t.error) FILTER (WHERE t.status_code IN ('FAILED', 'PARTIAL', 'CANCELLED')) AS error,
                  coalesce(sum(t.pages_done), 0)::bigint AS pages
             FROM ing_task t WHERE t.plan_id = p.id) tasks
     CROSS JOIN LATERAL (
           SELECT sum((b.stats ->> 'itemsCount')::bigint)::bigint AS records,
                  sum((b.stats ->> 'inserted')::bigint)::bigint AS inserted,
                  sum((b.stats ->> 'updated')::bigint)::bigint AS updated,
                  sum((b.stats ->> 'quarantined')::bigint)::bigint AS quarantined
             FROM ing_task_run r JOIN ing_task_run_batch b ON b.run_id = r.id WHERE r.plan_id = p.id) sums
     WHERE i.id = :fire
""")


def get_fire(conn: Connection, fire_id: int) -> FireView:
    """Return how far an existing fire has come."""
    return FireView(**conn.execute(_FIRE, {"fire": fire_id}).one()._mapping)


@dataclass(frozen=True, slots=True)
class HeldTask:
    """A task in one process' hands, and how far it is."""

    task_id: int
    name: str
    pages_done: int


_HELD = text("""
    SELECT t.id, t.provenance_code || '.' || t.endpoint_name, t.pages_done
      FROM ing_task t JOIN ing_process p ON p.boot_id = t.lease_owner
     WHERE p.pid = :pid AND p.stopped_at IS NULL AND t.status_code = 'EXECUTING'
     ORDER BY t.pages_done DESC, t.id LIMIT 100
""")


def list_held_tasks(conn: Connection, pid: int) -> list[HeldTask]:
    """Return what the process with this id is working on now, the furthest first."""
    return [HeldTask(*row) for row in conn.execute(_HELD, {"pid": pid})]
