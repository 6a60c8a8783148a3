"""Schedules at run time: change the interval or the next run, pause, resume, reset; no restart (G3, S1).

Invariant: a change is stored beside the file's value, with who, when and why, whether or not a planner is alive; the
planner follows it in its next pass, and `registry apply` does not wipe it.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from ingest.db import Connection, Database
from ingest.errors import NotFound, RefusedByState, ValueRefused
from ingest.logs import get_log
from ingest.rhythm import next_fire
from ingest.store import audit, overrides, schedules
from ingest.store.processes import list_processes
from ingest.store.views_schedules import ScheduleView, list_schedules

SHORTEST_S, LONGEST_S = 300, 604_800
_TOLERANCE = timedelta(seconds=30)
_FARTHEST = timedelta(days=30)
NO_PLANNER = "stored; no planner is running, so it takes effect when one is started"
_log = get_log("admin")


def get_schedule(conn: Connection, code: str) -> ScheduleView:
    """Return one schedule; raises `NotFound`."""
    found = list_schedules(conn, code=code)
    if not found:
        raise NotFound(f"no schedule {code}: `ingest schedules list` names them all")
    return found[0]


def planner_is_alive(conn: Connection) -> bool:
    """Say whether any planner shows a heartbeat."""
    return any(process.alive and process.kind == "PLANNER" for process in list_processes(conn))


def set_interval(database: Database, code: str, seconds: float, *, actor: str, reason: str = "") -> ScheduleView:
    """Let it fire every so often from its last planned fire on; raises `ValueRefused` outside 300..604800 s."""
    if not SHORTEST_S <= seconds <= LONGEST_S:
        raise ValueRefused(f"the interval is {SHORTEST_S} to {LONGEST_S} seconds (5m to 7d), not {seconds:g}")

    def change(conn: Connection, schedule: ScheduleView) -> None:
        if schedule.rhythm.kind != "every":
            kind = schedule.rhythm.kind
            raise ValueRefused(f"{code} is a `{kind}` schedule and has no interval; change its source file")
        overrides.override(conn, code, every_s=seconds, actor=actor, reason=reason)

    return _change(database, code, change, actor, reason, action="schedule interval", detail={"every_s": seconds})


def set_next_run(database: Database, code: str, moment: datetime, *, actor: str, reason: str = "") -> ScheduleView:
    """Let its next fire be at this moment, once; a time without a zone is UTC. Raises `ValueRefused`."""
    at = moment if moment.tzinfo else moment.replace(tzinfo=UTC)

    def change(conn: Connection, schedule: ScheduleView) -> None:
        if at < schedule.now - _TOLERANCE:
            raise ValueRefused("the next run must be in the future", code="past")
        if at > schedule.now + _FARTHEST:
            raise ValueRefused("the next run must not be more than 30 days ahead", code="far")
        overrides.override(conn, code, next_run_at=at, actor=actor, reason=reason)

    return _change(database, code, change, actor, reason, action="schedule next-run", detail={"at": at.isoformat()})


def set_enabled(database: Database, code: str, enabled: bool, *, actor: str, reason: str = "") -> ScheduleView:
    """Pause or resume it. What it missed while paused is not made up: its next fire is the grid's next."""

    def change(conn: Connection, schedule: ScheduleView) -> None:
        due = schedule.next_fire_at
        rolled = None
        if enabled and not schedule.enabled and due is not None and due < schedule.now:
            rolled = next_fire(schedule.rhythm, due, schedule.now)
        overrides.override(conn, code, enabled=enabled, next_fire_at=rolled, actor=actor, reason=reason)

    return _change(database, code, change, actor, reason, action="schedule resume" if enabled else "schedule pause")


def reset(database: Database, code: str, *, actor: str, reason: str = "") -> ScheduleView:
    """Go back to what the source file says."""

    def change(conn: Connection, _: ScheduleView) -> None:
        overrides.forget_overrides(conn, code, actor=actor, reason=reason)

    return _change(database, code, change, actor, reason, action="schedule reset")


def check_idle(conn: Connection, code: str) -> None:
    """Raise `RefusedByState` while the schedule's last fire still has unfinished tasks (G7)."""
    running = schedules.find_unfinished(conn, code)
    if running is not None:
        raise RefusedByState(
            f"{code}: the fire of {running[0]:%Y-%m-%d %H:%M:%SZ} still has {running[1]} unfinished tasks"
        )


def _change(
    database: Database,
    code: str,
    change: Callable[[Connection, ScheduleView], None],
    actor: str,
    reason: str,
    *,
    action: str,
    detail: dict[str, object] | None = None,
) -> ScheduleView:
    with database.transaction() as conn:
        schedules.adopt_schedules(conn)
        change(conn, get_schedule(conn, code))
        schedules.adopt_schedules(conn)  # the new next fire is known at once, planner or not
        audit.record(conn, actor=actor, action=action, target=code, detail=detail or {}, reason=reason)
        after = get_schedule(conn, code)
    _log.info(action, schedule=code, actor=actor, reason=reason, **(detail or {}))
    return after
