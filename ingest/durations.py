"""Durations, byte sizes and rates as people write them: `90s`, `1h30m`, `PT15M`, `64MiB`, `200/min`.

Invariant: strict and exact. A number without a unit, a month or a fraction below a microsecond is refused rather than
guessed, and what `format_*` writes `parse_*` reads back as the same value.
"""

import re
from datetime import timedelta
from fractions import Fraction

_MICROSECONDS = {
    "w": 604_800_000_000,
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "us": 1,
}
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
# Largest unit first and each at most once, so that `30m1h` and `1h1h` are slips, not sums.
_PLAIN = re.compile("".join(rf"(?:(?P<{unit}>{_NUMBER}){unit})?" for unit in _MICROSECONDS))
_ISO = re.compile(
    rf"P(?:(?P<w>{_NUMBER})W|(?:(?P<d>{_NUMBER})D)?(?:T(?:(?P<h>{_NUMBER})H)?(?:(?P<m>{_NUMBER})M)?(?:(?P<s>{_NUMBER})S)?)?)"
)
_CALENDAR = re.compile(r"P(?:[0-9.]+Y|[0-9.]+M|[0-9.]+Y[0-9.]+M).*")
_LONGEST = 36_500 * _MICROSECONDS["d"]  # a century: more is a slip, and timedelta has an end of its own


def parse_duration(text: str) -> timedelta:
    """Read `90s`, `15m`, `1h30m`, `7d`, `250ms` or ISO 8601 `PT15M`; raise ValueError saying what would be right."""
    written = text.strip()
    if re.fullmatch(_NUMBER, written):
        raise ValueError(f"'{written}' has no unit: write {written}s, {written}m, {written}h or {written}d")
    if _CALENDAR.fullmatch(written):
        raise ValueError(f"'{written}': months and years have no fixed length: write days, such as 30d")
    match = _PLAIN.fullmatch(written) or _ISO.fullmatch(written)
    parts = {unit: number for unit, number in match.groupdict().items() if number} if match else {}
    if not parts:
        raise ValueError(f"'{written}' is not a duration: write 90s, 15m, 1h30m, 7d or PT15M")
    total = sum((Fraction(number) * _MICROSECONDS[unit] for unit, number in parts.items()), Fraction(0))
    if total.denominator != 1:
        raise ValueError(f"'{written}' is finer than a microsecond")
    if total > _LONGEST:
        raise ValueError(f"'{written}' is longer than a hundred years")
    return timedelta(microseconds=int(total))


def format_duration(duration: timedelta) -> str:
    """Write the duration in the largest whole units: 1h30m, 7d, 250ms; zero is 0s."""
    rest = duration // timedelta(microseconds=1)
    if rest < 0:
        raise ValueError("a duration cannot be negative")
    parts = []
    for unit, size in _MICROSECONDS.items():
        if unit == "w":
            continue  # 14d reads better than 2w beside other days
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


_BYTES = {
    "B": 1,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
}
_SIZE = re.compile(rf"(?P<number>{_NUMBER})\s?(?P<unit>[A-Za-z]+)")
_LARGEST_SIZE = 2**40


def parse_size(text: str) -> int:
    """Read `64MiB`, `10MB` or `512B`; raise ValueError saying what would be right."""
    written = text.strip()
    match = _SIZE.fullmatch(written)
    if match is None or match["unit"] not in _BYTES:
        raise ValueError(f"'{written}' is not a size: write a number and {', '.join(_BYTES)}, such as 64MiB")
    size = Fraction(match["number"]) * _BYTES[match["unit"]]
    if size.denominator != 1:
        raise ValueError(f"'{written}' is not a whole number of bytes")
    if size > _LARGEST_SIZE:
        raise ValueError(f"'{written}' is larger than 1024GiB")
    return int(size)


def format_size(size: int) -> str:
    """Write the size in the largest binary unit that divides it."""
    for unit in ("GiB", "MiB", "KiB"):
        if size and size % _BYTES[unit] == 0:
            return f"{size // _BYTES[unit]}{unit}"
    return f"{size}B"


_RATE = re.compile(r"(?P<limit>[0-9]{1,9})\s?/\s?(?P<span>\S+)")
_RATE_WORDS = {
    "s": "1s", "sec": "1s", "second": "1s",
    "m": "1m", "min": "1m", "minute": "1m",
    "h": "1h", "hour": "1h",
    "d": "1d", "day": "1d",
}  # fmt: skip


def parse_rate(text: str) -> tuple[int, timedelta]:
    """Read `3/1s`, `200/min` or `10/s` as (how many, in how long); raise ValueError saying what would be right."""
    written = text.strip()
    match = _RATE.fullmatch(written)
    if match is None:
        raise ValueError(f"'{written}' is not a rate: write 10/s, 200/min or 195/60s")
    span = _RATE_WORDS.get(match["span"], match["span"])
    try:
        seconds = parse_duration(span)
    except ValueError as error:
        raise ValueError(f"'{written}' is not a rate: {error}") from error
    limit = int(match["limit"])
    if limit < 1 or not seconds:
        raise ValueError(f"'{written}' lets nothing through: both numbers must be above zero")
    return limit, seconds


def format_rate(limit: int, span: timedelta) -> str:
    """Write the rate as `parse_rate` reads it."""
    return f"{limit}/{format_duration(span)}"
