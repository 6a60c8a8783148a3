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
from ingest.rhythm import MISFIRE_GRACE_S, Rhythm, jitter_of, next_fire
from ingest.states import FireResult, Operation, Trigger
from ingest.store.jsontext import dump


@dataclass(frozen=True, slots=True, kw_only=True)
class DueSchedule:
    """A schedule whose time has come; its row is locked by the reading transaction."""

    schedule_code: str
    provenance_code: str
    endpoint_name: str
    operation_code: str
    rhythm: Rhythm
    next_fire_at: datetime
    next_run_at: datetime | None
    now: datetime


# What a schedule declares, with what people changed at run time over it.
RHYTHM_COLUMNS = """r.kind, coalesce(s.every_s, r.every_s)::float8 AS every_s, r.cron, coalesce(r.zone, 'UTC') AS zone,
           coalesce(r.on_missed, 'skip') AS on_missed, r.grace_s::float8 AS grace_s, r.jitter_s::float8 AS jitter_s,
           r.quiet"""


def read_rhythm(row: Any) -> Rhythm:
    """Return the rhythm of a row that has `RHYTHM_COLUMNS`."""
    return Rhythm(
        kind=row.kind,
        every_s=row.every_s,
        cron=row.cron,
        zone=row.zone,
        on_missed=row.on_missed,
        grace_s=MISFIRE_GRACE_S if row.grace_s is None else row.grace_s,
        jitter_s=row.jitter_s,
        quiet=tuple(row.quiet or ()),
    )


_ADOPT = text("""
    INSERT INTO ing_schedule_state (schedule_code, next_fire_at)
    SELECT schedule_code, coalesce(start_at, now()) FROM reg_schedule WHERE kind <> 'cron'
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
    UPDATE ing_schedule_state s SET next_fire_at = wanted.next
      FROM wanted
     WHERE s.schedule_code = wanted.schedule_code AND s.next_fire_at > now() AND s.next_fire_at <> wanted.next
""")

# A calendar is not arithmetic PostgreSQL knows: these few are placed by the planner, when they are new or changed.
_UNPLACED = text(f"""
    SELECT r.schedule_code, r.start_at, now() AS now, {RHYTHM_COLUMNS}
      FROM reg_schedule r LEFT JOIN ing_schedule_state s USING (schedule_code)
     WHERE r.kind = 'cron' AND s.rhythm IS DISTINCT FROM r.cron || ' ' || coalesce(r.zone, 'UTC')
     ORDER BY r.schedule_code LIMIT 1000
""")

_PLACE = text("""
    INSERT INTO ing_schedule_state AS s (schedule_code, next_fire_at, rhythm) VALUES (:code, :next, :rhythm)
    ON CONFLICT (schedule_code) DO UPDATE SET next_fire_at = :next, rhythm = :rhythm
     WHERE s.rhythm IS DISTINCT FROM :rhythm
""")

_LOCK_DUE = text(f"""
    SELECT r.schedule_code, r.provenance_code, r.endpoint_name, r.operation_code, s.next_fire_at, s.next_run_at,
           now() AS now, {RHYTHM_COLUMNS}
      FROM ing_schedule_state s JOIN reg_schedule r USING (schedule_code)
     WHERE coalesce(s.next_run_at, s.next_fire_at + make_interval(secs => s.delay_s::float8)) <= now()
       AND coalesce(s.enabled, r.enabled)
     ORDER BY s.next_fire_at, r.schedule_code LIMIT :limit FOR UPDATE OF s SKIP LOCKED
""")

_FIRE = text("""
    INSERT INTO ing_schedule_instance (scheduler_job_id, scheduled_for, provenance_code, endpoint_name,
           operation_code, trigger_type_code, trigger_params, result_code, record_remarks, ended_at)
    VALUES (:job, :at, :source, :endpoint, :operation, :trigger, CAST(:params AS jsonb), :result,
            CAST(:remarks AS jsonb), CASE WHEN :result = 'FIRED' THEN NULL ELSE now() END)
    ON CONFLICT ON CONSTRAINT uk_fire DO NOTHING RETURNING id
""")

# A next run set by a person is spent here; it stands beside the grid, whose anchor `last_fire_at` it leaves alone.
_MOVE = text("""
    UPDATE ing_schedule_state
       SET next_fire_at = :next, delay_s = :delay, last_fire_at = coalesce(:last, last_fire_at), next_run_at = NULL
     WHERE schedule_code = :code
""")


def adopt_schedules(conn: Connection) -> None:
    """Give every new schedule its state (without start_at it is due at once, G1) and follow changed ones (G2)."""
    conn.execute(_ADOPT)
    conn.execute(_FOLLOW)
    for row in conn.execute(_UNPLACED).all():
        rhythm = read_rhythm(row)
        try:
            first = next_fire(rhythm, row.start_at or row.now, row.now)
        except ValueError:
            continue  # written past the checks; the others go on, and `ingest schedules list` shows it without a next
        conn.execute(_PLACE, {"code": row.schedule_code, "next": first, "rhythm": f"{rhythm.cron} {rhythm.zone}"})


def lock_due_schedules(conn: Connection, limit: int = 100) -> list[DueSchedule]:
    """Return due schedules no other planner is firing right now."""
    return [
        DueSchedule(
            schedule_code=row.schedule_code,
            provenance_code=row.provenance_code,
            endpoint_name=row.endpoint_name,
            operation_code=row.operation_code,
            rhythm=read_rhythm(row),
            next_fire_at=row.next_fire_at,
            next_run_at=row.next_run_at,
            now=row.now,
        )
        for row in conn.execute(_LOCK_DUE, {"limit": limit})
    ]


def record_fire(conn: Connection, schedule: DueSchedule, moment: datetime, *, skipped: str | None = None) -> None:
    """Write one fire, or why it does not take place; a fire that is written already stays as it is."""
    conn.execute(
        _FIRE,
        {
            "job": schedule.schedule_code,
            "at": moment,
            "source": schedule.provenance_code,
            "endpoint": schedule.endpoint_name,
            "operation": schedule.operation_code,
            "trigger": Trigger.SCHEDULE,
            "params": "{}",
            "result": FireResult.FIRED if skipped is None else FireResult.SKIPPED,
            "remarks": dump({} if skipped is None else {"skipped": skipped}),
        },
    )


def move_schedule(conn: Connection, schedule: DueSchedule, *, following: datetime, anchor: datetime | None) -> None:
    """Wait for the next fire; `anchor` is the grid's latest moment, None where the fire was not one of the grid."""
    delay = jitter_of(schedule.schedule_code, following, schedule.rhythm.jitter_s)
    conn.execute(_MOVE, {"code": schedule.schedule_code, "next": following, "delay": delay, "last": anchor})


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


_UNFINISHED = text("""
    SELECT i.scheduled_for, count(t.id) FROM ing_schedule_instance i
      JOIN ing_plan p ON p.schedule_instance_id = i.id
      JOIN ing_task t ON t.plan_id = p.id AND t.status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING')
     WHERE i.scheduler_job_id = :job AND i.result_code = 'PLANNED'
     GROUP BY i.id, i.scheduled_for ORDER BY i.id DESC LIMIT 1
""")


def find_unfinished(conn: Connection, code: str) -> tuple[datetime, int] | None:
    """Return a schedule's fire that still has unfinished tasks and how many, or None (G7)."""
    row = conn.execute(_UNFINISHED, {"job": code}).one_or_none()
    return None if row is None else (row[0], row[1])


def find_running_fire(conn: Connection, fire: Fire) -> tuple[datetime, int] | None:
    """Return when the schedule's last planned fire was and how many of its tasks are unfinished, or None (G7)."""
    row = conn.execute(_RUNNING, {"job": fire.scheduler_job_id, "id": fire.id}).one_or_none()
    return None if row is None else (row[0], row[1])
