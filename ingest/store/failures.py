"""A page that could not be had: its FAILED batch with the evidence, and the end of its task, in one transaction."""

from dataclasses import dataclass
from typing import Any

from ingest.db import Connection, raw_connection
from ingest.states import BatchStatus, RunStatus, TaskStatus
from ingest.store.leases import Lease
from ingest.store.ledger import LEDGER, Entry, Position
from ingest.store.runs import Run, close_slice, end_run, leave


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedPage:
    """The evidence (E6): what was asked, what came, and why it is no good."""

    position: Position
    request: dict[str, Any]
    response: dict[str, Any]
    stats: dict[str, Any]


_NEXT_BATCH = "SELECT count(*) + 1, nextval('ing_task_run_batch_id_seq') FROM ing_task_run_batch WHERE run_id = %s"


def fail_task(conn: Connection, lease: Lease, run: Run, failed: FailedPage, *, status: TaskStatus, error: str) -> None:
    """Fence first; then the FAILED batch, the slice and the run. The window is not covered and stays a gap."""
    leave(conn, lease, status, error=error)
    raw = raw_connection(conn)
    numbered = raw.execute(_NEXT_BATCH, [run.id]).fetchone()
    assert numbered is not None  # noqa: S101 -- count(*) always answers
    entry = Entry(
        batch_no=numbered[0],
        task_page=None,
        position=failed.position,
        request=failed.request,
        response=failed.response,
        stats=failed.stats,
        status=BatchStatus.FAILED,
        error=error,
    )
    raw.execute(LEDGER, entry.values(lease, run, numbered[1]))
    close_slice(conn, lease.slice_id, failed=True)
    end_run(conn, run, status=RunStatus(status), error=error)
