"""Inference: from records as a source sent them to the columns they would fill, each with its reason (pure).

Only the first level and objects directly below it are looked at; what is deeper or a list is `json`. A column is never
narrower than what was seen: one value that does not fit makes it wider, and text holds everything.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_LARGEST_INT = 2**63
_MOST_COLUMNS = 60
_ISO = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9]{2}:?[0-9]{2})?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DECIMAL = re.compile(r"-?[0-9]+\.[0-9]+")
_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Inferred:
    """One column the records would fill."""

    name: str
    path: str
    type: str
    seen: int  # records that had a value
    example: Any


def infer_columns(records: Sequence[Any]) -> list[Inferred]:
    """Return the columns in the order the records first show them."""
    found: dict[tuple[str, ...], list[Any]] = {}
    for record in records:
        if not isinstance(record, dict):
            continue
        for key, value in record.items():
            if isinstance(value, dict) and value and all(not isinstance(v, dict | list) for v in value.values()):
                for inner, deep in value.items():
                    found.setdefault((key, inner), []).append(deep)
            else:
                found.setdefault((key,), []).append(value)
    columns: dict[str, Inferred] = {}
    for keys, values in found.items():
        present = [value for value in values if value is not None]
        name = column_name("_".join(keys))
        if present and name and name not in columns and len(columns) < _MOST_COLUMNS:
            columns[name] = Inferred(name, path_of(keys), infer_type(present), len(present), present[0])
    return list(columns.values())


def infer_type(values: Sequence[Any]) -> str:
    """Return the narrowest column type that holds all the values."""
    kinds = {_kind(value) for value in values}
    if len(kinds) == 1:
        return kinds.pop()
    if kinds <= {"int", "float"}:
        return "float"
    if kinds <= {"int", "float", "numeric"}:
        return "numeric"
    if kinds <= {"date", "timestamp"}:
        return "timestamp"
    return "json" if "json" in kinds else "text"


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -_LARGEST_INT <= value < _LARGEST_INT else "numeric"
    if isinstance(value, float):
        return "float"
    if not isinstance(value, str):
        return "json"
    if _ISO.fullmatch(value):
        return "timestamp"
    if _DATE.fullmatch(value):
        return "date"
    # a decimal in quotes is money more often than not; digits alone may be a code with zeros in front
    return "numeric" if _DECIMAL.fullmatch(value) else "text"


def path_of(keys: Sequence[str]) -> str:
    """Return the JSONPath of keys."""
    return "$" + "".join(f".{key}" if _PLAIN_KEY.fullmatch(key) else f"['{key}']" for key in keys)


def column_name(text: str) -> str:
    """Return the text as a column's name: small letters, digits and _, a letter first."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower()
    return re.sub(r"[^a-z0-9]+", "_", snake).strip("_0123456789")[:60] or ""
