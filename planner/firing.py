"""Firing: from a due schedule to its stored fires, in the transaction that moves it on (D1, G2, G3, G4)."""

from ingest.db import Connection
from ingest.rhythm import NEVER, decide, next_fire, quiet_hours
from ingest.store import schedules


def fire_schedule(conn: Connection, schedule: schedules.DueSchedule) -> int:
    """Write the fires that are due, or why there are none; return how many take place."""
    rhythm, now = schedule.rhythm, schedule.now
    quiet = quiet_hours(rhythm, now)
    if schedule.next_run_at is not None:
        # set by a person: it takes place whatever the hour and however late, and then the rhythm goes on
        schedules.record_fire(conn, schedule, schedule.next_run_at)
        following = schedule.next_fire_at
        if following <= now:
            following = NEVER if rhythm.kind == "once" else next_fire(rhythm, following, now)
        schedules.move_schedule(conn, schedule, following=following, anchor=None)
        return 1
    decision = decide(rhythm, schedule.next_fire_at, now)
    if decision.missed is not None:
        schedules.record_fire(conn, schedule, schedule.next_fire_at, skipped=decision.missed)
    skipped = None if quiet is None else f"quiet hours {quiet} ({rhythm.zone})"
    for moment in decision.fires:
        schedules.record_fire(conn, schedule, moment, skipped=skipped)
    schedules.move_schedule(conn, schedule, following=decision.following, anchor=schedule.next_fire_at)
    return 0 if quiet else len(decision.fires)
