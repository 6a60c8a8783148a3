"""Schedules and their fires: what is due, and one stored row for every fire (D1, G1, G4).

Invariant: `(scheduler_job_id, scheduled_for)` is unique and the row is written in the transaction that moves
`next_fire_at`, so a fire happens once with any number of planners; leadership is not needed.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text

from ingest.db import Connection
from ingest.errors import RefusedByState
from ingest.states import FireResult, Operation, Trigger
from ingest.store.jsontext import dump


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSchedule:
    """A schedule whose time has come; its row is locked by the reading transaction."""

    schedule_code: str
    provenance_code: str
    endpoint_name: str
    operation_code: str
    kind: str
    every_s: float | None
    next_fire_at: datetime
    now: datetime


_ADOPT = text("""
    INSERT INTO ing_schedule_state (schedule_code, next_fire_at)
    SELECT schedule_code, coalesce(start_at, now()) FROM reg_schedule
    ON CONFLICT (schedule_code) DO NOTHING
""")

# G2: after a change of interval the next fire is last planned + new interval, rolled past now. While the interval is
# unchanged that is what is stored already, so nothing is written; what is due now is left to fire.
_FOLLOW = text("""
    WITH wanted AS (
        SELECT s.schedule_code, s.last_fire_at + make_interval(secs =>
                   (e.every_s * (floor(extract(epoch FROM now() - s.last_fire_at) / e.every_s) + 1))::float8) AS next
          FROM ing_schedule_state s JOIN reg_schedule r USING (schedule_code)
         CROSS JOIN LATERAL (SELECT coalesce(s.every_s, r.every_s) AS every_s) e
         WHERE r.kind = 'every' AND s.last_fire_at IS NOT NULL)
    UPDATE ing_schedule_state s SET next_fire_at = wanted.next, updated_at = now()
      FROM wanted
     WHERE s.schedule_code = wanted.schedule_code AND s.next_fire_at > now() AND s.next_fire_at <> wanted.next
""")

_LOCK_DUE = text("""
    SELECT r.schedule_code, r.provenance_code, r.endpoint_name, r.operation_code, r.kind,
           coalesce(s.every_s, r.every_s)::float8 AS every_s, s.next_fire_at, now() AS now
      FROM ing_schedule_state s JOIN reg_schedule r USING (schedule_code)
     WHERE s.next_fire_at <= now() AND coalesce(s.enabled, r.enabled)
     ORDER BY s.next_fire_at, r.schedule_code LIMIT :limit FOR UPDATE OF s SKIP LOCKED
""")

_FIRE = text("""
    INSERT INTO ing_schedule_instance (scheduler_job_id, scheduled_for, provenance_code, endpoint_name,
           operation_code, trigger_type_code, trigger_params, result_code, record_remarks, ended_at)
    VALUES (:job, :at, :source, :endpoint, :operation, :trigger, CAST(:params AS jsonb), :result,
            CAST(:remarks AS jsonb), CASE WHEN :result = 'FIRED' THEN NULL ELSE now() END)
    ON CONFLICT ON CONSTRAINT uk_fire DO NOTHING RETURNING id
""")

_MOVE = text("""
    UPDATE ing_schedule_state SET next_fire_at = :next, last_fire_at = :last, updated_at = now()
     WHERE schedule_code = :code
""")


def adopt_schedules(conn: Connection) -> None:
    """Give every new schedule its state (without start_at it is due at once, G1) and follow changed intervals (G2)."""
    conn.execute(_ADOPT)
    conn.execute(_FOLLOW)


def lock_due_schedules(conn: Connection, limit: int = 100) -> list[DueSchedule]:
    """Return due schedules no other planner is firing right now."""
    return [DueSchedule(**row._mapping) for row in conn.execute(_LOCK_DUE, {"limit": limit})]


def record_fire(
    conn: Connection, schedule: DueSchedule, *, next_fire_at: datetime, missed: str | None = None
) -> int | None:
    """Write the fire (or that it was missed) and move the schedule on; None if this fire was already written."""
    fired = conn.execute(
        _FIRE,
        {
            "job": schedule.schedule_code,
            "at": schedule.next_fire_at,
            "source": schedule.provenance_code,
            "endpoint": schedule.endpoint_name,
            "operation": schedule.operation_code,
            "trigger": Trigger.SCHEDULE,
            "params": "{}",
            "result": FireResult.FIRED if missed is None else FireResult.SKIPPED,
            "remarks": dump({} if missed is None else {"skipped": missed}),
        },
    ).scalar_one_or_none()
    values = {"code": schedule.schedule_code, "next": next_fire_at, "last": schedule.next_fire_at}
    conn.execute(_MOVE, values)
    return fired


def request_run(
    conn: Connection, *, source: str, endpoint: str, operation: Operation, request_id: str, params: dict[str, Any]
) -> int:
    """Ask for a run now: a fire of its own that moves no schedule. Planners pick it up within one tick."""
    fired = conn.execute(
        _FIRE,
        {
            "job": f"manual:{request_id}",
            "at": conn.execute(text("SELECT now()")).scalar_one(),
            "source": source,
            "endpoint": endpoint,
            "operation": operation,
            "trigger": Trigger.MANUAL,
            "params": dump(params),
            "result": FireResult.FIRED,
            "remarks": "{}",
        },
    ).scalar_one_or_none()
    if fired is None:
        raise RefusedByState(f"request {request_id} was already made")
    return int(fired)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fire:
    """A fire that waits to be planned; its row is locked by the reading transaction."""

    id: int
    scheduler_job_id: str
    scheduled_for: datetime
    provenance_code: str
    endpoint_name: str
    operation_code: str
    trigger_type_code: str
    trigger_params: dict[str, Any]
    now: datetime

    @property
    def trigger(self) -> str:
        """What makes a task of this fire different from the same window's task in the next one (D1)."""
        return f"{self.scheduler_job_id}@{self.scheduled_for.isoformat()}"


_TAKE = text("""
    SELECT id, scheduler_job_id, scheduled_for, provenance_code, endpoint_name, operation_code, trigger_type_code,
           trigger_params, now() AS now
      FROM ing_schedule_instance WHERE result_code = 'FIRED' AND id > :after
     ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED
""")

_FINISH = text("""
    UPDATE ing_schedule_instance
       SET result_code = :result, record_remarks = CAST(:remarks AS jsonb), expr_proto_hash = :proto,
           expr_proto_snapshot = CAST(:snapshot AS jsonb), started_at = :started, ended_at = clock_timestamp()
     WHERE id = :id
""")


def take_fire(conn: Connection, *, after: int = 0) -> Fire | None:
    """Lock the oldest unplanned fire with an id above `after`, or None."""
    row = conn.execute(_TAKE, {"after": after}).one_or_none()
    return None if row is None else Fire(**row._mapping)


def finish_fire(
    conn: Connection,
    fire: Fire,
    *,
    result: FireResult,
    remarks: dict[str, Any],
    proto_hash: str | None = None,
    expressions: dict[str, Any] | None = None,
) -> None:
    """Store how the fire ended and why."""
    conn.execute(
        _FINISH,
        {
            "id": fire.id,
            "result": result,
            "remarks": dump(remarks),
            "proto": proto_hash,
            "snapshot": None if expressions is None else dump(expressions),
            "started": fire.now,
        },
    )


_RUNNING = text("""
    SELECT i.scheduled_for, count(t.id) FROM ing_schedule_instance i
      JOIN ing_plan p ON p.schedule_instance_id = i.id
      JOIN ing_task t ON t.plan_id = p.id AND t.status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING')
     WHERE i.id = (SELECT max(id) FROM ing_schedule_instance
                    WHERE scheduler_job_id = :job AND id < :id AND result_code = 'PLANNED')
     GROUP BY i.scheduled_for
""")


def find_running_fire(conn: Connection, fire: Fire) -> tuple[datetime, int] | None:
    """Return when the schedule's last planned fire was and how many of its tasks are unfinished, or None (G7)."""
    row = conn.execute(_RUNNING, {"job": fire.scheduler_job_id, "id": fire.id}).one_or_none()
    return None if row is None else (row[0], row[1])
