"""Windows: exact half-open stretches of time inside, written the way each source wants them outside (B5).

Invariant: ends sit on unit boundaries of the source's precision in the source's zone, so that "until day D,
inclusive" and the next window's "from day D+1" neither overlap nor leave a hole, on 23- and 25-hour days too.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from ingest.spec.snapshot import Window

_UNIT = {
    "day": timedelta(days=1),
    "hour": timedelta(hours=1),
    "minute": timedelta(minutes=1),
    "second": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
    "us": timedelta(microseconds=1),
}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EPOCH_UNIT = {"epoch_s": _UNIT["second"], "epoch_ms": _UNIT["ms"], "epoch_us": _UNIT["us"]}


def floor_to_unit(moment: datetime, unit: str, zone: str) -> datetime:
    """Return the last unit boundary at or before the moment, as UTC."""
    if unit == "day":
        midnight = moment.astimezone(ZoneInfo(zone)).replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
        return midnight.astimezone(UTC)
    # Shorter units are equally long whatever the wall clock does; only where they begin is the zone's (Kathmandu's
    # hours begin at a quarter past). Wall-clock hours would break where DST moves by half an hour or at 00:01.
    offset = ZoneInfo(zone).utcoffset(datetime(2024, 1, 1)) or timedelta()  # noqa: DTZ001 -- a wall clock's reading
    return moment.astimezone(UTC) - (moment - _EPOCH + offset) % _UNIT[unit]


def advance(moment: datetime, step_s: float, unit: str, zone: str) -> datetime:
    """Return the unit boundary at or before moment + step, but always later than the moment.

    Days are added on the wall clock: seven days after a midnight is a midnight, whatever DST did between.
    """
    whole_days, rest = divmod(step_s, 86400.0)
    later = (moment.astimezone(ZoneInfo(zone)) + timedelta(days=whole_days)).astimezone(UTC) + timedelta(seconds=rest)
    floored = floor_to_unit(later, unit, zone)
    if floored > moment:
        return floored
    # the step ends inside the unit the moment is in: take the rest of that unit; a day may have 25 hours
    longest = _UNIT[unit] + (timedelta(hours=2) if unit == "day" else timedelta())
    following = floor_to_unit(floor_to_unit(moment, unit, zone) + longest, unit, zone)
    return following if following > moment else moment + _UNIT[unit]


def coarsest_unit(window: Window) -> str:
    """Return the unit window ends must sit on: the declared alignment, or the source's precision if coarser."""
    order = list(_UNIT)
    candidates = [window.precision, *([window.align] if window.align else [])]
    return min(candidates, key=order.index)


def horizon(window: Window, now: datetime) -> datetime:
    """Return the latest end a closed window may have now: `now - safety_lag`, on a unit boundary."""
    return floor_to_unit(now - timedelta(seconds=window.safety_lag_s), coarsest_unit(window), window.zone)


def render_window(window: Window, start: datetime | None, end: datetime | None) -> dict[str, Any]:
    """Return what templates see as `window`: `from` and `to` as the source wants them written."""
    if start is None or end is None:
        return {"from": None, "to": None}
    # "until D, inclusive" means all of D: the last unit is the one that ends at `to`
    last = floor_to_unit(end - timedelta(microseconds=1), window.precision, window.zone)
    if window.ends == "exclusive" or window.bound == "instant":
        # that unit's end, which is `to`; were `to` inside a unit (the precision changed since), the unit is asked for
        # whole: some records twice, none never
        last = advance(last, 0.0, window.precision, window.zone)
    write = _writer(window)
    return {"from": write(start), "to": write(last)}


def _writer(window: Window) -> Callable[[datetime], Any]:
    zone = ZoneInfo(window.zone)
    match window.format:
        case "epoch_s" | "epoch_ms" | "epoch_us":
            unit = _EPOCH_UNIT[window.format]
            return lambda moment: (moment - _EPOCH) // unit  # exact, and a floor before 1970 too
        case "date":
            return lambda moment: moment.astimezone(zone).strftime("%Y-%m-%d")
        case "iso":
            return lambda moment: _iso(moment.astimezone(zone), window.precision)
        case pattern:
            return lambda moment: moment.astimezone(zone).strftime(pattern)


def _iso(moment: datetime, precision: str) -> str:
    if precision == "day":
        return moment.strftime("%Y-%m-%d")
    spec = {"minute": "seconds", "second": "seconds", "ms": "milliseconds", "us": "microseconds"}[precision]
    text = moment.isoformat(timespec=spec)
    return text.replace("+00:00", "Z")
