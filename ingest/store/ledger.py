"""The ledger: one row per page asked for, written in the page's own transaction (E3, F1).

Invariant: batches are numbered per run from 1 without holes; a request that failed for good is a batch too.
"""

from dataclasses import dataclass
from typing import Any

from ingest.spec.canonical import hash_of
from ingest.states import BatchStatus
from ingest.store.jsontext import dump
from ingest.store.leases import Lease
from ingest.store.runs import Run


@dataclass(frozen=True, slots=True, kw_only=True)
class Position:
    """Where in the source's paging the page stands, as the ledger keeps it."""

    page_no: int | None = None
    page_size: int | None = None
    before_token: str | None = None
    after_token: str | None = None
    before_url: str | None = None
    next_url: str | None = None
    unique: bool = False  # the token or url may not be asked twice in a run (uk_run_before_tok)

    @property
    def before(self) -> str:
        """What identifies the request within the run."""
        return str(self.before_token or self.before_url or self.page_no)


LEDGER = """
    INSERT INTO ing_task_run_batch (id, run_id, batch_no, schedule_instance_id, plan_id, slice_id, task_id,
           provenance_code, endpoint_name, operation_code, spec_fingerprint, expr_hash, task_page_no, page_no,
           page_size, before_token, after_token, before_url, next_url, before_hash, request_digest, response_digest,
           stats, status_code, error, idempotent_key)
    VALUES (%(id)s, %(run)s, %(batch_no)s, %(schedule)s, %(plan)s, %(slice)s, %(task)s, %(source)s, %(endpoint)s,
           %(operation)s, %(spec)s, %(expr)s, %(task_page)s, %(page_no)s, %(page_size)s, %(before_token)s,
           %(after_token)s, %(before_url)s, %(next_url)s, %(before_hash)s, %(request)s::jsonb, %(response)s::jsonb,
           %(stats)s::jsonb, %(status)s, %(error)s, %(idempotent)s)
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the ledger."""

    batch_no: int
    task_page: int | None  # the task's own page counter; None for a batch that failed
    position: Position
    request: dict[str, Any]
    response: dict[str, Any]
    stats: dict[str, Any]
    status: BatchStatus
    error: str | None = None

    def values(self, lease: Lease, run: Run, batch_id: int) -> dict[str, Any]:
        """Return the parameters of `LEDGER`."""
        position, succeeded = self.position, self.status is BatchStatus.SUCCEEDED
        return lineage_values(lease, run) | {
            "id": batch_id,
            "batch_no": self.batch_no,
            "task_page": self.task_page,
            "page_no": position.page_no,
            "page_size": position.page_size,
            "before_token": position.before_token,
            "after_token": position.after_token,
            "before_url": position.before_url,
            "next_url": position.next_url,
            "before_hash": hash_of(position.before) if position.unique and succeeded else None,
            "request": dump(self.request),
            "response": dump(self.response),
            "stats": dump(self.stats),
            "status": self.status,
            "error": self.error,
            "idempotent": hash_of([run.id, self.batch_no, position.before]),  # S2 §9.3
        }


def lineage_values(lease: Lease, run: Run) -> dict[str, Any]:
    """Return the lineage every row about a page carries, by the names the statements use."""
    return {
        "run": run.id,
        "schedule": lease.schedule_instance_id,
        "plan": lease.plan_id,
        "slice": lease.slice_id,
        "task": lease.task_id,
        "series": lease.series_id,
        "source": lease.provenance_code,
        "endpoint": lease.endpoint_name,
        "operation": lease.operation_code,
        "spec": lease.spec_fingerprint,
        "expr": lease.expr_hash,
    }
