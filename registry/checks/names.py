"""Checks of names and codes: what is called how, and whether the word exists (A4: dictionary codes)."""

import re
from collections.abc import Iterator

from registry.checks.subject import Subject, error
from registry.dictionary import Dictionary
from registry.fields import FIELDS
from registry.problems import Finding, Where, suggest

_CODE = re.compile(r"[a-z][a-z0-9_]{0,29}")
_IDENTIFIER = re.compile(r"[a-z][a-z0-9_]{0,62}")
_RESERVED = {"provider_id", "updated_at", "payload"}
_TYPE_NAMES = {
    "pagination_type": "a pagination type",
    "stop_rule": "a stop rule",
    "window_filter": "a window filter",
    "window_precision": "a precision",
    "payload_type": "a payload type",
    "column_type": "a column type",
    "auth_type": "an auth type",
    "auth_location": "a place for a credential",
    "endpoint_role": "an endpoint role",
    "http_method": "an HTTP method",
}


def check_names(subject: Subject) -> Iterator[Finding]:
    """Source, endpoint and dataset names fit a table name; columns do not clash."""
    for name, where in ((subject.source, ("source",)), (subject.endpoint, subject.own())):
        if not _CODE.fullmatch(name):
            yield error("bad-name", where, f"'{name}' must match ^[a-z][a-z0-9_]{{0,29}}$")
    dataset = str(subject.definition["dataset_name"])
    if not _IDENTIFIER.fullmatch(dataset):
        yield error("bad-name", subject.own("dataset"), f"'{dataset}' must match ^[a-z][a-z0-9_]{{0,62}}$")
    identity = [str(row["field_name"]) for row in subject.list_fields("ID")]
    for row in subject.list_fields("COLUMN"):
        name = str(row["field_name"])
        where = subject.field_where(row)
        if name.startswith("_"):
            yield error("bad-name", where, f"'{name}': names that begin with '_' are the system's")
        elif not _IDENTIFIER.fullmatch(name):
            yield error("bad-name", where, f"'{name}' must match ^[a-z][a-z0-9_]{{0,62}}$")
        elif name in _RESERVED or name in identity:
            made_by = "records.id" if name in identity else "the system"
            yield error("name-taken", where, f"'{name}' is a column made by {made_by}", "give it another name")
    for row, name in zip(subject.list_fields("ID"), identity, strict=True):
        where = (*subject.field_where(row), "column")
        if len(identity) > 1 and name == "provider_id":
            yield error("missing", where, "each part of a composite id needs its 'column'")
        elif not _IDENTIFIER.fullmatch(name) or name in _RESERVED - {"provider_id"}:
            yield error("bad-name", where, f"'{name}' cannot name an identity column")
    if len(set(identity)) < len(identity) and "provider_id" not in identity:
        yield error("name-taken", subject.own("records", "id"), "two parts of the id have the same column")


def check_codes(subject: Subject) -> Iterator[Finding]:
    """Every code is in the dictionary."""
    words = subject.dictionary
    for field in FIELDS:
        if field.dictionary:
            value = subject.get(field.key)
            for word in value if isinstance(value, list) else [value]:
                yield from _check_word(words, field.dictionary, word, subject.where(field.key))
    role, method = subject.definition["role_code"], subject.definition["method_code"]
    yield from _check_word(words, "endpoint_role", role, subject.own("role"))
    yield from _check_word(words, "http_method", method, subject.own())
    for row in [*subject.list_fields("ID"), *subject.list_fields("COLUMN")]:
        where = subject.field_where(row)
        yield from _check_word(words, "column_type", row.get("data_type", "text"), (*where, "type"))
    if subject.credential is not None:
        where = subject.credential_where
        yield from _check_word(words, "auth_type", subject.credential["auth_type_code"], (*where, "type"))
        yield from _check_word(words, "auth_location", subject.credential["location_code"], (*where, "in"))


def _check_word(words: Dictionary, kind: str, word: object, where: Where) -> Iterator[Finding]:
    if word is None or words.find_code(kind, str(word)) is not None:
        return
    hint = suggest(str(word), words.all_words(kind), listed=words.words(kind))
    yield error("unknown-code", where, f"'{word}' is not {_TYPE_NAMES.get(kind, f'a {kind}')}", hint)
