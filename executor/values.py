"""Values: from what a source wrote to what a typed column holds (pure; B9).

A converter takes a decoded JSON value that is not None and returns the column's value or raises `ValueError` with
what was expected; the mapping turns that into a quarantined record with its field path.
"""

import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from math import isfinite
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from ingest.spec.snapshot import Column, Moment

Convert = Callable[[Any], Any]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TRUE, _FALSE = {"true", "1", "yes", "y", "t"}, {"false", "0", "no", "n", "f"}
FALSE_WORDS = frozenset({"", *_FALSE})
_PER_SECOND = {"epoch_s": 1, "epoch_ms": 1_000, "epoch_us": 1_000_000}
_NUL = "contains a NUL character, which PostgreSQL cannot store"
_NUL_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")  # not the text \u0000 itself, which JSON writes \\u0000
# What PostgreSQL's numeric holds: digits before and after the point.
_MOST_WHOLE, _MOST_FRACTION = 131_072, 16_383
_LONG_NUMBER = re.compile(r"\d[eE][+-]?\d{4}|\d{4000}")
_LEAP_SECOND = re.compile(r"(:59):60(?=[.,Z+-]|$)")


def to_text(value: Any) -> str:
    """Text as it is; numbers and booleans as JSON writes them."""
    if isinstance(value, str):
        if "\x00" in value:
            raise ValueError(_NUL)
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    raise ValueError(f"expected text, got {_kind(value)}")


def to_int(value: Any) -> int:
    """A whole number that fits a bigint."""
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise ValueError(f"expected a whole number, got {value!r}")
    try:
        number = int(_digits(value))
    except (TypeError, ValueError) as error:
        raise ValueError(f"expected a whole number, got {_show(value)}") from error
    if not -(2**63) <= number < 2**63:
        raise ValueError(f"{number} does not fit a bigint; declare the column numeric")
    return number


def to_float(value: Any) -> float:
    """A finite number."""
    try:
        number = float(_digits(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"expected a number, got {_show(value)}") from error
    if isinstance(value, bool) or not isfinite(number):
        raise ValueError(f"expected a finite number, got {value!r}")
    return number


def to_numeric(value: Any) -> Decimal:
    """An exact number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"expected a number, got {_show(value)}")
    return _stored(str(value))


def _stored(text: str) -> Decimal:
    """Return the number if a numeric can hold it."""
    try:
        number = Decimal(_digits(text))
    except (InvalidOperation, ValueError) as error:
        raise ValueError(f"expected a number, got {_show(text)}") from error
    if not number.is_finite():
        raise ValueError(f"expected a finite number, got {_show(text)}")
    exponent = number.as_tuple().exponent
    if number.adjusted() >= _MOST_WHOLE or (isinstance(exponent, int) and exponent < -_MOST_FRACTION):
        raise ValueError(f"{_show(text)} has more digits than PostgreSQL's numeric holds")
    return number


def _digits(value: Any) -> Any:
    """Refuse the underscores that Python alone reads in numbers."""
    if isinstance(value, str) and "_" in value:
        raise ValueError("an underscore")
    return value


def to_bool(value: Any) -> bool:
    """True or false, as sources spell them."""
    if isinstance(value, bool):
        return value
    word = str(value).strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise ValueError(f"expected true or false, got {_show(value)}")


def to_date(value: Any) -> date:
    """A calendar day; of a time only the day is kept."""
    if isinstance(value, str):
        try:
            return date.fromisoformat(value) if len(value) <= 10 else datetime.fromisoformat(value).date()
        except ValueError:
            pass
    raise ValueError(f"expected a date such as 2024-01-31, got {_show(value)}")


def to_json_text(value: Any) -> str:
    """The value as JSON text; jsonb refuses NUL."""
    text = msgspec.json.encode(value).decode()
    if "\\u0000" in text and _NUL_ESCAPE.search(text):
        raise ValueError(_NUL)
    return text


def check_jsonb(text: str) -> None:
    """Raise `ValueError` for JSON that jsonb refuses although it is JSON: NUL, and numbers no numeric holds."""
    if "\\u0000" in text and _NUL_ESCAPE.search(text):
        raise ValueError("contains a NUL character, which jsonb cannot store; use payload: json")
    if _LONG_NUMBER.search(text):  # digits of a hash look like it too: ask the parser
        json.loads(text, parse_float=_stored, parse_int=_stored)


def to_partial_date(value: Any) -> str | None:
    """A year, a month or a day: 2024, 2024-01 or 2024-01-31, from text or from date parts [[2024, 1, 31]].

    [[null]] is how Crossref says that there is no date; [[]] says the same.
    """
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if value is None or value == []:
        return None
    parts: list[Any] = value if isinstance(value, list) else str(value).split("-")
    try:
        year, month, day = [int(part) for part in (*parts, 1, 1)[:3]]
        date(year, month, day)
    except (TypeError, ValueError) as error:
        raise ValueError(f"expected a date or a part of one, got {_show(value)}") from error
    if not 1 <= len(parts) <= 3:
        raise ValueError(f"expected a date or a part of one, got {_show(value)}")
    return (f"{year:04d}", f"{year:04d}-{month:02d}", f"{year:04d}-{month:02d}-{day:02d}")[len(parts) - 1]


def moment_reader(moment: Moment) -> Convert:
    """Return the converter for a time written in the declared form."""
    zone = ZoneInfo(moment.zone)
    if moment.format in _PER_SECOND:
        per_second = _PER_SECOND[moment.format]
        return lambda value: _from_epoch(value, per_second)
    if moment.format == "iso":
        return lambda value: _from_iso(value, zone)
    if moment.format == "date_parts":
        return lambda value: _from_parts(value, zone)
    pattern = moment.format
    return lambda value: _from_pattern(value, pattern, zone)


def _from_epoch(value: Any, per_second: int) -> datetime:
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise TypeError
        # Decimals stay exact: a float of microseconds would lose the last digits. The size is checked before any
        # arithmetic: int(Decimal("1e999999")) alone takes a second.
        ticks = Decimal(str(_digits(value)))
        if not ticks.is_finite() or ticks.adjusted() > 20:
            raise ValueError
        return _EPOCH + timedelta(microseconds=int(ticks * (1_000_000 // per_second)))
    except (TypeError, ValueError, InvalidOperation, OverflowError) as error:
        raise ValueError(f"expected seconds since 1970 (1/{per_second} s), got {_show(value)}") from error


def _from_iso(value: Any, zone: ZoneInfo) -> datetime:
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError) as error:
        moment = _from_loose_iso(value, error)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    return moment


def _from_loose_iso(value: Any, error: Exception) -> datetime:
    """Read what RFC 3339 allows and Python does not: a lower-case z, and the leap second, which is the next one."""
    text, leaps = _LEAP_SECOND.subn(r"\1:59", value.strip().upper()) if isinstance(value, str) else ("", 0)
    try:
        return datetime.fromisoformat(text) + timedelta(seconds=leaps)
    except (ValueError, OverflowError):
        raise ValueError(f"expected an ISO 8601 time, got {_show(value)}") from error


def _from_parts(value: Any, zone: ZoneInfo) -> datetime:
    """A partial date is its first moment."""
    text = to_partial_date(value)
    if text is None:
        raise ValueError(f"expected date parts, got {_show(value)}")
    return _from_iso(text + "-01-01"[len(text) - 4 :], zone)


def _from_pattern(value: Any, pattern: str, zone: ZoneInfo) -> datetime:
    try:
        moment = datetime.strptime(str(value), pattern)  # noqa: DTZ007 -- the zone is declared beside the pattern
    except ValueError as error:
        raise ValueError(f"expected a time like {pattern}, got {_show(value)}") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def column_converter(column: Column) -> Convert:
    """Return the converter for a column's declared type."""
    match column.type:
        case "text":
            return to_text
        case "int":
            return to_int
        case "float":
            return to_float
        case "numeric":
            return to_numeric
        case "bool":
            return to_bool
        case "date":
            if column.format is None:
                return to_date
            read = moment_reader(Moment(path=column.path, format=column.format))
            return lambda value: read(value).date()
        case "json":
            return to_json_text
        case "partial_date":
            return to_partial_date
        case "timestamp":
            return moment_reader(Moment(path=column.path, format=column.format or "iso"))


def _kind(value: Any) -> str:
    return {dict: "an object", list: "a list", bool: "a boolean"}.get(type(value), type(value).__name__)


def _show(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
