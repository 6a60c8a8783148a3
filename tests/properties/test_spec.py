"""Specs: what is stored is what was compiled, whatever a person wrote."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ingest.errors import RequestInvalid
from ingest.spec.canonical import canonical_json, hash_of, hash_of_json
from ingest.spec.paths import PathInvalid, parse_path
from ingest.spec.snapshot import (
    Auth,
    Column,
    Expressions,
    Http,
    IdPart,
    Mapping,
    Moment,
    Pagination,
    Rate,
    Response,
    Retry,
    Snapshot,
    Window,
)
from ingest.spec.templates import compile_template

names = st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True)
# floats of 1e16 and above come back from jsonb as integers; nobody writes them
numbers = st.integers(-(2**70), 2**70) | st.floats(-1e15, 1e15)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(st.characters(codec="utf-8"), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
)
texts = st.text(st.characters(codec="utf-8"), max_size=12)
paths = st.sampled_from(["$", "$.a", "$.a.b[0]", "$.x-y"])


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    return Snapshot(
        provenance_code=draw(names),
        endpoint_name=draw(names),
        revision=draw(st.integers(0, 99)),
        http=Http(
            method=draw(st.sampled_from(["GET", "POST"])),
            base_url="https://api.example.org",
            path="/" + draw(names),
            query=draw(st.dictionaries(names, texts, max_size=3)),
            headers=draw(st.dictionaries(names, texts, max_size=2)),
            body=draw(json_values),
            inert=tuple(draw(st.lists(names, max_size=2))),
            read_timeout_s=draw(st.floats(0.1, 120)),
        ),
        auth=Auth(type=draw(st.sampled_from(["NONE", "BEARER"])), secret_ref="env:KEY", credential_code=draw(names)),
        pagination=Pagination(kind=draw(st.sampled_from(["PAGE", "TOKEN"])), size=draw(st.none() | st.integers(1, 9))),
        window=Window(
            start=draw(st.none() | st.datetimes(timezones=st.just(UTC))),
            zone=draw(st.sampled_from(["UTC", "Asia/Shanghai"])),
            max_s=draw(st.floats(1, 1e9)),
        ),
        retry=Retry(max_attempts=draw(st.integers(1, 9)), base_s=draw(st.floats(0, 10))),
        rate=Rate(rate_per_s=draw(st.floats(0.01, 1e5))),
        response=Response(items=draw(paths)),
        mapping=Mapping(
            dataset=draw(names),
            identity=(IdPart(column="provider_id", path=draw(paths)),),
            updated_at=draw(st.none() | st.builds(Moment, path=paths)),
            columns=tuple(draw(st.lists(st.builds(Column, name=names, path=paths), max_size=2))),
        ),
        expr=Expressions(vars=draw(st.dictionaries(names, json_values, max_size=3))),
    )


@given(snapshots())
def test_a_snapshot_survives_being_stored(snapshot: Snapshot) -> None:
    stored = canonical_json(snapshot.as_data())
    again = Snapshot.model_validate(msgspec.json.decode(stored))
    assert again.spec_fingerprint == snapshot.spec_fingerprint
    assert again.expr_proto_hash == snapshot.expr_proto_hash
    assert canonical_json(again.as_data()) == stored


def reorder(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reorder(value[key]) for key in reversed(value)}
    return [reorder(item) for item in value] if isinstance(value, list) else value


@given(json_values)
def test_a_hash_depends_on_the_data_alone(value: Any) -> None:
    assert hash_of(value) == hash_of(reorder(value)) == hash_of_json(value)
    assert hash_of(value) == hash_of(msgspec.json.decode(canonical_json(value)))


@given(st.integers(-62_000_000_000, 250_000_000_000), st.integers(-1439, 1439))
def test_a_moment_has_one_text(seconds: int, offset: int) -> None:
    moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    assert hash_of({"at": moment.astimezone(timezone(timedelta(minutes=offset)))}) == hash_of({"at": moment})


@given(st.text("$.[]'\"*?@()=<>-,:`|+~ ab01é\\/&\n", max_size=20))
def test_any_text_is_a_path_or_is_refused(text: str) -> None:
    for written in (text, "$" + text):
        try:
            getter = parse_path(written).getter()
        except PathInvalid:
            continue
        for value in (None, 1, "a", [], {}, {"a": [1, {"b": None}], "b": "x"}, [[{"a": 1}]]):
            getter(value)


PIECES = [
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "vars",
    ".a",
    "['a']",
    "[0]",
    "|",
    "lower",
    "(",
    ")",
    "now",
    "+",
    "*",
    "-",
    "'x'",
    "9999999999",
    "if",
    "else",
    "not",
    "is",
    "none",
    "[",
    "]",
    ",",
    "for",
    "in",
    "self",
    "__class__",
    "~",
]
pieces = st.sampled_from([*PIECES, " ", "\n"])


@given(st.lists(pieces, max_size=14).map(" ".join))
def test_any_text_is_a_template_or_is_refused(text: str) -> None:
    for written in (text, "{{" + text + "}}"):
        try:
            value = compile_template(written)({"vars": {"a": "x", "n": None}})
        except RequestInvalid:
            continue
        assert value is None or isinstance(value, str | int | float | list | dict)
