"""Instants: from the texts people send to whole seconds since the epoch (UTC), and back.

Every window inside the simulator is a half-open pair of seconds `[low, high)`; "until day D, all of D"
and other inclusive ends are turned into that form here, and nowhere else.
"""

import math
import re
import time
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

DAY = 86_400
BEGINNING = -(2**62)
END = 2**62

_TEXT = re.compile(
    r"(?P<year>\d{4})(?:[-/](?P<month>\d{1,2})(?:[-/](?P<day>\d{1,2})"
    r"(?:[T ](?P<hour>\d{2})(?::(?P<minute>\d{2})(?::(?P<second>\d{2})(?P<fraction>\.\d+)?)?)?"
    r"(?P<zone>Z|[+-]\d{2}:?\d{2})?)?)?)?"
)


def parse_unit(text: str) -> tuple[int, int]:
    """Return the year, month, day, hour, minute or second that `text` names, as `[low, high)`.

    Raises ValueError for anything else. Without a zone the text is UTC.
    """
    match = _TEXT.fullmatch(text)
    if match is None:
        raise ValueError(f"not a date or time: {text!r}")
    parts = match.groupdict()
    year, month, day = (int(parts[name] or 1) for name in ("year", "month", "day"))
    hour, minute, second = (int(parts[name] or 0) for name in ("hour", "minute", "second"))
    start = datetime(year, month, day, hour, minute, second, tzinfo=_parse_zone(parts["zone"]))
    if parts["month"] is None:
        end = start.replace(year=year + 1)
    elif parts["day"] is None:
        end = (start + timedelta(days=31)).replace(day=1)
    elif parts["hour"] is None:
        end = start + timedelta(days=1)
    elif parts["minute"] is None:
        end = start + timedelta(hours=1)
    elif parts["second"] is None:
        end = start + timedelta(minutes=1)
    else:
        end = start + timedelta(seconds=1)
    return int(start.timestamp()), int(end.timestamp())


def parse_bound(text: str) -> int:
    """Return the first whole second at or after the instant `text`.

    Records carry whole seconds, so rounding up is right for both ends of a half-open window.
    """
    match = _TEXT.fullmatch(text)
    fraction = match["fraction"] if match else None
    return parse_unit(text)[0] + (math.ceil(float(fraction)) if fraction else 0)


def parse_window(low: str | None, high: str | None) -> tuple[int, int]:
    """Return the half-open window of two instants; a missing or empty end is open."""
    return (parse_bound(low) if low else BEGINNING, parse_bound(high) if high else END)


def format_instant(seconds: int) -> str:
    """Write `seconds` as `2024-01-05T10:11:12Z`."""
    day, rest = divmod(seconds, DAY)
    hours, rest = divmod(rest, 3600)
    year, month, date = find_date(day)
    return f"{year:04d}-{month:02d}-{date:02d}T{hours:02d}:{rest // 60:02d}:{rest % 60:02d}Z"


@lru_cache(maxsize=4096)
def find_date(day: int) -> tuple[int, int, int]:
    """Return year, month and day of month of the `day`-th day since the epoch."""
    return time.gmtime(day * DAY)[:3]


def _parse_zone(text: str | None) -> timezone:
    if text is None or text == "Z":
        return UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return timezone(timedelta(minutes=-minutes if text[0] == "-" else minutes))
