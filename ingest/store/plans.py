"""Plans, slices and tasks: what the planner decided, written in bulk and never twice (D1, D3, D6).

Invariant: open FILL slices of a series cannot overlap (`one_open_slice`), a slice has at most one live task, and one
fire makes a task once (`uk_task_idem`): two planners cannot plan one gap twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text

from ingest.db import Connection
from ingest.states import PlanStatus, SlicePurpose
from ingest.store.jsontext import dump


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPlan:
    """What a plan is made of."""

    schedule_instance_id: int
    provenance_code: str
    endpoint_name: str
    operation_code: str
    window_from: datetime
    window_to: datetime
    plan_strategy: str
    expr_proto_hash: str
    spec_fingerprint: str
    record_remarks: dict[str, Any]


_CREATE = text("""
    INSERT INTO ing_plan (schedule_instance_id, provenance_code, endpoint_name, operation_code, window_from, window_to,
                          plan_strategy, expr_proto_hash, spec_fingerprint, status_code, record_remarks)
    VALUES (:schedule_instance_id, :provenance_code, :endpoint_name, :operation_code, :window_from, :window_to,
            :plan_strategy, :expr_proto_hash, :spec_fingerprint, 'SLICING', CAST(:record_remarks AS jsonb))
    RETURNING id
""")


def create_plan(conn: Connection, plan: NewPlan) -> int:
    """Write the plan as SLICING; DRAFT never outlives the transaction that slices it."""
    values = {name: getattr(plan, name) for name in plan.__slots__}
    return int(conn.execute(_CREATE, values | {"record_remarks": dump(plan.record_remarks)}).scalar_one())


_FINISH = text("""
    UPDATE ing_plan SET status_code = :status, updated_at = now(),
           record_remarks = record_remarks || CAST(:remarks AS jsonb)
     WHERE id = :plan
""")


def finish_slicing(conn: Connection, plan_id: int, *, status: PlanStatus, remarks: dict[str, Any]) -> None:
    """Say how far slicing came: READY when all is derived, PARTIAL when stock is full."""
    conn.execute(_FINISH, {"plan": plan_id, "status": status, "remarks": dump(remarks)})


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSlice:
    """A slice and the task derived from it."""

    slice_no: int
    start: datetime
    end: datetime
    slice_spec: dict[str, Any]
    slice_signature_hash: str
    expr_hash: str
    expr_snapshot: dict[str, Any]
    params: dict[str, Any]
    idempotent_key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Derivation:
    """What all slices of one plan share."""

    plan_id: int
    schedule_instance_id: int
    series_id: int
    lane_id: int
    provenance_code: str
    endpoint_name: str
    operation_code: str
    credential_code: str
    spec_fingerprint: str
    purpose: SlicePurpose
    priority: int


# DO NOTHING answers the exclusion constraint: a gap another planner opened first is simply not ours.
_SLICES = text("""
    INSERT INTO ing_plan_slice (plan_id, series_id, provenance_code, endpoint_name, operation_code, slice_no,
           slice_spec, slice_signature_hash, expr_hash, expr_snapshot, purpose, span, status_code)
    SELECT :plan_id, :series_id, :provenance_code, :endpoint_name, :operation_code, n, CAST(spec AS jsonb), signature,
           expr, CAST(snapshot AS jsonb), :purpose, tstzrange(f, t), 'READY'
      FROM unnest(CAST(:numbers AS integer[]), CAST(:specs AS text[]), CAST(:signatures AS text[]),
                  CAST(:exprs AS text[]), CAST(:snapshots AS text[]), CAST(:starts AS timestamptz[]),
                  CAST(:ends AS timestamptz[])) AS v(n, spec, signature, expr, snapshot, f, t)
    ON CONFLICT DO NOTHING
    RETURNING id, slice_no
""")

_TASKS = text("""
    INSERT INTO ing_task (lane_id, schedule_instance_id, plan_id, slice_id, series_id, provenance_code, endpoint_name,
           operation_code, credential_code, spec_fingerprint, expr_hash, params, idempotent_key, priority)
    SELECT :lane_id, :schedule_instance_id, :plan_id, slice, :series_id, :provenance_code, :endpoint_name,
           :operation_code, :credential_code, :spec_fingerprint, expr, CAST(params AS jsonb), key, :priority
      FROM unnest(CAST(:slices AS bigint[]), CAST(:exprs AS text[]), CAST(:params AS text[]), CAST(:keys AS text[]))
           AS v(slice, expr, params, key)
    ON CONFLICT ON CONSTRAINT uk_task_idem DO NOTHING
    RETURNING slice_id
""")

_CLOSE = text("UPDATE ing_plan_slice SET open = false, status_code = 'CANCELLED' WHERE id = ANY(:slices)")


def derive_tasks(conn: Connection, derivation: Derivation, slices: Sequence[NewSlice]) -> int:
    """Open the slices that are still free and queue one task for each; return how many were queued."""
    if not slices:
        return 0
    shared = {name: getattr(derivation, name) for name in derivation.__slots__}
    opened = conn.execute(
        _SLICES,
        shared
        | {
            "numbers": [s.slice_no for s in slices],
            "specs": [dump(s.slice_spec) for s in slices],
            "signatures": [s.slice_signature_hash for s in slices],
            "exprs": [s.expr_hash for s in slices],
            "snapshots": [dump(s.expr_snapshot) for s in slices],
            "starts": [s.start for s in slices],
            "ends": [s.end for s in slices],
        },
    ).all()
    if not opened:
        return 0
    by_number = {s.slice_no: s for s in slices}
    chosen = [(row.id, by_number[row.slice_no]) for row in opened]
    queued = conn.execute(
        _TASKS,
        shared
        | {
            "slices": [slice_id for slice_id, _ in chosen],
            "exprs": [s.expr_hash for _, s in chosen],
            "params": [dump(s.params) for _, s in chosen],
            "keys": [s.idempotent_key for _, s in chosen],
        },
    ).scalars()
    orphans = {slice_id for slice_id, _ in chosen} - set(queued)
    if orphans:  # this fire made that task before: a slice without a task would block its window for ever
        conn.execute(_CLOSE, {"slices": sorted(orphans)})
    return len(opened) - len(orphans)


_STOCK = text("SELECT count(*) FROM ing_task WHERE lane_id = :lane AND status_code = 'QUEUED'")


def count_queued(conn: Connection, lane_id: int) -> int:
    """Return the lane's stock of queued tasks (D6)."""
    return int(conn.execute(_STOCK, {"lane": lane_id}).scalar_one())


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenPlan:
    """A plan whose stock was full when it was sliced; its row is locked by the reading transaction."""

    id: int
    schedule_instance_id: int
    provenance_code: str
    endpoint_name: str
    operation_code: str
    window_from: datetime
    window_to: datetime
    spec_fingerprint: str
    record_remarks: dict[str, Any]
    trigger: str


_PARTIAL = text("""
    SELECT p.id, p.schedule_instance_id, p.provenance_code, p.endpoint_name, p.operation_code, p.window_from,
           p.window_to, p.spec_fingerprint, p.record_remarks,
           i.scheduler_job_id, i.scheduled_for
      FROM ing_plan p JOIN ing_schedule_instance i ON i.id = p.schedule_instance_id
     WHERE p.status_code = 'PARTIAL' AND p.id > :after
     ORDER BY p.id LIMIT 1 FOR UPDATE OF p SKIP LOCKED
""")


def take_partial_plan(conn: Connection, *, after: int = 0) -> OpenPlan | None:
    """Lock the oldest PARTIAL plan with an id above `after`, or None."""
    row = conn.execute(_PARTIAL, {"after": after}).one_or_none()
    if row is None:
        return None
    values = dict(row._mapping)
    values["trigger"] = f"{values.pop('scheduler_job_id')}@{values.pop('scheduled_for').isoformat()}"
    return OpenPlan(**values)


_NEXT_SLICE_NO = text("SELECT coalesce(max(slice_no), 0) + 1 FROM ing_plan_slice WHERE plan_id = :plan")


def next_slice_no(conn: Connection, plan_id: int) -> int:
    """Return the number the plan's next slice gets."""
    return int(conn.execute(_NEXT_SLICE_NO, {"plan": plan_id}).scalar_one())


_HOLD = text("""
    SELECT reason FROM ing_hold
     WHERE lifted_at IS NULL AND (until IS NULL OR until > now()) AND provenance_code = :source
       AND (endpoint_name IS NULL OR endpoint_name = :endpoint) AND credential_code IS NULL
     ORDER BY id LIMIT 1
""")


def find_hold(conn: Connection, *, source: str, endpoint: str) -> str | None:
    """Return why the endpoint may not be planned now, or None."""
    return conn.execute(_HOLD, {"source": source, "endpoint": endpoint}).scalar_one_or_none()
