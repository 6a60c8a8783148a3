"""From a source file to the full registry rows: short forms written out, words resolved to codes (A1, A2).

Invariant: rows hold what was declared and nothing else; a column that was not written is absent, so that the merge can
tell an explicit value from a default. A word that is no code is left as written for the checks to name.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import BaseModel, JsonValue

from ingest.rhythm import DEFAULT_EVERY_S
from registry.dictionary import Dictionary
from registry.document import Auth, Document, Endpoint, Overrides, Schedule
from registry.fields import FIELDS, SECTION_TABLES
from registry.partitions import partition_row
from registry.sections import Requested

Row = dict[str, JsonValue]
Rows = dict[str, list[Row]]
Sections = dict[str, dict[str, JsonValue]]

TABLES = (
    "reg_provenance",
    "reg_prov_endpoint_def",
    "reg_prov_http_cfg",
    "reg_prov_credential",
    "reg_prov_pagination_cfg",
    "reg_prov_window_offset_cfg",
    "reg_prov_retry_cfg",
    "reg_prov_rate_limit_cfg",
    "reg_prov_batching_cfg",
    "reg_prov_api_param_map",
    "reg_prov_expr_capability",
    "reg_prov_expr_render_rule",
    "reg_expr_field_dict",
    "reg_schedule",
)
# How a secret travels when the file only names its type: (name, prefix)
_PLACED = {"BEARER": ("Authorization", "Bearer "), "BASIC": ("Authorization", "Basic ")}


def expand(document: Document, dictionary: Dictionary) -> Rows:
    """Return every registry row the document stands for, by table."""
    rows: Rows = {table: [] for table in TABLES}
    zone = _zone_of(document.defaults)
    defaults: dict[str, JsonValue] = {}
    if document.defaults is not None:
        defaults |= sections_of(document.defaults, dictionary, zone)
    rows["reg_provenance"].append(
        {
            "provenance_code": document.source,
            "description": document.description,
            "owner_contact": document.owner,
            "docs_url": document.docs,
            "vars": dict(document.vars),
            "defaults": defaults,
            "release_tag": document.release,
            "enabled": document.enabled,
        }
    )
    _add_settings(rows, document, dictionary, scope=_scope(document.source, ""), zone=zone)
    _add_parameters(rows, document, scope=_scope(document.source, ""))
    _add_credentials(rows, document.auth or [], dictionary, scope=_scope(document.source, ""), code="main")
    for name, endpoint in document.endpoints.items():
        _add_endpoint(rows, document, name, endpoint, dictionary)
    return rows


def read_overrides(overrides: Overrides, dictionary: Dictionary) -> Sections:
    """Return a trigger's settings in the rows' vocabulary."""
    sections = sections_of(overrides, dictionary, _zone_of(overrides))
    if overrides.vars:
        sections["vars"] = dict(overrides.vars)
    return sections


def sections_of(model: Requested, dictionary: Dictionary, zone: str) -> Sections:
    """Return the settings written in a model by merge section and column."""
    sections: Sections = {}
    for field in FIELDS:
        value = _written(model, field.key)
        if value is None:
            continue
        if isinstance(value, datetime):
            value = instant_text(value, zone)
        if field.dictionary:
            value = _codes(dictionary, field.dictionary, value)
        sections.setdefault(field.section, {})[field.column] = value
    pages = sections.get("pagination", {})
    if _written(model, "pagination.kind") == "link" and "next_path" not in pages and "next_in" not in pages:
        pages["next_in"] = "link_header"
    return sections


def _written(model: BaseModel, key: str) -> Any:
    value: Any = model
    for part in key.split("."):
        value = getattr(value, part, None)
        if value is None:
            return None
    return value


def _codes(dictionary: Dictionary, kind: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_codes(dictionary, kind, item) for item in value]
    return dictionary.find_code(kind, value) or value


def instant_text(moment: datetime, zone: str) -> str:
    """Return the moment as rows hold it: ISO in UTC; one without a zone is read in `zone`."""
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=_zone(zone))
    return moment.astimezone(UTC).isoformat()


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return ZoneInfo("UTC")  # the checks refuse the name


def _zone_of(model: Requested | None, fallback: str = "UTC") -> str:
    return _written(model, "window.zone") or fallback if model is not None else fallback


def _scope(source: str, endpoint: str) -> Row:
    return {"provenance_code": source, "endpoint_name": endpoint}


def _add_settings(rows: Rows, model: Requested, dictionary: Dictionary, *, scope: Row, zone: str) -> None:
    for section, values in sections_of(model, dictionary, zone).items():
        if section in SECTION_TABLES:
            rows[SECTION_TABLES[section]].append(scope | values)


def _add_endpoint(rows: Rows, document: Document, name: str, endpoint: Endpoint, dictionary: Dictionary) -> None:
    scope = _scope(document.source, name)
    definition: Row = scope | {
        "description": endpoint.description,
        "role_code": _codes(dictionary, "endpoint_role", endpoint.role),
        "method_code": "GET" if endpoint.get is not None else "POST",
        "path": endpoint.get if endpoint.get is not None else endpoint.post,
        "dataset_name": endpoint.dataset or f"{document.source}_{name}",
        "two_phase": False,
        "overrides": {"vars": dict(endpoint.vars)} if endpoint.vars else {},
        "enabled": endpoint.enabled,
    }
    if endpoint.partition is not None:
        tables = {f"{document.source}.{other}": each.dataset for other, each in document.endpoints.items()}
        definition["overrides"] = definition["overrides"] | {"partition": partition_row(endpoint.partition, tables)}  # type: ignore[operator]
    if endpoint.payload is not None:
        definition["payload_type"] = _codes(dictionary, "payload_type", endpoint.payload)
    rows["reg_prov_endpoint_def"].append(definition)
    _add_settings(rows, endpoint, dictionary, scope=scope, zone=_zone_of(endpoint, _zone_of(document.defaults)))
    if endpoint.form is not None:
        _row_of(rows["reg_prov_http_cfg"], scope).update(body_template=dict(endpoint.form), body_kind="form")
    _add_parameters(rows, endpoint, scope=scope)
    _add_credentials(rows, endpoint.auth or [], dictionary, scope=scope, code=name)
    _add_fields(rows, endpoint, dictionary, scope=scope)
    _add_schedule(rows, document, name, endpoint)


def _row_of(table: list[Row], scope: Row) -> Row:
    for row in table:
        if row.items() >= scope.items():
            return row
    table.append(dict(scope))
    return table[-1]


def _add_parameters(rows: Rows, model: Document | Endpoint, *, scope: Row) -> None:
    for location, templates in (("QUERY", model.query), ("HEADER", model.headers)):
        for order, (name, template) in enumerate(templates.items()):
            inert = name in model.inert
            rows["reg_prov_api_param_map"].append(
                scope
                | {
                    "param_name": name,
                    "location_code": location,
                    "template": template,
                    "inert": inert,
                    "sort_order": order,
                }
            )


def _add_credentials(rows: Rows, written: list[Auth], dictionary: Dictionary, *, scope: Row, code: str) -> None:
    for order, auth in enumerate(written):
        kind = _codes(dictionary, "auth_type", auth.type)
        name, prefix = _PLACED.get(kind, (None, None))
        row: Row = scope | {
            "credential_code": auth.code or (code if order == 0 else f"{code}{order + 1}"),
            "auth_type_code": kind,
            "location_code": _codes(dictionary, "auth_location", auth.location or "HEADER"),
            "scope_data": auth.scope == "data",
            "priority": auth.priority if auth.priority is not None else 100 + order,
        }
        optional: Mapping[str, str | None] = {
            "param_name": auth.name or name,
            "value_prefix": auth.prefix if auth.prefix is not None else prefix,
            "secret_ref": auth.secret,
            "username_ref": auth.username,
        }
        rows["reg_prov_credential"].append(row | {key: value for key, value in optional.items() if value is not None})


def _add_fields(rows: Rows, endpoint: Endpoint, dictionary: Dictionary, *, scope: Row) -> None:
    records = endpoint.records

    def add(kind: str, name: str, path: str, **more: JsonValue) -> None:
        order = sum(row["endpoint_name"] == scope["endpoint_name"] for row in rows["reg_expr_field_dict"])
        row: Row = {"field_kind": kind, "field_name": name, "path": path, "required": False, "transform": {}}
        declared = {key: value for key, value in more.items() if value is not None}
        rows["reg_expr_field_dict"].append(scope | row | declared | {"sort_order": order})

    add("ITEMS", "items", records.items, required=True)
    for part in records.id:
        kind = _codes(dictionary, "column_type", part.type)
        more: dict[str, JsonValue] = {"lower": True} if part.lower else {}
        if part.partition is not None:
            more["partition"] = part.partition
        add("ID", part.column, part.path or "", data_type=kind, required=True, transform=more)
    if records.updated_at is not None:
        moment = records.updated_at
        zone: JsonValue = {"zone": moment.zone} if moment.zone else {}
        add("UPDATED_AT", "updated_at", moment.path, format=moment.format, transform=zone)
    if records.version is not None:
        add("VERSION", "version", "", format=records.version)
    if records.total is not None:
        add("TOTAL", "total", records.total)
    for name, column in endpoint.columns.items():
        kind = _codes(dictionary, "column_type", column.type)
        enum: dict[str, JsonValue] = {"enum": list(column.enum)} if column.enum else {}
        if column.partition is not None:
            enum["partition"] = column.partition
        path = column.path if column.path is not None else "" if column.partition is not None else f"$.{name}"
        add("COLUMN", name, path, data_type=kind, format=column.format, required=column.required, transform=enum)


def _add_schedule(rows: Rows, document: Document, name: str, endpoint: Endpoint) -> None:
    schedule: Schedule | None = endpoint.schedule or document.schedule
    if schedule is None:
        return
    start = schedule.once or schedule.start
    kind = next((kind for kind in ("once", "cron") if getattr(schedule, kind) is not None), "every")
    row: Row = _scope(document.source, name) | {
        "schedule_code": f"{document.source}.{name}",
        "operation_code": "HARVEST",
        "kind": kind,
        "jitter_s": schedule.jitter or 0,
        "enabled": schedule.enabled is not False and endpoint.enabled and document.enabled,
    }
    if kind == "every":
        row["every_s"] = schedule.every or DEFAULT_EVERY_S
    if start is not None:
        row["start_at"] = instant_text(start, schedule.zone or "UTC")
    optional: Mapping[str, JsonValue] = {
        "cron": schedule.cron,
        "zone": schedule.zone,
        "on_missed": schedule.on_missed,
        "grace_s": schedule.grace,
        "quiet": None if schedule.quiet is None else list(schedule.quiet),
    }
    rows["reg_schedule"].append(row | {key: value for key, value in optional.items() if value is not None})
