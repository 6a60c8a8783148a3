"""Cancelling: a plan, a slice or a task ends now, whoever works on it (D10, S2 §5.9).

Invariant: a cancelled task has no lease owner, so its worker's next fence matches nothing and the page it holds is
never written. Terminal stays terminal: what ended before is left as it is. Locks: the plan, then tasks by id.
"""

from typing import Literal

from sqlalchemy import text

from ingest.db import Connection

Kind = Literal["plan", "slice", "task"]

_LOCK_PLAN = text("SELECT status_code FROM ing_plan WHERE id = :id FOR UPDATE")
_CANCEL_PLAN = text("""
    UPDATE ing_plan SET status_code = 'CANCELLED', updated_at = now(),
           record_remarks = record_remarks || jsonb_build_object('cancelled', CAST(:why AS text))
     WHERE id = :id
""")
_COLUMNS: dict[Kind, str] = {"plan": "plan_id", "slice": "slice_id", "task": "id"}
_TASKS = {
    kind: text(f"""
        WITH mine AS (
            SELECT id FROM ing_task
             WHERE {column} = :id AND status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING')
             ORDER BY id FOR UPDATE),
        gone AS (
            UPDATE ing_task t SET status_code = 'CANCELLED', finished_at = clock_timestamp(), error = :why,
                   lease_owner = NULL, leased_until = NULL
              FROM mine WHERE t.id = mine.id AND t.status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING')
            RETURNING t.id, t.slice_id),
        runs AS (
            UPDATE ing_task_run r SET status_code = 'CANCELLED', finished_at = clock_timestamp(), error = :why
              FROM gone WHERE r.task_id = gone.id AND r.status_code = 'RUNNING'),
        slices AS (
            UPDATE ing_plan_slice s SET open = false, status_code = 'CANCELLED', updated_at = clock_timestamp()
              FROM gone WHERE s.id = gone.slice_id)
        SELECT count(*) FROM gone
    """)
    for kind, column in _COLUMNS.items()
}


def cancel_tasks(conn: Connection, kind: Kind, number: int, *, why: str) -> int:
    """End every live task of the plan, the slice or the task itself; return how many there were."""
    return int(conn.execute(_TASKS[kind], {"id": number, "why": why}).scalar_one())


def lock_plan(conn: Connection, plan_id: int) -> str | None:
    """Return the plan's status and keep planners from slicing it further; None if there is no such plan."""
    return conn.execute(_LOCK_PLAN, {"id": plan_id}).scalar_one_or_none()


def cancel_plan(conn: Connection, plan_id: int, *, why: str) -> None:
    """Let the plan make no more tasks."""
    conn.execute(_CANCEL_PLAN, {"id": plan_id, "why": why})


_STATUS = {
    "slice": text("SELECT status_code FROM ing_plan_slice WHERE id = :id"),
    "task": text("SELECT status_code FROM ing_task WHERE id = :id"),
}
_TASK_OF_RUN = text("SELECT task_id FROM ing_task_run WHERE id = :id")


def find_status(conn: Connection, kind: Literal["slice", "task"], number: int) -> str | None:
    """Return the state of a slice or a task, None if there is no such thing."""
    return conn.execute(_STATUS[kind], {"id": number}).scalar_one_or_none()


def find_task_of_run(conn: Connection, run_id: int) -> int | None:
    """Return the task a run is an attempt at, or None."""
    return conn.execute(_TASK_OF_RUN, {"id": run_id}).scalar_one_or_none()
