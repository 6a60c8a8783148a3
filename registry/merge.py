"""The merge (A3): platform < source defaults < source rows < endpoint definition < endpoint rows < trigger.

Pure. Invariant: the higher level wins value by value, and every value remembers the level it came from.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from registry.dictionary import Platform
from registry.expand import Row, Rows, Sections
from registry.fields import SECTION_TABLES
from registry.problems import Where

_KEYS = {"provenance_code", "endpoint_name"}
_TABLE_SECTIONS = {table: section for section, table in SECTION_TABLES.items()} | {"reg_prov_expr_render_rule": "expr"}


@dataclass(frozen=True, slots=True)
class Level:
    """One layer of settings: what it is called and where in a document it is written (None: nowhere)."""

    origin: str
    prefix: Where | None
    values: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Value:
    """A merged value, the name it was written under and the level that won."""

    name: str
    value: Any
    origin: str
    prefix: Where | None


Merged = dict[str, dict[str, Value]]


def merge(levels: Iterable[Level]) -> Merged:
    """Lay the levels over each other, the first lowest; None declares nothing."""
    merged: Merged = {}
    for level in levels:
        for section, values in level.values.items():
            into = merged.setdefault(section, {})
            for name, value in values.items():
                if value is not None:
                    # HTTP header names have no case: User-Agent and user-agent are one setting
                    key = name.lower() if section == "headers" else name
                    into[key] = Value(name, value, level.origin, level.prefix)
    return merged


def levels_of(rows: Rows, platform: Platform, endpoint: str, overrides: Sections | None = None) -> list[Level]:
    """Return the levels of one endpoint, lowest first."""
    source = rows["reg_provenance"][0]
    definition = next(row for row in rows["reg_prov_endpoint_def"] if row["endpoint_name"] == endpoint)
    own: Where = ("endpoints", endpoint)
    return [
        Level("platform", None, _with_parameters(platform.defaults)),
        Level("source defaults", ("defaults",), _with_parameters(_object(source.get("defaults")))),
        Level("source", (), {"vars": _object(source.get("vars"))}),
        *_row_levels(rows, "", "source", ()),
        Level("endpoint", own, _definition_values(definition)),
        *_row_levels(rows, endpoint, "endpoint", own),
        Level("trigger", ("overrides",), overrides or {}),
    ]


def _definition_values(definition: Row) -> dict[str, Any]:
    values = {section: dict(_object(settings)) for section, settings in _object(definition.get("overrides")).items()}
    values.setdefault("records", {})["payload_type"] = definition.get("payload_type")
    return values


def _row_levels(rows: Rows, endpoint: str, origin: str, prefix: Where) -> list[Level]:
    levels = []
    for table, section in _TABLE_SECTIONS.items():
        for row in _scoped(rows[table], endpoint):
            values = {name: value for name, value in row.items() if name not in _KEYS}
            name = table.removeprefix("reg_prov_")
            levels.append(Level(f"{origin} {name}", prefix, _with_parameters({section: values})))
    parameters = _scoped(rows["reg_prov_api_param_map"], endpoint)
    parameters.sort(key=lambda row: (str(row["location_code"]), int(str(row.get("sort_order", 0)))))
    for location, section in (("QUERY", "query"), ("HEADER", "headers")):
        found = [row for row in parameters if row["location_code"] == location]
        inert = {str(row["param_name"]): bool(row.get("inert")) for row in found}
        values = {str(row["param_name"]): row["template"] for row in found}
        levels.append(Level(f"{origin} api_param_map", prefix, {section: values, f"inert_{section}": inert}))
    return levels


def _with_parameters(sections: Mapping[str, Any]) -> dict[str, Any]:
    """Move an http section's default query and headers into the sections parameters merge in, name by name."""
    http = dict(_object(sections.get("http")))
    query, headers = http.pop("default_query", None), http.pop("default_headers", None)
    return dict(sections) | {"http": http, "query": _object(query), "headers": _object(headers)}


def _scoped(rows: list[Row], endpoint: str) -> list[Row]:
    return [row for row in rows if row["endpoint_name"] == endpoint]


def _object(value: Any) -> Mapping[str, JsonValue]:
    return value if isinstance(value, Mapping) else {}
