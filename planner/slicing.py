"""Slicing: from gaps in coverage to windows, and from a window to a slice (pure; D3, S2 §8.2).

Invariant: windows of one gap touch, do not overlap, and end on unit boundaries of the source's precision.
"""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from ingest.spec.canonical import format_instant, hash_of
from ingest.spec.snapshot import Snapshot, Window
from ingest.spec.windows import advance, coarsest_unit, render_window
from ingest.states import PRIORITY, Operation, SlicePurpose
from ingest.store.plans import NewSlice

Gap = tuple[datetime, datetime]


def cut(gaps: Iterable[Gap], window: Window) -> Iterator[Gap]:
    """Cut each gap into windows of at most the source's widest, earliest first."""
    unit = coarsest_unit(window)
    for start, end in gaps:
        while start < end:
            until = min(end, advance(start, window.max_s, unit, window.zone))
            yield start, until
            start = until


def make_slice(
    snapshot: Snapshot,
    operation: Operation,
    span: Gap,
    *,
    slice_no: int,
    trigger: str,
    purpose: SlicePurpose,
    partition: Mapping[str, str] | None = None,
) -> NewSlice:
    """Build the slice for one window: its spec, its localised expressions, and the task's parameters.

    The partition's values travel in the parameters: an executor never reads the registry.
    """
    start, end = span
    localised: dict[str, Any] = {
        "protoHash": snapshot.expr_proto_hash,
        "window": render_window(snapshot.window, start, end) if purpose is SlicePurpose.FILL else None,
        "pagination": {"type": snapshot.pagination.kind, "initial": snapshot.pagination.initial},
    }
    params: dict[str, Any] = {"from": format_instant(start), "to": format_instant(end), "purpose": purpose}
    if partition:  # left out where there is none, so that hashes of whole endpoints stay what they were
        localised["partition"] = dict(partition)
        params["partition"] = dict(partition)
    expr_hash = hash_of(localised)
    spec = _slice_spec(snapshot, operation, span)
    signature = hash_of(
        {
            "source": snapshot.provenance_code,
            "endpoint": snapshot.endpoint_name,
            "operation": operation,
            "expr": expr_hash,
            # telemetry, budget and hints do not make another slice (D3)
            "spec": {key: value for key, value in spec.items() if key not in {"budget", "telemetry"}},
        }
    )
    return NewSlice(
        slice_no=slice_no,
        start=start,
        end=end,
        slice_spec=spec,
        slice_signature_hash=signature,
        expr_hash=expr_hash,
        expr_snapshot=localised,
        params=params,
        idempotent_key=hash_of([signature, expr_hash, operation, trigger, params]),
    )


def _slice_spec(snapshot: Snapshot, operation: Operation, span: Gap) -> dict[str, Any]:
    budget = snapshot.budget
    return {
        "dimension": "TIME",
        "bounds": {"time": {"from": format_instant(span[0]), "to": format_instant(span[1])}},
        "phase": {"twoPhase": False},
        "pagination": {"type": snapshot.pagination.kind, "initial": {"token": snapshot.pagination.initial}},
        "window": {"safetyLag": snapshot.window.safety_lag_s, "watermarkKey": snapshot.window.field},
        "budget": {
            "maxRequests": budget.max_requests,
            "maxRecords": budget.max_records,
            "maxDurationSec": budget.max_duration_s,
            "priority": priority_of(snapshot, operation),
        },
        "telemetry": {},
    }


def priority_of(snapshot: Snapshot, operation: Operation) -> int:
    """Return the file's priority, or the operation's own; smaller is more urgent."""
    declared = snapshot.budget.priority
    return PRIORITY[operation] if declared is None else declared
