"""Cancelling by hand: refused for what has ended, audited, effective before the next page is written (D10)."""

from typing import Literal

from ingest.db import Connection, Database
from ingest.errors import NotFound, RefusedByState
from ingest.store import audit, cancels

Kind = Literal["plan", "slice", "task", "run"]


def cancel(database: Database, kind: Kind, number: int, *, actor: str, reason: str = "") -> int:
    """End a plan, slice, task or the task of a run; return how many live tasks ended with it.

    Raises `NotFound`, and `RefusedByState` if nothing of it is alive any more.
    """
    why = f"cancelled by {actor}" + (f": {reason}" if reason else "")
    with database.transaction() as conn:
        ended = _cancel(conn, kind, number, why)
        detail = {"tasks": ended}
        audit.record(conn, actor=actor, action="cancel", target=f"{kind} {number}", detail=detail, reason=reason)
    return ended


def _cancel(conn: Connection, kind: Kind, number: int, why: str) -> int:
    if kind == "run":
        task = cancels.find_task_of_run(conn, number)
        if task is None:
            raise NotFound(f"no run {number}")
        return _cancel(conn, "task", task, why)
    if kind == "plan":
        status = cancels.lock_plan(conn, number)
        if status in ("FAILED", "CANCELLED"):
            raise RefusedByState(f"plan {number} is {status}: what has ended stays as it is")
    else:
        status = cancels.find_status(conn, kind, number)
    if status is None:
        raise NotFound(f"no {kind} {number}")
    ended = cancels.cancel_tasks(conn, kind, number, why=why)
    if kind == "plan" and (ended or status in ("DRAFT", "SLICING", "PARTIAL")):
        cancels.cancel_plan(conn, number, why=why)
    elif not ended:
        raise RefusedByState(f"{kind} {number} has ended ({status}): what has ended stays as it is")
    return ended
