"""Views of the streams: what every registered endpoint did last, does now and will do next (read-only).

Invariant: nothing here writes, every list is bounded, and LAST OUTCOME and CURRENT ACTIVITY are separate facts: a
stream that is being read is not therefore well. The other views are beside this one, one noun each.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import text

from ingest.db import Connection
from ingest.spec.snapshot import Window
from ingest.spec.windows import coarsest_unit
from ingest.store.processes import Process, list_processes

MOST_STREAMS = 1000
_MOST_QUEUED = 10_000  # counting further costs time and tells nobody anything
_UNIT_SECONDS = {"day": 86_400, "hour": 3_600, "minute": 60}
_GRACE = timedelta(seconds=60)


def forbid_writes(conn: Connection) -> None:
    """Make the transaction read-only: whatever a command does by mistake, it cannot change anything."""
    conn.exec_driver_sql("SET TRANSACTION READ ONLY")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A registered endpoint."""

    source: str
    endpoint: str
    dataset: str
    enabled: bool

    @property
    def name(self) -> str:
        """source.endpoint, as people write it."""
        return f"{self.source}.{self.endpoint}"


_ENDPOINTS = text("""
    SELECT e.provenance_code AS source, e.endpoint_name AS endpoint, e.dataset_name AS dataset,
           e.enabled AND p.enabled AS enabled
      FROM reg_prov_endpoint_def e JOIN reg_provenance p USING (provenance_code)
     ORDER BY 1, 2 LIMIT :limit
""")


def list_endpoints(conn: Connection) -> list[Endpoint]:
    """Return every registered endpoint, by name."""
    return [Endpoint(**row._mapping) for row in conn.execute(_ENDPOINTS, {"limit": MOST_STREAMS})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """One endpoint: `last_ok_at`, `failed_at`, `error` are its last outcome, `running` to `held` what it does now."""

    source: str
    endpoint: str
    enabled: bool
    now: datetime
    last_ok_at: datetime | None
    failed_at: datetime | None
    error: str | None
    running: int
    page: int
    records: int
    queued: int
    due_at: datetime | None
    held: str | None
    watermark: datetime | None
    next_fire_at: datetime | None
    scheduled: bool
    every_s: float | None
    window: dict[str, Any] | None

    @property
    def name(self) -> str:
        """source.endpoint, as people write it."""
        return f"{self.source}.{self.endpoint}"

    @property
    def lag(self) -> timedelta | None:
        """How far the watermark is behind the clock."""
        return None if self.watermark is None else self.now - self.watermark

    @property
    def allowance(self) -> timedelta | None:
        """How far it may be behind: two intervals, the safety lag, and the source's unit; None without a schedule."""
        if self.every_s is None or self.window is None:
            return None
        window = Window.model_validate(self.window)
        unit = _UNIT_SECONDS.get(coarsest_unit(window), 1)
        return timedelta(seconds=2 * self.every_s + window.safety_lag_s + unit) + _GRACE

    @property
    def state(self) -> str:
        """The last outcome: `never`, `failed` (a window failed and is still missing), `stale` or `ok`."""
        if self.error is not None:
            return "failed"
        if self.last_ok_at is None:
            return "never"
        behind, allowed = self.lag, self.allowance
        if behind is not None and allowed is not None and behind > allowed:
            return "stale"
        return "ok"


# The newest plan says what the endpoint asks for now; a series under an older selection is history, not lag.
# A failed window counts until it is covered: windows end out of order, so "the newest task" would hide it.
_STREAMS = text(f"""
    SELECT e.provenance_code AS source, e.endpoint_name AS endpoint, e.enabled AND p.enabled AS enabled, now() AS now,
           good.finished_at AS last_ok_at, coalesce(bad.finished_at, broken.created_at) AS failed_at,
           coalesce(bad.error, broken.error) AS error, busy.running, busy.page, busy.records, waiting.queued,
           waiting.due_at, held.reason AS held, mark.watermark, plan.next_fire_at, plan.scheduled, plan.every_s,
           spec."window"
      FROM reg_prov_endpoint_def e JOIN reg_provenance p USING (provenance_code)
      LEFT JOIN LATERAL (
           SELECT r.selection_hash, s.snapshot -> 'window' AS "window"
             FROM ing_plan n JOIN ing_spec s USING (spec_fingerprint)
             JOIN ing_plan_slice c ON c.plan_id = n.id JOIN ing_series r ON r.id = c.series_id
            WHERE n.provenance_code = e.provenance_code AND n.endpoint_name = e.endpoint_name
              AND n.operation_code = 'HARVEST'
            ORDER BY n.created_at DESC, n.id DESC LIMIT 1) spec ON true
      LEFT JOIN LATERAL (
           SELECT min(k.normalized_instant) AS watermark
             FROM ing_series r JOIN ing_cursor k ON k.series_id = r.id AND k.provenance_code = r.provenance_code
            WHERE r.provenance_code = e.provenance_code AND r.endpoint_name = e.endpoint_name
              AND r.selection_hash = spec.selection_hash AND k.cursor_type_code = 'TIME') mark ON true
      LEFT JOIN LATERAL (
           SELECT t.finished_at FROM ing_task t JOIN ing_series r ON r.id = t.series_id
            WHERE t.provenance_code = e.provenance_code AND t.endpoint_name = e.endpoint_name
              AND t.operation_code = 'HARVEST' AND t.status_code = 'SUCCEEDED'
              AND r.selection_hash = spec.selection_hash
            ORDER BY t.id DESC LIMIT 1) good ON true
      LEFT JOIN LATERAL (
           SELECT t.finished_at, coalesce(t.error, 'failed') AS error
             FROM (SELECT * FROM ing_task n
                    WHERE n.provenance_code = e.provenance_code AND n.endpoint_name = e.endpoint_name
                      AND n.operation_code = 'HARVEST' AND n.status_code IN ('SUCCEEDED', 'FAILED', 'PARTIAL')
                    ORDER BY n.id DESC LIMIT 500) t
             JOIN ing_plan_slice s ON s.id = t.slice_id
             JOIN ing_series r ON r.id = t.series_id AND r.selection_hash = spec.selection_hash
             LEFT JOIN ing_coverage c ON c.series_id = t.series_id
            WHERE t.status_code <> 'SUCCEEDED' AND NOT coalesce(c.covered @> s.span, false)
            ORDER BY t.id DESC LIMIT 1) bad ON true
      LEFT JOIN LATERAL (
           SELECT f.created_at, coalesce(f.record_remarks -> 'errors' ->> 0, 'could not be planned') AS error
             FROM (SELECT * FROM ing_schedule_instance n
                    WHERE n.provenance_code = e.provenance_code AND n.endpoint_name = e.endpoint_name
                    ORDER BY n.created_at DESC LIMIT 1) f
            WHERE f.result_code = 'FAILED') broken ON true
      CROSS JOIN LATERAL (
           SELECT count(*) AS running, coalesce(max(t.pages_done), 0) AS page,
                  coalesce(sum((t.checkpoint -> 'seen' ->> 'items')::bigint), 0)::bigint AS records
             FROM ing_lane l JOIN ing_task t ON t.lane_id = l.id AND t.status_code IN ('DISPATCHED', 'EXECUTING')
            WHERE l.provenance_code = e.provenance_code AND l.endpoint_name = e.endpoint_name) busy
      CROSS JOIN LATERAL (
           SELECT count(*) AS queued, min(greatest(q.scheduled_at, q.blocked_until)) AS due_at
             FROM (SELECT t.scheduled_at, l.blocked_until FROM ing_lane l
                     JOIN ing_task t ON t.lane_id = l.id AND t.status_code = 'QUEUED'
                    WHERE l.provenance_code = e.provenance_code AND l.endpoint_name = e.endpoint_name
                    LIMIT {_MOST_QUEUED + 1}) q) waiting
      LEFT JOIN LATERAL (
           SELECT h.reason FROM ing_hold h
            WHERE h.lifted_at IS NULL AND (h.until IS NULL OR h.until > now())
              AND h.provenance_code = e.provenance_code AND h.credential_code IS NULL
              AND (h.endpoint_name IS NULL OR h.endpoint_name = e.endpoint_name)
            ORDER BY h.id LIMIT 1) held ON true
      CROSS JOIN LATERAL (
           SELECT min(coalesce(s.next_run_at, s.next_fire_at))
                      FILTER (WHERE coalesce(s.next_run_at, s.next_fire_at) < '9000-01-01') AS next_fire_at,
                  count(*) > 0 AS scheduled, min(coalesce(s.every_s, r.every_s))::float8 AS every_s
             FROM reg_schedule r LEFT JOIN ing_schedule_state s USING (schedule_code)
            WHERE r.provenance_code = e.provenance_code AND r.endpoint_name = e.endpoint_name
              AND coalesce(s.enabled, r.enabled)) plan
     WHERE (CAST(:source AS text) IS NULL OR e.provenance_code = :source)
       AND (CAST(:endpoint AS text) IS NULL OR e.endpoint_name = :endpoint)
     ORDER BY 1, 2 LIMIT {MOST_STREAMS}
""")


def list_streams(conn: Connection, *, source: str | None = None, endpoint: str | None = None) -> list[Stream]:
    """Return what every registered endpoint did, does and will do."""
    return [Stream(**row._mapping) for row in conn.execute(_STREAMS, {"source": source, "endpoint": endpoint})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The queue as a whole, and who works on it; counts stop at `limit`."""

    ready: int
    waiting: int
    running: int
    now: datetime
    limit: int
    processes: tuple[Process, ...]

    def count_alive(self, kind: str) -> int:
        """Return how many daemons of a kind show a heartbeat."""
        return sum(process.alive and process.kind == kind for process in self.processes)

    @property
    def workers(self) -> int:
        """The threads of all living executors."""
        return sum(process.capacity for process in self.processes if process.alive and process.kind == "EXECUTOR")


_QUEUE = text("""
    SELECT (SELECT count(*) FROM (SELECT FROM ing_task WHERE status_code = 'QUEUED' AND scheduled_at <= now()
             LIMIT :limit) AS a) AS ready,
           (SELECT count(*) FROM (SELECT FROM ing_task WHERE status_code = 'QUEUED' AND scheduled_at > now()
             LIMIT :limit) AS b) AS waiting,
           (SELECT count(*) FROM (SELECT FROM ing_task WHERE status_code IN ('DISPATCHED', 'EXECUTING')
             LIMIT :limit) AS c) AS running,
           now() AS now
""")


def read_queue(conn: Connection) -> Queue:
    """Return the queue's counts and the daemons."""
    counts = conn.execute(_QUEUE, {"limit": _MOST_QUEUED}).one()
    return Queue(**counts._mapping, limit=_MOST_QUEUED, processes=tuple(list_processes(conn)))
