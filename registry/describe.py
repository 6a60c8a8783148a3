"""Registry rows in the words of the file: what `diff` compares and `history` keeps.

Pure. Invariant: two equal sets of rows describe equally, and every declared value is somewhere in the description.
"""

from dataclasses import dataclass

from pydantic import JsonValue

from registry.expand import TABLES, Row, Rows
from registry.fields import BY_COLUMN, SECTION_TABLES, write_value

_SECTIONS = {table: section for section, table in SECTION_TABLES.items()} | {"reg_prov_expr_render_rule": "expr"}
_SCOPE = ("provenance_code", "endpoint_name")
_SOURCE_KEYS = {"owner_contact": "owner", "docs_url": "docs", "release_tag": "release"}
_ENDPOINT_KEYS = {"role_code": "role", "dataset_name": "dataset", "payload_type": "payload"}
_AUTH_KEYS = {
    "auth_type_code": "type",
    "location_code": "in",
    "param_name": "name",
    "value_prefix": "prefix",
    "secret_ref": "secret",
    "username_ref": "username",
    "scope_data": "scope_data",
}


@dataclass(frozen=True, slots=True)
class Change:
    """One setting before and after; None: not declared."""

    path: str
    old: JsonValue
    new: JsonValue

    def as_data(self) -> dict[str, JsonValue]:
        """Return the JSON form."""
        return {"path": self.path, "old": self.old, "new": self.new}


def compare(old: Rows, new: Rows) -> list[Change]:
    """Return what differs, by path."""
    before, after = describe(old), describe(new)
    paths = sorted({*before, *after})
    changes = [Change(p, before.get(p), after.get(p)) for p in paths if before.get(p) != after.get(p)]
    if not changes and declared(old) != declared(new):
        return [Change("(order of entries)", None, "changed")]
    return changes


def declared(rows: Rows) -> Rows:
    """Return the rows as declared: the revision counts applies and is no declaration."""
    return {
        table: [{name: value for name, value in row.items() if name != "revision"} for row in rows[table]]
        for table in TABLES
    }


def describe(rows: Rows) -> dict[str, JsonValue]:
    """Return every declared value by its path in a source file."""
    described: dict[str, JsonValue] = {}
    for row in rows["reg_provenance"]:
        described |= _describe_source(row)
    for row in rows["reg_prov_endpoint_def"]:
        described |= _describe_endpoint(row)
    for table, section in _SECTIONS.items():
        for row in rows[table]:
            values = {name: value for name, value in row.items() if name not in _SCOPE}
            described |= _describe_section(_prefix(row), section, values)
    for row in rows["reg_prov_api_param_map"]:
        place = "headers" if row["location_code"] == "HEADER" else "query"
        path = f"{_prefix(row)}{place}.{row['param_name']}"
        described[path] = row["template"]
        if row.get("inert"):
            described[f"{path} (inert)"] = True
    for row in rows["reg_prov_credential"]:
        prefix = f"{_prefix(row)}auth.{row['credential_code']}."
        described |= _describe_row(row, prefix, _AUTH_KEYS, ("credential_code",))
    for row in rows["reg_expr_field_dict"]:
        described |= _describe_field(row)
    for row in rows["reg_schedule"]:
        described |= _describe_schedule(row)
    return described


def _prefix(row: Row) -> str:
    return f"endpoints.{row['endpoint_name']}." if row["endpoint_name"] else ""


def _describe_section(prefix: str, section: str, values: Row) -> dict[str, JsonValue]:
    described: dict[str, JsonValue] = {}
    for column, value in values.items():
        field = BY_COLUMN.get((section, column))
        key = field.key if field else f"{section}.{column}"
        described[prefix + key] = write_value(field.unit, value) if field else value
    return described


def _describe_row(row: Row, prefix: str, keys: dict[str, str], without: tuple[str, ...]) -> dict[str, JsonValue]:
    hidden = (*_SCOPE, *without)
    return {prefix + keys.get(name, name): value for name, value in row.items() if name not in hidden and value != ""}


def _describe_source(row: Row) -> dict[str, JsonValue]:
    described = _describe_row(row, "", _SOURCE_KEYS, ("vars", "defaults", "revision"))
    described |= {f"vars.{name}": value for name, value in _object(row.get("vars")).items()}
    for section, values in _object(row.get("defaults")).items():
        described |= _describe_section("defaults.", section, _object(values))
    return described


def _describe_endpoint(row: Row) -> dict[str, JsonValue]:
    prefix = _prefix(row)
    described = _describe_row(row, prefix, _ENDPOINT_KEYS, ("overrides", "method_code", "path", "two_phase"))
    described[f"{prefix}{str(row['method_code']).lower()}"] = row["path"]
    for section, values in _object(row.get("overrides")).items():
        if section == "vars":
            described |= {f"{prefix}vars.{name}": value for name, value in _object(values).items()}
        else:
            described |= _describe_section(prefix, section, _object(values))
    return described


def _describe_field(row: Row) -> dict[str, JsonValue]:
    kind, name = row["field_kind"], row["field_name"]
    place = {"COLUMN": f"columns.{name}", "ID": f"records.id.{name}"}.get(str(kind), f"records.{name}")
    prefix = f"{_prefix(row)}{place}"
    if kind == "VERSION":
        return {prefix: row["format"]}
    described: dict[str, JsonValue] = {prefix: row["path"]}
    details = {"type": row.get("data_type"), "format": row.get("format"), "required": row.get("required") or None}
    details |= _object(row.get("transform"))
    if kind == "ITEMS" or kind == "ID":
        details["required"] = None  # always; not a choice
    return described | {f"{prefix}.{key}": value for key, value in details.items() if value is not None}


def _describe_schedule(row: Row) -> dict[str, JsonValue]:
    prefix = f"{_prefix(row)}schedule."
    described: dict[str, JsonValue] = {f"{prefix}enabled": row["enabled"]}
    if row["kind"] == "every":
        described[f"{prefix}every"] = write_value("seconds", row["every_s"])
    start = row.get("start_at")
    if start is not None:
        described[f"{prefix}{'once' if row['kind'] == 'once' else 'start'}"] = start
    described |= {f"{prefix}{name}": row[name] for name in ("cron", "zone", "on_missed", "quiet") if row.get(name)}
    for column, key in (("jitter_s", "jitter"), ("grace_s", "grace")):
        if row.get(column):
            described[prefix + key] = write_value("seconds", row[column])
    return described


def _object(value: JsonValue) -> dict[str, JsonValue]:
    return value if isinstance(value, dict) else {}
