"""Checks of credentials: the type has its parts, the reference is a reference, and it can travel (B1)."""

import re
from collections.abc import Iterator

from ingest.spec.references import belongs_to_installation
from registry.checks.subject import Subject, error
from registry.problems import Finding

_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:/[^\0\r\n]+")
_SUPPORTED = ("NONE", "API_KEY", "BEARER", "BASIC")
HOW_TO_REFER = "write env:NAME or file:/path and keep the value there"


def check_credential(subject: Subject) -> Iterator[Finding]:
    """The credential in force is whole and fits the request."""
    row, where = subject.credential, subject.credential_where
    if row is None:
        return
    kind, location = str(row["auth_type_code"]), str(row["location_code"])
    if subject.dictionary.find_code("auth_type", kind) is None:
        return  # check_codes names it
    if kind not in _SUPPORTED:
        yield error("not-supported", (*where, "type"), f"auth by {kind.lower()} is not supported yet")
        return
    if kind == "NONE":
        if row.get("secret_ref"):
            yield error("rivals", (*where, "secret"), "type none takes no secret")
        return
    yield from _check_reference(row.get("secret_ref"), (*where, "secret"), "secret")
    if kind == "BASIC" and row.get("username_ref"):
        yield from _check_reference(row.get("username_ref"), (*where, "username"), "username")
    elif row.get("username_ref"):
        yield error("rivals", (*where, "username"), "'username' is for type basic")
    yield from _check_placement(subject, kind, location)


def _check_placement(subject: Subject, kind: str, location: str) -> Iterator[Finding]:
    where = subject.credential_where
    if location == "BODY":
        if subject.definition["method_code"] == "GET":
            yield error("rivals", (*where, "in"), "a GET has no body to put a credential in", "use header or query")
        else:
            yield error("not-supported", (*where, "in"), "a credential in the body is not supported yet")
    elif kind in ("BEARER", "BASIC") and location != "HEADER":
        yield error("rivals", (*where, "in"), f"type {kind.lower()} goes in a header")
    name = subject.credential.get("param_name") if subject.credential else None
    if kind == "API_KEY" and not name:
        yield error("missing", (*where, "name"), "type api_key needs 'name': the header or query parameter")
    section = "query" if location == "QUERY" else "headers"
    if name and str(name).lower() in {key.lower() for key in subject.merged.get(section, {})}:
        yield error("rivals", (*where, "name"), f"'{name}' is also set under {section}", "leave it to 'auth'")


def _check_reference(reference: object, where: tuple[str | int, ...], name: str) -> Iterator[Finding]:
    if not reference:
        yield error("missing", where, f"'{name}' is missing", HOW_TO_REFER)
    elif not _REFERENCE.fullmatch(str(reference)):
        # whatever stands here may be the secret itself: neither it nor its line is shown
        message = f"'{name}' is not a reference and looks like a literal secret"
        yield Finding(code="literal-secret", where=where, message=message, hint=HOW_TO_REFER, sensitive=True)
    elif belongs_to_installation(str(reference)):
        yield error("not-yours", where, f"'{name}' names a setting of the installation", HOW_TO_REFER)
