"""The compiler: registry rows + platform + trigger -> an immutable Spec Snapshot, or every reason why not (A3, A4, A6).

Pure: no database, no clock, no network. Invariant: nothing is planned from a snapshot any check objects to, and the
result says where each of its values came from.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from ingest.errors import NotFound, SpecInvalid
from ingest.spec.snapshot import Snapshot
from registry.checks.run import run_checks
from registry.checks.subject import Subject, error
from registry.derive import derive
from registry.dictionary import Platform
from registry.expand import Row, Rows, Sections
from registry.fields import BY_ATTRIBUTE, FIELDS
from registry.merge import levels_of, merge
from registry.problems import Finding, Where

# What the source cannot do and the system does without (A5): code -> what it means.
DEGRADATIONS = {
    "noCount": "the source gives no total: sizes are estimated from history",
    "hasNextByPageSize": "a full page means there may be more: one extra request at most",
    "fullWalk": "no server time filter: every fire walks the whole source",
    "contentHash": "no time of change: a record is new when its content differs",
}


@dataclass(frozen=True, slots=True)
class Compiled:
    """A snapshot and how it came to be: `origins` maps the snapshot's paths to the level that won."""

    snapshot: Snapshot
    origins: dict[str, str]
    degradations: list[str]
    warnings: list[str]


@dataclass(frozen=True, slots=True)
class Examined:
    """Everything found about one endpoint; `compiled` is None if any finding is an error."""

    compiled: Compiled | None
    findings: list[Finding]


def compile_rows(
    rows: Rows,
    platform: Platform,
    endpoint: str,
    *,
    overrides: Sections | None = None,
    open_origins: Collection[str] | None = None,
) -> Compiled:
    """Compile one endpoint or raise `SpecInvalid` with every problem."""
    examined = examine(rows, platform, endpoint, overrides=overrides, open_origins=open_origins)
    if examined.compiled is None:
        raise SpecInvalid([str(finding) for finding in examined.findings if finding.severity == "error"])
    return examined.compiled


def examine(
    rows: Rows,
    platform: Platform,
    endpoint: str,
    *,
    overrides: Sections | None = None,
    open_origins: Collection[str] | None = None,
) -> Examined:
    """Compile one endpoint and return all findings, warnings included."""
    subject = _subject(rows, platform, endpoint, overrides, open_origins)
    snapshot, shape = _build(subject, rows)
    try:
        findings = run_checks(subject)
    except (AttributeError, KeyError, TypeError, ValueError):
        if not shape:
            raise
        findings = []  # hand-edited JSON can have any shape; the model has named what is wrong with it
    told = {finding.where for finding in findings}
    findings += [finding for finding in shape if finding.where not in told]
    if snapshot is None or any(finding.severity == "error" for finding in findings):
        return Examined(None, findings)
    warnings = [str(finding) for finding in findings]
    compiled = Compiled(snapshot, _origins(subject, snapshot), _degradations(snapshot), warnings)
    return Examined(compiled, findings)


def _subject(
    rows: Rows,
    platform: Platform,
    endpoint: str,
    overrides: Sections | None,
    open_origins: Collection[str] | None,
) -> Subject:
    definition = next((row for row in rows["reg_prov_endpoint_def"] if row["endpoint_name"] == endpoint), None)
    if not rows["reg_provenance"] or definition is None:
        raise NotFound(f"no endpoint '{endpoint}'")
    merged = derive(merge(levels_of(rows, platform, endpoint, overrides)), platform.dictionary)
    credential, where = _choose_credential(rows["reg_prov_credential"], endpoint)
    return Subject(
        source=str(rows["reg_provenance"][0]["provenance_code"]),
        endpoint=endpoint,
        definition=definition,
        merged=merged,
        fields=[row for row in rows["reg_expr_field_dict"] if row["endpoint_name"] == endpoint],
        credential=credential,
        credential_where=where,
        dictionary=platform.dictionary,
        open_origins=None if open_origins is None else tuple(open_origins),
    )


def _choose_credential(rows: list[Row], endpoint: str) -> tuple[Row | None, Where]:
    """Return the credential of highest priority, the endpoint's own before the source's."""
    for scope, prefix in ((endpoint, ("endpoints", endpoint)), ("", ())):
        found = [row for row in rows if row["endpoint_name"] == scope]
        if found:
            chosen = min(found, key=lambda row: int(str(row.get("priority", 100))))
            return chosen, (*prefix, "auth", found.index(chosen))
    return None, ("auth",)


def _build(subject: Subject, rows: Rows) -> tuple[Snapshot | None, list[Finding]]:
    draft = _draft(subject, rows["reg_provenance"][0])
    try:
        return Snapshot.model_validate(draft), []
    except ValidationError as problem:
        return None, [_shape_finding(subject, details["loc"], details["msg"]) for details in problem.errors()]


def _shape_finding(subject: Subject, location: tuple[int | str, ...], message: str) -> Finding:
    field = BY_ATTRIBUTE.get(".".join(str(part) for part in location[:2]))
    where = subject.where(field.key) if field else subject.own(*location)
    return error("wrong-value", where, message)


def _draft(subject: Subject, source: Row) -> dict[str, Any]:
    draft: dict[str, Any] = {
        "provenance_code": subject.source,
        "endpoint_name": subject.endpoint,
        "role": subject.dictionary.find_code("endpoint_role", str(subject.definition["role_code"])),
        "revision": source.get("revision", 0),
        "release_tag": source.get("release_tag", "stable"),
    }
    for field in FIELDS:
        merged = subject.merged.get(field.section, {}).get(field.column)
        if field.attribute and merged is not None:
            section, name = field.attribute.split(".")
            draft.setdefault(section, {})[name] = merged.value
    inert = sorted(
        value.name
        for section in ("inert_query", "inert_headers")
        for value in subject.merged.get(section, {}).values()
        if value.value
    )
    draft.setdefault("http", {}).update(
        method=subject.definition["method_code"],
        path=subject.definition["path"],
        query={name: value.value for name, value in subject.merged.get("query", {}).items()},
        headers={name: value.value for name, value in subject.merged.get("headers", {}).items()},
        inert=inert,
    )
    draft.setdefault("expr", {})["vars"] = {n: v.value for n, v in subject.merged.get("vars", {}).items()}
    draft["partition"] = {name: value.value for name, value in subject.merged.get("partition", {}).items()}
    if subject.credential is not None:
        draft["auth"] = _auth(subject.credential)
    _add_response_and_mapping(draft, subject)
    return draft


def _auth(row: Row) -> dict[str, Any]:
    kind = row["auth_type_code"]
    if kind == "NONE":
        return {"type": kind}
    return {
        "type": kind,
        "location": row["location_code"],
        "name": row.get("param_name") or "",
        "prefix": row.get("value_prefix") or "",
        "credential_code": row["credential_code"],
        "secret_ref": row.get("secret_ref") or "",
        "username_ref": row.get("username_ref") or "",
        "scope_data": row.get("scope_data", False),
    }


def _add_response_and_mapping(draft: dict[str, Any], subject: Subject) -> None:
    def first(kind: str) -> Row | None:
        return next(iter(subject.list_fields(kind)), None)

    def code(row: Row) -> str:
        written = str(row.get("data_type", "text"))
        return subject.dictionary.find_code("column_type", written) or written

    items, total, moment = first("ITEMS"), first("TOTAL"), first("UPDATED_AT")
    draft.setdefault("response", {}).update(
        items=items["path"] if items else None, total=total["path"] if total else None
    )
    mapping = draft.setdefault("mapping", {})
    mapping["dataset"] = subject.definition["dataset_name"]
    mapping["identity"] = [
        {"column": row["field_name"], "path": row["path"], "type": code(row)} | _object(row.get("transform"))
        for row in subject.list_fields("ID")
    ]
    if moment is not None:
        mapping["updated_at"] = {"path": moment["path"], "format": moment.get("format") or "iso"} | _object(
            moment.get("transform")
        )
    mapping["columns"] = [
        {
            "name": row["field_name"],
            "path": row["path"],
            "type": code(row),
            "format": row.get("format"),
            "required": row.get("required", False),
        }
        | _object(row.get("transform"))
        for row in subject.list_fields("COLUMN")
    ]


def _object(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}


def _origins(subject: Subject, snapshot: Snapshot) -> dict[str, str]:
    origins = {}
    for field in FIELDS:
        merged = subject.merged.get(field.section, {}).get(field.column)
        if field.attribute and merged is not None:
            origins[field.attribute] = merged.origin
    for section, prefix in (("query", "http.query"), ("headers", "http.headers"), ("vars", "expr.vars")):
        for name, value in subject.merged.get(section, {}).items():
            origins[f"{prefix}.{name}"] = value.origin
    origins |= dict.fromkeys(("http.method", "http.path", "mapping.dataset", "role"), "endpoint")
    origins["release_tag"] = "source"
    scope = "endpoint" if subject.credential_where[:1] == ("endpoints",) else "source"
    if subject.credential is not None:
        origins["auth"] = f"{scope} credential"
    origins |= dict.fromkeys(("response.items", "mapping.identity"), "endpoint expr_field_dict")
    for kind, path in (("TOTAL", "response.total"), ("UPDATED_AT", "mapping.updated_at")):
        if subject.list_fields(kind):
            origins[path] = "endpoint expr_field_dict"
    for column in snapshot.mapping.columns:
        origins[f"mapping.columns.{column.name}"] = "endpoint expr_field_dict"
    return origins


def _degradations(snapshot: Snapshot) -> list[str]:
    found = []
    if snapshot.response.total is None:
        found.append("noCount")
    if set(snapshot.pagination.stop) <= {"short_page", "empty_page"} and snapshot.pagination.kind != "NONE":
        found.append("hasNextByPageSize")
    if snapshot.window.filter == "none":
        found.append("fullWalk")
    if snapshot.mapping.updated_at is None:
        found.append("contentHash")
    return found
