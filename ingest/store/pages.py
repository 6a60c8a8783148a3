"""A page: everything one answer of a source changes, in one fenced transaction (DESIGN rules 2-4, E3).

Invariant: fence, records, quarantine, ledger row, outbox row, checkpoint and cursor events commit together, and with
the last page the end of the task, its slice, its run and, as the last statement, its coverage. Lock order: task row,
dataset rows by key, coverage. Few round trips: statements that need no answer travel in one pipeline.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import psycopg

from ingest.db import Connection, pipeline, raw_connection
from ingest.errors import LeaseLost
from ingest.spec.canonical import format_instant, format_instants
from ingest.states import BatchStatus, TaskStatus
from ingest.store.arrays import char_array, text_array
from ingest.store.jsontext import dump
from ingest.store.leases import Lease
from ingest.store.ledger import LEDGER, Entry, Position, lineage_values
from ingest.store.rows import Changes, DatasetWriter, Key, Record, decide
from ingest.store.runs import SUMS, Run


@dataclass(frozen=True, slots=True)
class Reject:
    """A record that goes to quarantine."""

    item_no: int
    key: str | None
    record: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Ending:
    """How a walk ended with this page; `covers` only when a declared stop rule ended it (DESIGN rule 7)."""

    status: TaskStatus
    covers: bool
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One decoded and mapped answer, ready to be written."""

    position: Position
    request: dict[str, Any]
    response: dict[str, Any]
    stats: dict[str, Any]
    records: Sequence[Record]
    rejects: Sequence[Reject]
    duplicate: int
    filtered: int
    observed_max: datetime | None
    cursor_key: str
    checkpoint: dict[str, Any]
    ending: Ending | None
    age_seconds: float = field(default=0.0)  # how long ago the answer arrived, by our monotonic clock


_FENCE = """
    UPDATE ing_task
       SET pages_done = %(page)s, checkpoint = %(checkpoint)s::jsonb, progressed_at = clock_timestamp(),
           expiry_streak = 0, status_code = %(status)s, error = %(error)s,
           lease_owner = CASE WHEN %(ended)s THEN NULL ELSE lease_owner END,
           leased_until = CASE WHEN %(ended)s THEN NULL ELSE clock_timestamp() + %(ttl)s END,
           finished_at = CASE WHEN %(ended)s THEN clock_timestamp() END
     WHERE id = %(task)s AND lease_owner = %(owner)s AND lease_count = %(count)s AND status_code = 'EXECUTING'
       AND pages_done = %(page)s - 1
    RETURNING clock_timestamp(), nextval('ing_task_run_batch_id_seq')
"""

_QUARANTINE = """
    INSERT INTO ing_quarantine (provenance_code, endpoint_name, operation_code, schedule_instance_id, plan_id,
           slice_id, task_id, run_id, batch_id, item_no, record_key, record, field_path, reason, request_hash)
    SELECT %b, %b, %b, %b, %b, %b, %b, %b, %b, r.* , %b
      FROM unnest(%b::integer[], %b::text[], %b::text[], %b::text[], %b::text[]) AS r
"""

_OUTBOX = """
    INSERT INTO ing_outbox (batch_id, dataset, keys, versions, operations)
    VALUES (%b, %b, %b::text[], %b::text[], %b::"char"[])
"""

_EVENT = """
    INSERT INTO ing_cursor_event (kind, provenance_code, endpoint_name, operation_code, cursor_key,
           namespace_scope_code, namespace_key, series_id, cursor_type_code, direction_code, span, prev_value,
           prev_instant, new_value, new_instant, observed_max_value, schedule_instance_id, plan_id, slice_id, task_id,
           run_id, batch_id, expr_hash, idempotent_key, record_remarks)
    SELECT %(kind)s, %(source)s, %(endpoint)s, %(operation)s, %(cursor_key)s, 'EXPR', %(series)s::text, %(series)s,
           'TIME', 'FORWARD', tstzrange(%(from)s, %(to)s), c.cursor_value, c.normalized_instant, %(value)s,
           %(to)s, %(observed)s, %(schedule)s, %(plan)s, %(slice)s, %(task)s, %(run)s, %(batch)s, %(expr)s,
           %(idempotent)s, %(remarks)s::jsonb
      FROM (VALUES (1)) AS one LEFT JOIN ing_cursor c
        ON c.provenance_code = %(source)s AND c.operation_code = %(operation)s AND c.cursor_key = %(cursor_key)s
       AND c.namespace_scope_code = 'EXPR' AND c.namespace_key = %(series)s::text
"""

_CLOSE = """
    UPDATE ing_plan_slice SET open = false, status_code = %(status)s, updated_at = clock_timestamp()
     WHERE id = %(slice)s
"""

_END_RUN = f"""
    UPDATE ing_task_run SET status_code = %(status)s, error = %(error)s, finished_at = clock_timestamp(),
           checkpoint = %(checkpoint)s::jsonb, stats = ({SUMS.format(run="%(run)s")})
     WHERE id = %(run)s
"""

_COVER = """
    INSERT INTO ing_coverage (series_id, covered) VALUES (%(series)s, tstzmultirange(tstzrange(%(from)s, %(to)s)))
    ON CONFLICT (series_id) DO UPDATE SET covered = ing_coverage.covered + excluded.covered, updated_at = now()
"""


def write_page(
    conn: Connection,
    lease: Lease,
    run: Run,
    page: Page,
    writer: DatasetWriter,
    *,
    task_page: int,
    ttl: timedelta,
) -> dict[str, Any]:
    """Write the page; return its stats as stored. Raises `LeaseLost` before anything else is written."""
    raw = raw_connection(conn)
    fence, reader = raw.cursor(), raw.cursor()
    with pipeline(raw):
        fence.execute(_FENCE, _fence_values(lease, page, task_page, ttl))
        if page.records:
            writer.read_existing(reader, page.records)
    held = fence.fetchone()
    if held is None:
        raise LeaseLost(f"task {lease.task_id} page {task_page}: someone else has it, or it was cancelled")
    moment, batch_id = held
    changes = _sort_out(writer, page, writer.existing_of(reader) if page.records else {})
    to_write = changes.pop("write")
    result = Changes([], [], changes["unchanged"], changes["stale"])
    if to_write:
        fetched_at = moment - timedelta(seconds=page.age_seconds)
        cursor = raw.cursor()
        writer.write(cursor, to_write, batch_id=batch_id, fetched_at=fetched_at)
        result.inserted, result.updated = writer.written_of(cursor)
        # another worker wrote at least as new a version between our read and our write
        result.stale += len(to_write) - len(result.inserted) - len(result.updated)
    stats = page.stats | _count(page, result)
    with raw.cursor() as cursor, pipeline(raw):
        lineage = lineage_values(lease, run)
        if page.rejects:
            cursor.execute(_QUARANTINE, _quarantine_values(lease, run, batch_id, page))
        entry = Entry(
            batch_no=run.batch_no(task_page),
            task_page=task_page,
            position=page.position,
            request=page.request,
            response=page.response,
            stats=stats,
            status=BatchStatus.SUCCEEDED,
        )
        cursor.execute(LEDGER, entry.values(lease, run, batch_id))
        versions = {record.key: record.updated_at for record in to_write}
        if result.inserted or result.updated:
            cursor.execute(_OUTBOX, _outbox_values(batch_id, writer.dataset, result, versions))
        observed = format_instant(page.observed_max) if page.observed_max else None
        event = lineage | {"cursor_key": page.cursor_key, "observed": observed, "batch": batch_id}
        page_event = {
            "kind": "PAGE", "from": None, "to": None, "value": None, "idempotent": f"{run.id}:{task_page}:page",
            "remarks": dump({"reason": lease.operation_code, "batchNo": run.batch_no(task_page)}),
        }  # fmt: skip
        cursor.execute(_EVENT, event | page_event)
        if page.ending is not None:
            _end(cursor, lease, run, page, event, task_page)
    return stats


def _fence_values(lease: Lease, page: Page, task_page: int, ttl: timedelta) -> dict[str, Any]:
    ending = page.ending
    return {
        "page": task_page,
        "checkpoint": dump(page.checkpoint),
        "status": ending.status if ending else TaskStatus.EXECUTING,
        "ended": ending is not None,
        "error": ending.error if ending else None,
        "ttl": ttl,
        "task": lease.task_id,
        "owner": lease.owner,
        "count": lease.count,
    }


def _sort_out(writer: DatasetWriter, page: Page, existing: dict[Key, Any]) -> dict[str, Any]:
    """Split the page's records into those to write, in key order, and counts of the rest."""
    counts = {"unchanged": 0, "stale": 0}
    if not existing:
        return counts | {"write": page.records}
    write: list[Record] = []
    for record in page.records:
        verdict = decide(existing.get(record.key), record, writer.proto_hash)
        if verdict in counts:
            counts[verdict] += 1
        else:
            write.append(record)
    return counts | {"write": write}


def _count(page: Page, result: Changes) -> dict[str, Any]:
    """Account for every record (DESIGN rule 10): fetched is the sum of what became of them."""
    counts = {
        "inserted": len(result.inserted),
        "updated": len(result.updated),
        "unchanged": result.unchanged,
        "stale": result.stale,
        "duplicate": page.duplicate,
        "filtered": page.filtered,
        "quarantined": len(page.rejects),
    }
    skipped = counts["unchanged"] + counts["stale"] + counts["duplicate"] + counts["filtered"]
    samples = {"insertedKeys": result.inserted[:3], "updatedKeys": result.updated[:3]}
    return counts | {"skipped": skipped, "failed": counts["quarantined"], "samples": samples}


def _quarantine_values(lease: Lease, run: Run, batch_id: int, page: Page) -> list[Any]:
    rejects = page.rejects
    return [
        lease.provenance_code, lease.endpoint_name, lease.operation_code, lease.schedule_instance_id, lease.plan_id,
        lease.slice_id, lease.task_id, run.id, batch_id, page.request["hash"],
        [r.item_no for r in rejects], [r.key for r in rejects], [r.record for r in rejects],
        [r.path for r in rejects], [r.reason for r in rejects],
    ]  # fmt: skip


def key_text(key: Key) -> str:
    """Return a key as one text: itself, or its parts joined by '/' (D9)."""
    if len(key) == 1 and type(key[0]) is str:
        return key[0]
    return "/".join(format_instant(part) if isinstance(part, datetime) else str(part) for part in key)


def _outbox_values(batch_id: int, dataset: str, result: Changes, versions: dict[Key, datetime | None]) -> list[Any]:
    keys = result.inserted + result.updated
    moments = [versions[key] for key in keys]
    texts = [""] * len(keys) if None in moments else format_instants(moments)  # type: ignore[arg-type]
    operations = char_array([("I", len(result.inserted)), ("U", len(result.updated))])
    return [batch_id, dataset, text_array([key_text(key) for key in keys]), text_array(texts), operations]


def _end(
    cursor: psycopg.Cursor[Any], lease: Lease, run: Run, page: Page, event: dict[str, Any], task_page: int
) -> None:
    """End run and slice with the task; cover the window last of all."""
    ending = page.ending
    assert ending is not None  # noqa: S101 -- the caller checked
    failed = ending.status in (TaskStatus.FAILED, TaskStatus.PARTIAL)
    cursor.execute(_CLOSE, {"slice": lease.slice_id, "status": "FAILED" if failed else "READY"})
    cursor.execute(
        _END_RUN,
        {"run": run.id, "status": ending.status, "error": ending.error, "checkpoint": dump(page.checkpoint)},
    )
    span = lease.span
    if not ending.covers or span is None:
        return
    window = {"from": span[0], "to": span[1]}
    window_event = {
        "kind": "WINDOW", "value": format_instant(span[1]), "idempotent": f"{run.id}:{task_page}:window",
        "remarks": dump({"reason": lease.operation_code, "batchNo": run.batch_no(task_page)}),
    }  # fmt: skip
    cursor.execute(_EVENT, event | window | window_event)
    cursor.execute(_COVER, {"series": lease.series_id} | window)


_LOCK_TASK = "SELECT lease_owner, lease_count FROM ing_task WHERE id = %s FOR UPDATE"
_FIND_BATCH = "SELECT stats FROM ing_task_run_batch WHERE run_id = %s AND batch_no = %s AND status_code = 'SUCCEEDED'"


def find_committed(conn: Connection, lease: Lease, run: Run, *, task_page: int) -> dict[str, Any] | None:
    """After a commit whose answer was lost: return the page's stored stats, or None if it did not commit.

    Locks the task first: a plain read can say "not there" of a commit that is still on its way (measured).
    """
    raw = raw_connection(conn)
    raw.execute(_LOCK_TASK, [lease.task_id])
    row = raw.execute(_FIND_BATCH, [run.id, run.batch_no(task_page)]).fetchone()
    return None if row is None else row[0]
