"""Rhythm: when a schedule fires, what of the past is made up, and what comes next (pure; G1, G2).

Invariant: fires lie on a grid that neither lateness nor jitter moves: `planned + n * every`, or the moments of a cron
expression in its zone. cronsim does the calendar, so a job at 02:30 runs once on both nights of a clock change.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

# a `once` that fired never fires again, nor does a cron expression without a date to come
NEVER = datetime(9999, 1, 1, tzinfo=UTC)
DEFAULT_EVERY_S = 43_200  # G3: what holds where nobody declared an interval
MISFIRE_GRACE_S = 60.0
_MOST_MADE_UP = 100  # fires of one outage; behind them the work is one plan anyway
_HOURS = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Rhythm:
    """What a schedule declares about time; `quiet` holds stretches such as 22:00-06:00 in `zone`."""

    kind: str  # once, every or cron
    every_s: float | None = None
    cron: str | None = None
    zone: str = "UTC"
    on_missed: str = "skip"  # skip, one or all
    grace_s: float = MISFIRE_GRACE_S
    jitter_s: float = 0.0
    quiet: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do about a schedule that is due: fire for these moments, say what was missed, wait for the next."""

    fires: tuple[datetime, ...]
    missed: str | None
    following: datetime


def decide(rhythm: Rhythm, planned: datetime, now: datetime) -> Decision:
    """Decide about a schedule whose planned moment has come."""
    if rhythm.kind == "once":
        return Decision((), _missed(planned, now), NEVER) if _is_late(rhythm, planned, now) else _fire(planned, NEVER)
    following = next_fire(rhythm, planned, now)
    passed = _passed(rhythm, planned, now)
    latest = passed[0]
    if rhythm.on_missed == "all":
        return Decision(tuple(reversed(passed)), None, following)
    if rhythm.on_missed == "skip" and _is_late(rhythm, latest, now):
        return Decision((), _missed(planned, now), following)
    return Decision((latest,), None if latest == planned else _missed(planned, now), following)


def next_fire(rhythm: Rhythm, planned: datetime, now: datetime) -> datetime:
    """Return the first moment of the grid after both `planned` and `now`."""
    match rhythm.kind:
        case "every":
            every = _every(rhythm)
            behind = (now - planned) // every
            return planned + every * (max(0, behind) + 1)
        case "cron":
            return next(_cron_moments(rhythm, max(now, planned)), NEVER)
        case _:
            return NEVER


def list_next(rhythm: Rhythm, first: datetime, count: int) -> list[datetime]:
    """Return the next fires, `first` included: what a person is shown before a change is made."""
    found = [first] if first < NEVER else []
    while found and len(found) < count and (following := next_fire(rhythm, found[-1], found[-1])) < NEVER:
        found.append(following)
    return found


def jitter_of(code: str, moment: datetime, jitter_s: float) -> float:
    """Return how much later than its moment a fire starts: the same for every planner, spread over all schedules."""
    digest = hashlib.sha256(f"{code}@{moment.isoformat()}".encode()).digest()
    return round(jitter_s * int.from_bytes(digest[:4]) / 2**32, 3)


def quiet_hours(rhythm: Rhythm, now: datetime) -> str | None:
    """Return the quiet stretch that `now` falls into, or None."""
    local = now.astimezone(ZoneInfo(rhythm.zone)).time()
    for stretch in rhythm.quiet:
        start, end = _read_hours(stretch)
        inside = start <= local < end if start < end else local >= start or local < end
        if inside:
            return stretch
    return None


def check_quiet(stretch: str) -> None:
    """Raise ValueError unless this is a stretch of hours."""
    _read_hours(stretch)


def check_cron(expression: str) -> None:
    """Raise ValueError unless this is a cron expression; cronsim refuses one that never fires, too."""
    _read_cron(expression, datetime(2024, 1, 1, tzinfo=UTC))


def _fire(moment: datetime, following: datetime) -> Decision:
    return Decision((moment,), None, following)


def _every(rhythm: Rhythm) -> timedelta:
    return timedelta(seconds=float(rhythm.every_s or DEFAULT_EVERY_S))


def _passed(rhythm: Rhythm, planned: datetime, now: datetime) -> list[datetime]:
    """Return the moments of the grid from `planned` to `now`, newest first, at most as many as are made up."""
    if rhythm.kind == "every":
        every = _every(rhythm)
        count = max(0, (now - planned) // every)
        return [planned + every * n for n in range(count, max(-1, count - _MOST_MADE_UP), -1)]
    # cronsim goes back from a moment it leaves out, and knows no part of a minute
    backwards = _cron_moments(rhythm, now + timedelta(microseconds=1), reverse=True)
    found = list(islice(takewhile(lambda moment: moment >= planned, backwards), _MOST_MADE_UP))
    return found or [planned]


def _cron_moments(rhythm: Rhythm, start: datetime, *, reverse: bool = False) -> Iterator[datetime]:
    moments = _read_cron(rhythm.cron or "", start.astimezone(ZoneInfo(rhythm.zone)), reverse=reverse)
    return (moment.astimezone(UTC) for moment in moments)


def _read_cron(expression: str, start: datetime, *, reverse: bool = False) -> Iterator[datetime]:
    try:
        if len(expression.split()) != 5:
            raise CronSimError("It has five fields")  # cronsim also reads one of seconds
        return iter(CronSim(expression, start, reverse=reverse))
    except CronSimError as error:
        raise ValueError(f"'{expression}' is not a cron expression: {str(error).lower()}; write 30 2 * * *") from error


def _is_late(rhythm: Rhythm, moment: datetime, now: datetime) -> bool:
    return (now - moment).total_seconds() > rhythm.grace_s + rhythm.jitter_s


def _missed(planned: datetime, now: datetime) -> str:
    return f"missed: due at {planned.isoformat()}, noticed {(now - planned).total_seconds():.0f} s later"


def _read_hours(stretch: str) -> tuple[time, time]:
    match = _HOURS.fullmatch(stretch)
    if match is None or match[0][:5] == match[0][6:]:
        raise ValueError(f"'{stretch}' is not a stretch of hours: write 22:00-06:00")
    return time(int(match[1]), int(match[2])), time(int(match[3]), int(match[4]))
