"""Fan-out: one fire planned over many partitions, as far as the lane's stock allows, and gone on with later (D6, D9).

Invariant: each partition is a series with its own gaps. A plan that stopped says at which partition and moment; it goes
on there, so no partition is planned twice by one plan and none is left out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any

from ingest.db import Connection
from ingest.spec.canonical import format_instant
from ingest.spec.selection import selection_hash
from ingest.spec.snapshot import Snapshot
from ingest.states import Operation, PlanStatus, SlicePurpose
from ingest.store import lanes, plans, series
from planner.partitions import list_members
from planner.slicing import cut, make_slice, priority_of

_MOST_PER_PASS = 500  # partitions looked at in one transaction; the next pass goes on
Wanted = Callable[[series.Series, datetime], list[tuple[datetime, datetime]]]


@dataclass(slots=True)
class FanOut:
    """One pass over an endpoint's partitions; `make_plan` is called once there is something to write down."""

    conn: Connection
    snapshot: Snapshot
    operation: Operation
    instance: int
    trigger: str
    anchor: datetime
    wanted: Wanted
    make_plan: Callable[[], int]
    plan_id: int | None = None
    queued: int = 0
    _slice_no: int = field(default=1)

    def run(self, *, start: Mapping[str, str] | None = None, sliced_to: datetime | None = None) -> PlanStatus | None:
        """Queue what is missing from `start` on; None if nothing is and no plan was made."""
        snapshot = self.snapshot
        lane_id = lanes.ensure_lane(
            self.conn,
            source=snapshot.provenance_code,
            endpoint=snapshot.endpoint_name,
            operation=self.operation,
            credential=snapshot.auth.credential_code,
            concurrency=snapshot.budget.concurrency,
        )
        room = max(0, snapshot.budget.inventory - plans.count_queued(self.conn, lane_id))
        unusable: list[str] = []
        stopped: tuple[dict[str, str], datetime | None] | None = None
        for looked, member in enumerate(list_members(self.conn, snapshot.partition, start=start)):
            if room <= 0 or looked >= _MOST_PER_PASS:
                stopped = member.values, sliced_to if member.values == start else None
                break
            if member.key is None:
                unusable.append("/".join(member.values.values()))
                continue
            which = self._series(member.key)
            wanted_from = sliced_to if sliced_to is not None and member.values == start else which.anchor
            if snapshot.partition.changed and series.is_covered_past(self.conn, which.id, member.changed_at):
                continue
            gaps = self.wanted(which, wanted_from)
            windows = cut(gaps, snapshot.window) if self._purpose is SlicePurpose.FILL else iter(gaps)
            chosen = list(islice(windows, room))
            room -= len(chosen)
            self._derive(which, member.values, chosen, lane_id)
            rest = next(windows, None)
            if rest is not None:
                stopped = member.values, rest[0]
                break
        return self._finish(stopped, unusable)

    @property
    def _purpose(self) -> SlicePurpose:
        return SlicePurpose.FILL if self.snapshot.window.filter == "server" else SlicePurpose.WALK

    def _series(self, key: str) -> series.Series:
        return series.ensure_series(
            self.conn,
            source=self.snapshot.provenance_code,
            endpoint=self.snapshot.endpoint_name,
            selection=selection_hash(self.snapshot, key),
            anchor=self.anchor,
            partition=key,
        )

    def _plan(self) -> int:
        if self.plan_id is None:
            self.plan_id = self.make_plan()
        if self._slice_no == 1:
            self._slice_no = plans.next_slice_no(self.conn, self.plan_id)
        return self.plan_id

    def _derive(
        self, which: series.Series, values: dict[str, str], spans: list[tuple[datetime, datetime]], lane_id: int
    ) -> None:
        if not spans:
            return
        snapshot = self.snapshot
        derivation = plans.Derivation(
            plan_id=self._plan(),
            schedule_instance_id=self.instance,
            series_id=which.id,
            lane_id=lane_id,
            provenance_code=snapshot.provenance_code,
            endpoint_name=snapshot.endpoint_name,
            operation_code=self.operation,
            credential_code=snapshot.auth.credential_code,
            spec_fingerprint=snapshot.spec_fingerprint,
            purpose=self._purpose,
            priority=priority_of(snapshot, self.operation),
        )
        slices = [
            make_slice(
                snapshot, self.operation, span, slice_no=number, trigger=self.trigger, purpose=self._purpose,
                partition=values,
            )
            for number, span in enumerate(spans, start=self._slice_no)
        ]  # fmt: skip
        self._slice_no += len(slices)
        self.queued += plans.derive_tasks(self.conn, derivation, slices)

    def _finish(self, stopped: tuple[dict[str, str], datetime | None] | None, unusable: list[str]) -> PlanStatus | None:
        if stopped is None and self.plan_id is None:
            return None
        plan_id = self._plan()
        status = PlanStatus.READY if stopped is None else PlanStatus.PARTIAL
        remarks: dict[str, Any] = {"sliceCount": self._slice_no - 1, "partition": None, "slicedTo": None}
        if stopped is not None:
            values, moment = stopped
            remarks |= {"partition": values, "slicedTo": None if moment is None else format_instant(moment)}
        if unusable:  # their values hold a '/' where a key cannot
            remarks["unusablePartitions"] = {"count": len(unusable), "first": unusable[:3]}
        plans.finish_slicing(self.conn, plan_id, status=status, remarks=remarks)
        return status
