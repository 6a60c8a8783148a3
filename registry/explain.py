"""A compiled spec line by line: every value with where it came from, as `registry show` prints it."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from ingest.spec.canonical import format_instant
from registry.compile import Compiled
from registry.fields import BY_ATTRIBUTE, write_value

# Shown entry by entry, because each entry has its own origin.
_BY_ENTRY = {"http.query", "http.headers", "expr.vars"}


@dataclass(frozen=True, slots=True)
class Line:
    """One value of the spec; `origin` is empty for what nobody set and no default fills."""

    path: str
    value: str
    origin: str


def explain(compiled: Compiled) -> list[Line]:
    """Return the whole spec, section by section, in the snapshot's order."""
    return list(_walk("", compiled.snapshot.as_data(), compiled.origins))


def _walk(path: str, value: Any, origins: dict[str, str]) -> Iterator[Line]:
    if path == "mapping.columns":
        for column in value:
            name = f"{path}.{column['name']}"
            yield Line(name, _details(column, "name"), _origin(name, origins))
    elif path == "mapping.identity":
        for part in value:
            yield Line(f"{path}.{part['column']}", _details(part, "column"), _origin(path, origins))
    elif isinstance(value, dict) and (path.count(".") < 1 or path in _BY_ENTRY):
        for name, inner in value.items():
            yield from _walk(f"{path}.{name}" if path else name, inner, origins)
    else:
        field = BY_ATTRIBUTE.get(path)
        shown = write_value(field.unit, value) if field else value
        yield Line(path, _text(shown), _origin(path, origins) if path.partition(".")[0] in _SECTIONS else "")


_SECTIONS = {"http", "auth", "pagination", "window", "retry", "rate", "response", "mapping", "expr", "budget", "role"}


def _origin(path: str, origins: dict[str, str]) -> str:
    while path:
        if path in origins:
            return origins[path]
        path = path.rpartition(".")[0]
    return ""


def _details(part: dict[str, Any], name: str) -> str:
    shown = [str(part["path"]), str(part["type"])]
    rest = {key: value for key, value in part.items() if key not in (name, "path", "type") and value}
    return " ".join(shown + [key if value is True else f"{key}={_text(value)}" for key, value in rest.items()])


def _text(value: Any) -> str:
    if value is None or value == "" or value == () or value == {}:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, list | tuple):
        return ", ".join(_text(item) for item in value)
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_text(item)}" for key, item in value.items() if item not in (None, ""))
    return str(value)
