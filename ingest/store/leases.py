"""Leases: each due task to exactly one worker, and back when the worker dies (E1, DESIGN rule 3).

Invariant: a lease is `(lease_owner, lease_count)`; the count is never reset, so a worker that was declared dead and
wakes up again shows an old count and can write nothing. The database's clock alone decides time.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import text

from ingest.db import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A task this process may work on until its lease ends, with all it needs to do so."""

    task_id: int
    lane_id: int
    owner: str
    count: int
    schedule_instance_id: int
    plan_id: int
    slice_id: int
    series_id: int
    provenance_code: str
    endpoint_name: str
    operation_code: str
    credential_code: str
    spec_fingerprint: str
    expr_hash: str
    params: dict[str, Any]
    pages_done: int
    checkpoint: dict[str, Any] | None

    @property
    def name(self) -> str:
        """source.endpoint, as people write it."""
        return f"{self.provenance_code}.{self.endpoint_name}"

    @property
    def span(self) -> tuple[datetime, datetime] | None:
        """The stretch of time this task reads, or None for a source without one."""
        if self.params.get("from") is None:
            return None
        return datetime.fromisoformat(self.params["from"]), datetime.fromisoformat(self.params["to"])


_LEASE = text("""
    SELECT id AS task_id, lane_id, lease_owner AS owner, lease_count AS count, schedule_instance_id, plan_id, slice_id,
           series_id, provenance_code, endpoint_name, operation_code, credential_code, spec_fingerprint, expr_hash,
           params, pages_done, checkpoint
      FROM ing_lease(:owner, :limit, :ttl)
""")


def lease_tasks(conn: Connection, *, owner: str, limit: int, ttl: timedelta) -> list[Lease]:
    """Lease up to `limit` due tasks over the lanes in turn; never waits, may return fewer or none."""
    rows = conn.execute(_LEASE, {"owner": owner, "limit": limit, "ttl": ttl})
    return [Lease(**row._mapping) for row in rows]


# Locked in id order: two keepers of one process can never deadlock with a reaper, which skips what is locked.
_RENEW = text("""
    WITH mine AS (
        SELECT t.id FROM ing_task t
          JOIN unnest(CAST(:ids AS bigint[]), CAST(:counts AS integer[])) AS held(id, lease_count)
            ON t.id = held.id AND t.lease_count = held.lease_count
         WHERE t.lease_owner = :owner AND t.status_code IN ('DISPATCHED', 'EXECUTING')
         ORDER BY t.id FOR UPDATE OF t SKIP LOCKED)
    UPDATE ing_task t SET leased_until = clock_timestamp() + :ttl, renew_count = t.renew_count + 1
      FROM mine WHERE t.id = mine.id RETURNING t.id
""")

_STILL_MINE = text("""
    SELECT t.id FROM ing_task t
      JOIN unnest(CAST(:ids AS bigint[]), CAST(:counts AS integer[])) AS held(id, lease_count)
        ON t.id = held.id AND t.lease_count = held.lease_count
     WHERE t.lease_owner = :owner AND t.status_code IN ('DISPATCHED', 'EXECUTING')
""")


def renew_leases(
    conn: Connection, *, owner: str, held: Iterable[tuple[int, int]], ttl: timedelta
) -> tuple[frozenset[int], frozenset[int]]:
    """Renew every `(task_id, lease_count)` in one statement; return those renewed and those still ours.

    A row locked by its own page's transaction is skipped: the fence in that transaction renews it too.
    """
    pairs = sorted(held)
    values = {"owner": owner, "ids": [p[0] for p in pairs], "counts": [p[1] for p in pairs]}
    renewed = frozenset(row[0] for row in conn.execute(_RENEW, values | {"ttl": ttl}))
    if len(renewed) == len(pairs):
        return renewed, renewed
    return renewed, frozenset(row[0] for row in conn.execute(_STILL_MINE, values))


@dataclass(frozen=True, slots=True)
class Expired:
    """A lease that was taken back."""

    task_id: int
    name: str
    parked: bool


# One statement that re-checks: a holder that renews between the read and the write keeps its task (River #1302).
# A stalled run renews its lease but commits nothing (G6); it is treated like a dead one.
_REAP = text("""
    WITH dead AS (
        SELECT id FROM ing_task
         WHERE status_code IN ('DISPATCHED', 'EXECUTING')
           AND (leased_until < now()
                OR coalesce(progressed_at, started_at, now()) < now() - CAST(:stall AS interval))
         ORDER BY id LIMIT 100 FOR UPDATE SKIP LOCKED),
    back AS (
        UPDATE ing_task t
           SET status_code = CASE WHEN t.expiry_streak + 1 >= :poison THEN 'FAILED' ELSE 'QUEUED' END,
               finished_at = CASE WHEN t.expiry_streak + 1 >= :poison THEN now() END,
               error = CASE WHEN t.leased_until < now() THEN 'lease expired' ELSE 'stalled' END
                       || CASE WHEN t.expiry_streak + 1 >= :poison
                               THEN format(' %s times in a row without a page: parked', t.expiry_streak + 1)
                               ELSE '' END,
               expiry_streak = t.expiry_streak + 1, lease_owner = NULL, leased_until = NULL,
               started_at = NULL, progressed_at = NULL
          FROM dead
         WHERE t.id = dead.id AND t.status_code IN ('DISPATCHED', 'EXECUTING')
        RETURNING t.id, t.slice_id, t.status_code, t.error, t.provenance_code || '.' || t.endpoint_name AS name),
    runs AS (
        UPDATE ing_task_run r SET status_code = 'FAILED', error = back.error, finished_at = now()
          FROM back WHERE r.task_id = back.id AND r.status_code = 'RUNNING'),
    slices AS (
        UPDATE ing_plan_slice s SET open = false, status_code = 'FAILED', updated_at = now()
          FROM back WHERE s.id = back.slice_id AND back.status_code = 'FAILED')
    SELECT id, name, status_code = 'FAILED' FROM back
""")


def take_back_expired(conn: Connection, *, poison: int, stall: timedelta) -> list[Expired]:
    """Return expired and stalled tasks to the queue; park those that expired `poison` times without a new page."""
    return [Expired(*row) for row in conn.execute(_REAP, {"poison": poison, "stall": stall})]
