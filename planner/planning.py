"""Planning: from a fire to a plan, its slices and its tasks, in one transaction (D1, D2 HARVEST, D6, D8).

Wanted − covered − in flight = work. A failed window is still a gap and is planned again by the next fire. The planner
does no network I/O: a source is known by its spec and by what executors stored.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import islice
from typing import Protocol

from ingest.db import Connection
from ingest.errors import SpecInvalid
from ingest.logs import get_log
from ingest.spec.canonical import format_instant
from ingest.spec.selection import selection_hash
from ingest.spec.snapshot import Snapshot
from ingest.spec.windows import horizon
from ingest.states import FireResult, Operation, PlanStatus, SlicePurpose, Trigger
from ingest.store import lanes, plans, schedules, series, specs
from planner.fanout import FanOut
from planner.partitions import check_parents
from planner.slicing import cut, make_slice, priority_of

_log = get_log("planner")


class Compiled(Protocol):
    """What the planner needs of a compile: the snapshot, and what it has to do without (A5)."""

    @property
    def snapshot(self) -> Snapshot: ...
    @property
    def degradations(self) -> Sequence[str]: ...


Compile = Callable[[Connection, str, str], Compiled]


def plan_fire(conn: Connection, fire: schedules.Fire, compile_endpoint: Compile) -> FireResult:
    """Turn one fire into work, or store why there is none. The caller's transaction holds the fire's row."""
    name = f"{fire.provenance_code}.{fire.endpoint_name}"
    held = plans.find_hold(conn, source=fire.provenance_code, endpoint=fire.endpoint_name)
    if held is not None:
        return _skip(conn, fire, f"{name} is held: {held}")
    running = schedules.find_running_fire(conn, fire) if fire.trigger_type_code == Trigger.SCHEDULE else None
    if running is not None:
        return _skip(conn, fire, f"the fire of {running[0].isoformat()} still has {running[1]} unfinished tasks")
    try:
        compiled = compile_endpoint(conn, fire.provenance_code, fire.endpoint_name)
        check_parents(conn, compiled.snapshot)
    except SpecInvalid as error:
        # A4: the plan stops, the field and the fix are named, no ing_plan is written
        schedules.finish_fire(conn, fire, result=FireResult.FAILED, remarks={"errors": error.problems})
        _log.error("compile failed", source=fire.provenance_code, endpoint=fire.endpoint_name, errors=error.problems)
        return FireResult.FAILED
    return _plan(conn, fire, compiled)


def _skip(conn: Connection, fire: schedules.Fire, reason: str) -> FireResult:
    schedules.finish_fire(conn, fire, result=FireResult.SKIPPED, remarks={"skipped": reason})
    return FireResult.SKIPPED


def _plan(conn: Connection, fire: schedules.Fire, compiled: Compiled) -> FireResult:
    snapshot = compiled.snapshot
    fingerprint = specs.save_spec(conn, snapshot)
    until = horizon(snapshot.window, fire.now)
    if snapshot.partition.dimensions:
        return _plan_partitions(conn, fire, compiled, until)
    which = series.ensure_series(
        conn,
        source=snapshot.provenance_code,
        endpoint=snapshot.endpoint_name,
        selection=selection_hash(snapshot),
        anchor=_anchor(snapshot),
    )
    remarks = _remarks(compiled, until)
    gaps = _wanted(conn, snapshot, which, wanted_from=which.anchor, until=until)
    if not gaps:
        reason = {"nothing": f"{snapshot.name} is covered up to {format_instant(until)} or already in flight"}
        return _finish(conn, fire, snapshot, FireResult.NOTHING, remarks | reason)
    plan_id = plans.create_plan(
        conn,
        plans.NewPlan(
            schedule_instance_id=fire.id,
            provenance_code=snapshot.provenance_code,
            endpoint_name=snapshot.endpoint_name,
            operation_code=fire.operation_code,
            window_from=gaps[0][0],
            window_to=gaps[-1][1],
            plan_strategy="TIME" if snapshot.window.filter == "server" else "WALK",
            expr_proto_hash=snapshot.expr_proto_hash,
            spec_fingerprint=fingerprint,
            record_remarks=remarks,
        ),
    )
    operation = Operation(fire.operation_code)
    queued, status = slice_plan(
        conn, plan_id, snapshot, which, gaps, operation=operation, instance=fire.id, trigger=fire.trigger
    )
    return _finish(conn, fire, snapshot, FireResult.PLANNED, {"plan": plan_id, "tasks": queued, "status": status})


def _anchor(snapshot: Snapshot) -> datetime:
    """Without a time filter there is no first day to ask for: the series begins before everything."""
    return snapshot.window.start or datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def _remarks(compiled: Compiled, until: datetime) -> dict[str, object]:
    return {
        "window": {"to": format_instant(until), "safetyLag": compiled.snapshot.window.safety_lag_s},
        "degradation": list(compiled.degradations),
        "revision": compiled.snapshot.revision,
    }


def _plan_partitions(conn: Connection, fire: schedules.Fire, compiled: Compiled, until: datetime) -> FireResult:
    snapshot = compiled.snapshot
    remarks = _remarks(compiled, until)
    new_plan = plans.NewPlan(
        schedule_instance_id=fire.id,
        provenance_code=snapshot.provenance_code,
        endpoint_name=snapshot.endpoint_name,
        operation_code=fire.operation_code,
        window_from=_anchor(snapshot),
        window_to=until,
        plan_strategy="TIME" if snapshot.window.filter == "server" else "WALK",
        expr_proto_hash=snapshot.expr_proto_hash,
        spec_fingerprint=snapshot.spec_fingerprint,
        record_remarks=remarks,
    )
    fan = FanOut(
        conn, snapshot, Operation(fire.operation_code), fire.id, fire.trigger, _anchor(snapshot),
        wanted=lambda which, start: _wanted(conn, snapshot, which, wanted_from=start, until=until),
        make_plan=lambda: plans.create_plan(conn, new_plan),
    )  # fmt: skip
    status = fan.run()
    if status is None:
        reason = {"nothing": f"every partition of {snapshot.name} is covered or already in flight"}
        return _finish(conn, fire, snapshot, FireResult.NOTHING, remarks | reason)
    planned: dict[str, object] = {"plan": fan.plan_id, "tasks": fan.queued, "status": status}
    return _finish(conn, fire, snapshot, FireResult.PLANNED, planned)


def _wanted(
    conn: Connection, snapshot: Snapshot, which: series.Series, *, wanted_from: datetime, until: datetime
) -> list[tuple[datetime, datetime]]:
    """HARVEST wants every gap at or above the anchor; a source without a time filter is walked whole each time."""
    if snapshot.window.filter == "server":
        return series.list_gaps(conn, which.id, wanted_from=wanted_from, wanted_to=until)
    if wanted_from >= until or series.has_open_walk(conn, which.id):
        return []
    return [(wanted_from, until)]


def _finish(
    conn: Connection, fire: schedules.Fire, snapshot: Snapshot, result: FireResult, remarks: dict[str, object]
) -> FireResult:
    schedules.finish_fire(
        conn,
        fire,
        result=result,
        remarks=dict(remarks),
        proto_hash=snapshot.expr_proto_hash,
        expressions={"query": snapshot.http.query, "path": snapshot.http.path, "vars": snapshot.expr.vars},
    )
    return result


def slice_plan(
    conn: Connection,
    plan_id: int,
    snapshot: Snapshot,
    which: series.Series,
    gaps: list[tuple[datetime, datetime]],
    *,
    operation: Operation,
    instance: int,
    trigger: str,
) -> tuple[int, PlanStatus]:
    """Slice and derive as far as the lane's stock allows; READY when everything is derived, else PARTIAL (D6)."""
    lane_id = lanes.ensure_lane(
        conn,
        source=snapshot.provenance_code,
        endpoint=snapshot.endpoint_name,
        operation=operation,
        credential=snapshot.auth.credential_code,
        concurrency=snapshot.budget.concurrency,
    )
    room = max(0, snapshot.budget.inventory - plans.count_queued(conn, lane_id))
    purpose = SlicePurpose.FILL if snapshot.window.filter == "server" else SlicePurpose.WALK
    windows = cut(gaps, snapshot.window) if purpose is SlicePurpose.FILL else iter(gaps)
    chosen = list(islice(windows, room))
    rest = next(windows, None)
    first = plans.next_slice_no(conn, plan_id)
    derivation = plans.Derivation(
        plan_id=plan_id,
        schedule_instance_id=instance,
        series_id=which.id,
        lane_id=lane_id,
        provenance_code=snapshot.provenance_code,
        endpoint_name=snapshot.endpoint_name,
        operation_code=operation,
        credential_code=snapshot.auth.credential_code,
        spec_fingerprint=snapshot.spec_fingerprint,
        purpose=purpose,
        priority=priority_of(snapshot, operation),
    )
    slices = [
        make_slice(snapshot, operation, span, slice_no=number, trigger=trigger, purpose=purpose)
        for number, span in enumerate(chosen, start=first)
    ]
    queued = plans.derive_tasks(conn, derivation, slices)
    status = PlanStatus.READY if rest is None else PlanStatus.PARTIAL
    remarks: dict[str, object] = {"sliceCount": first - 1 + queued}
    # slices are made earliest first, so one moment says how far slicing came
    remarks["slicedTo"] = None if rest is None else format_instant(rest[0])
    plans.finish_slicing(conn, plan_id, status=status, remarks=remarks)
    return queued, status


def continue_plan(conn: Connection, plan: plans.OpenPlan) -> int:
    """Go on slicing a PARTIAL plan with the snapshot it began with: a later registry change does not touch it (A6)."""
    snapshot = specs.get_spec(conn, plan.spec_fingerprint)
    if snapshot.partition.dimensions:
        return _continue_partitions(conn, plan, snapshot)
    which = series.ensure_series(
        conn,
        source=snapshot.provenance_code,
        endpoint=snapshot.endpoint_name,
        selection=selection_hash(snapshot),
        anchor=plan.window_from,
    )
    sliced_to = datetime.fromisoformat(plan.record_remarks["slicedTo"])
    gaps = _wanted(conn, snapshot, which, wanted_from=sliced_to, until=plan.window_to)
    operation = Operation(plan.operation_code)
    instance, trigger = plan.schedule_instance_id, plan.trigger
    queued, _ = slice_plan(
        conn, plan.id, snapshot, which, gaps, operation=operation, instance=instance, trigger=trigger
    )
    return queued


def _continue_partitions(conn: Connection, plan: plans.OpenPlan, snapshot: Snapshot) -> int:
    sliced_to = plan.record_remarks["slicedTo"]
    fan = FanOut(
        conn, snapshot, Operation(plan.operation_code), plan.schedule_instance_id, plan.trigger, plan.window_from,
        wanted=lambda which, start: _wanted(conn, snapshot, which, wanted_from=start, until=plan.window_to),
        make_plan=lambda: plan.id,
        plan_id=plan.id,
    )  # fmt: skip
    fan.run(
        start=plan.record_remarks["partition"],
        sliced_to=None if sliced_to is None else datetime.fromisoformat(sliced_to),
    )
    return fan.queued
