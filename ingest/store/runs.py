"""Runs: one per lease (E3), and the ways a task leaves its worker's hands.

Invariant: every statement here begins with the fence (`_FENCE`); if it does not match exactly one row nothing else
happens and `LeaseLost` is raised.
"""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import text

from ingest.db import Connection
from ingest.errors import LeaseLost
from ingest.states import RunStatus, SliceStatus, TaskStatus
from ingest.store.leases import Lease


@dataclass(frozen=True, slots=True)
class Run:
    """One attempt at a task."""

    id: int
    first_page: int  # the task's pages_done when the run began: batch_no = pages_done - first_page + 1

    def batch_no(self, task_page: int) -> int:
        """Return the run's own number of the task's page; batches are numbered per run from 1 without holes."""
        return task_page - self.first_page


# Fence, renewal and row lock in one statement. A plain SELECT is not enough: a zombie passes it, is paused, the task
# is finished by another, and the zombie's write lands (reproduced).
_START = text("""
    WITH fence AS (
        UPDATE ing_task
           SET status_code = 'EXECUTING', leased_until = clock_timestamp() + :ttl, started_at = clock_timestamp(),
               progressed_at = NULL
         WHERE id = :task AND lease_owner = :owner AND lease_count = :count AND status_code = 'DISPATCHED'
        RETURNING *)
    INSERT INTO ing_task_run (task_id, attempt_no, schedule_instance_id, plan_id, slice_id, provenance_code,
                              endpoint_name, operation_code, lease_owner, status_code, first_page, checkpoint,
                              window_from, window_to)
    SELECT id, lease_count, schedule_instance_id, plan_id, slice_id, provenance_code, endpoint_name, operation_code,
           lease_owner, 'RUNNING', pages_done, checkpoint,
           CAST(params ->> 'from' AS timestamptz), CAST(params ->> 'to' AS timestamptz)
      FROM fence
    RETURNING id, first_page
""")


def start_run(conn: Connection, lease: Lease, *, ttl: timedelta) -> Run:
    """DISPATCHED → EXECUTING and the run row, in one statement."""
    row = conn.execute(
        _START, {"task": lease.task_id, "owner": lease.owner, "count": lease.count, "ttl": ttl}
    ).one_or_none()
    if row is None:
        raise LeaseLost(f"task {lease.task_id}: the lease ended before the run began")
    return Run(row.id, row.first_page)


_FENCE = text("""
    UPDATE ing_task
       SET status_code = :status,
           lease_owner = NULL, leased_until = NULL,
           scheduled_at = CASE WHEN :status = 'QUEUED' THEN clock_timestamp() + :delay ELSE scheduled_at END,
           finished_at = CASE WHEN :status = 'QUEUED' THEN NULL ELSE clock_timestamp() END,
           checkpoint = CASE WHEN :restart THEN NULL ELSE checkpoint END,
           started_at = CASE WHEN :status = 'QUEUED' THEN NULL ELSE started_at END, progressed_at = NULL,
           error = :error
     WHERE id = :task AND lease_owner = :owner AND lease_count = :count
       AND status_code IN ('DISPATCHED', 'EXECUTING')
    RETURNING slice_id
""")

_CLOSE_SLICE = text("""
    UPDATE ing_plan_slice SET open = false, status_code = :status, updated_at = clock_timestamp() WHERE id = :slice
""")

# A run's sums are those of its batches (S2 §14.3.1): nothing is counted twice and nothing can disagree.
SUMS = """
    SELECT jsonb_build_object(
        'reqCount', count(*) + coalesce(sum((stats ->> 'retryCount')::bigint), 0),
        'retCount', coalesce(sum((stats ->> 'itemsCount')::bigint), 0),
        'inserted', coalesce(sum((stats ->> 'inserted')::bigint), 0),
        'updated', coalesce(sum((stats ->> 'updated')::bigint), 0),
        'skipped', coalesce(sum((stats ->> 'skipped')::bigint), 0),
        'failed', coalesce(sum((stats ->> 'failed')::bigint), 0),
        'retryCount', coalesce(sum((stats ->> 'retryCount')::bigint), 0),
        'ignored', coalesce(sum((stats ->> 'ignored')::bigint), 0),
        '429Count', coalesce(sum((stats ->> '429Count')::bigint), 0),
        'waitTotalMs', coalesce(sum((stats ->> 'waitMs')::numeric), 0)::bigint,
        'avgLatencyMs', coalesce(round(avg((stats ->> 'latencyMs')::numeric)), 0),
        'maxLatencyMs', coalesce(max((stats ->> 'latencyMs')::numeric), 0),
        'pagesVisited', count(*) FILTER (WHERE status_code = 'SUCCEEDED'),
        'hasNextLast', coalesce((array_agg(stats -> 'hasNext' ORDER BY batch_no DESC))[1], 'false'::jsonb))
      FROM ing_task_run_batch WHERE run_id = {run}
"""

_END_RUN = text(f"""
    UPDATE ing_task_run SET status_code = :status, error = :error, finished_at = clock_timestamp(),
           checkpoint = (SELECT checkpoint FROM ing_task WHERE id = task_id), stats = ({SUMS.format(run=":run")})
     WHERE id = :run AND status_code = 'RUNNING'
""")


def leave(
    conn: Connection,
    lease: Lease,
    status: TaskStatus,
    *,
    error: str | None,
    delay: timedelta = timedelta(),
    restart: bool = False,
) -> None:
    """Move the task out of this worker's hands; the fence of every ending that is not a page."""
    values = {"task": lease.task_id, "owner": lease.owner, "count": lease.count, "status": status, "error": error}
    if conn.execute(_FENCE, values | {"delay": delay, "restart": restart}).one_or_none() is None:
        raise LeaseLost(f"task {lease.task_id}: someone else has it, or it was cancelled")


def give_back(
    conn: Connection,
    lease: Lease,
    run: Run | None,
    *,
    reason: str,
    delay: timedelta = timedelta(),
    restart: bool = False,
) -> None:
    """Return the task to the queue with its checkpoint; the run ends PARTIAL with the reason (D10, E9).

    `restart` forgets the checkpoint, for sources whose tokens cannot be asked twice.
    """
    leave(conn, lease, TaskStatus.QUEUED, error=reason, delay=delay, restart=restart)
    if run is not None:
        end_run(conn, run, status=RunStatus.PARTIAL, error=reason)


# the reason of `executor.fetch`'s Throttled; runs since the last page began at that page
_COUNT_THROTTLED = text("""
    SELECT count(*) FROM ing_task_run
     WHERE task_id = :task AND first_page = (SELECT pages_done FROM ing_task WHERE id = :task)
       AND starts_with(error, 'throttled by the source')
""")


def count_throttled(conn: Connection, lease: Lease) -> int:
    """Return how often the source sent this task away since its last page."""
    return int(conn.execute(_COUNT_THROTTLED, {"task": lease.task_id}).scalar_one())


def end_run(conn: Connection, run: Run, *, status: RunStatus, error: str | None) -> None:
    """Close the run with the sums of its batches."""
    conn.execute(_END_RUN, {"run": run.id, "status": status, "error": error})


def close_slice(conn: Connection, slice_id: int, *, failed: bool) -> None:
    """Close the slice: its window is free to be planned again if it was not covered."""
    conn.execute(_CLOSE_SLICE, {"slice": slice_id, "status": SliceStatus.FAILED if failed else SliceStatus.READY})
