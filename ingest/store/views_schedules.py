"""Schedules as people see them: what is declared, what was changed at run time, what fired and why not (G3, G4)."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text

from ingest.db import Connection
from ingest.rhythm import NEVER, Rhythm, list_next
from ingest.store.schedules import RHYTHM_COLUMNS, read_rhythm

MOST_SCHEDULES = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView:
    """One schedule with its run-time changes; `declared_every_s` is the file's interval, `rhythm` what holds now."""

    code: str
    source: str
    endpoint: str
    operation: str
    rhythm: Rhythm
    declared_every_s: float | None
    declared_enabled: bool
    enabled: bool
    next_fire_at: datetime | None
    next_run_at: datetime | None
    last_fire_at: datetime | None
    last_result: str | None
    last_remarks: dict[str, Any] | None
    updated_at: datetime | None
    updated_by: str
    reason: str
    now: datetime

    @property
    def next_at(self) -> datetime | None:
        """When it fires next, None if it does not."""
        if not self.enabled:
            return None
        return self.next_run_at or self.next_fire_at

    @property
    def overrides(self) -> list[str]:
        """What people changed at run time, by name."""
        changed = {
            "every": self.rhythm.every_s != self.declared_every_s,
            "next run": self.next_run_at is not None,
            "paused" if not self.enabled else "resumed": self.enabled != self.declared_enabled,
        }
        return [name for name, differs in changed.items() if differs]

    def list_next(self, count: int) -> list[datetime]:
        """Return the next fires as they stand now."""
        if self.next_at is None:
            return []
        if self.next_run_at is None or self.next_fire_at is None:
            return list_next(self.rhythm, self.next_at, count)
        following = [at for at in list_next(self.rhythm, self.next_fire_at, count) if at > self.next_run_at]
        return [self.next_run_at, *following][:count]


_LIST = text(f"""
    SELECT r.schedule_code AS code, r.provenance_code AS source, r.endpoint_name AS endpoint,
           r.operation_code AS operation, r.every_s::float8 AS declared_every_s, r.enabled AS declared_enabled,
           coalesce(s.enabled, r.enabled) AS enabled, s.next_run_at,
           nullif(s.next_fire_at, CAST(:never AS timestamptz)) AS next_fire_at,
           last.scheduled_for AS last_fire_at, last.result_code AS last_result, last.record_remarks AS last_remarks,
           CASE WHEN s.updated_by <> '' THEN s.updated_at END AS updated_at,
           coalesce(s.updated_by, '') AS updated_by, coalesce(s.reason, '') AS reason, now() AS now, {RHYTHM_COLUMNS}
      FROM reg_schedule r LEFT JOIN ing_schedule_state s USING (schedule_code)
      LEFT JOIN LATERAL (
           SELECT i.scheduled_for, i.result_code, i.record_remarks FROM ing_schedule_instance i
            WHERE i.scheduler_job_id = r.schedule_code ORDER BY i.scheduled_for DESC LIMIT 1) last ON true
     WHERE (CAST(:source AS text) IS NULL OR r.provenance_code = :source)
       AND (CAST(:code AS text) IS NULL OR r.schedule_code = :code)
     ORDER BY r.schedule_code LIMIT {MOST_SCHEDULES}
""")


def list_schedules(conn: Connection, *, source: str | None = None, code: str | None = None) -> list[ScheduleView]:
    """Return schedules by name."""
    rhythm_names = Rhythm.__slots__
    found = []
    for row in conn.execute(_LIST, {"source": source, "code": code, "never": NEVER}):
        values = {name: value for name, value in row._mapping.items() if name not in rhythm_names}
        found.append(ScheduleView(**values, rhythm=read_rhythm(row)))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class FireRow:
    """One fire: what came of it and why."""

    id: int
    scheduled_for: datetime
    trigger: str
    result: str
    remarks: dict[str, Any]
    started_at: datetime | None
    ended_at: datetime | None
    tasks: int
    failed: int
    open: int

    @property
    def why(self) -> str:
        """The reason it was skipped, failed or found nothing, in one line."""
        said = self.remarks.get("skipped") or self.remarks.get("nothing") or (self.remarks.get("errors") or [""])[0]
        return str(said)


_FIRES = text("""
    SELECT i.id, i.scheduled_for, i.trigger_type_code AS trigger, i.result_code AS result, i.record_remarks AS remarks,
           i.started_at, coalesce(work.finished_at, i.ended_at) AS ended_at, work.tasks, work.failed, work.open
      FROM ing_schedule_instance i
     CROSS JOIN LATERAL (
           SELECT count(*) AS tasks, count(*) FILTER (WHERE t.status_code IN ('FAILED', 'PARTIAL')) AS failed,
                  count(*) FILTER (WHERE t.status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING')) AS open,
                  max(t.finished_at) AS finished_at
             FROM ing_plan p JOIN ing_task t ON t.plan_id = p.id WHERE p.schedule_instance_id = i.id) work
     WHERE i.provenance_code = :source AND i.endpoint_name = :endpoint
     ORDER BY i.created_at DESC, i.id DESC LIMIT :limit
""")


def list_fires(conn: Connection, *, source: str, endpoint: str, limit: int = 20) -> list[FireRow]:
    """Return an endpoint's fires, newest first, those asked for by hand included."""
    values = {"source": source, "endpoint": endpoint, "limit": limit}
    return [FireRow(**row._mapping) for row in conn.execute(_FIRES, values)]
