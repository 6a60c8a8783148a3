"""Shapes: the fast way and the general way find the same; items stay the source's own text."""

from typing import Any

import msgspec
import pytest

from executor.shapes import Shape
from ingest.spec.paths import parse_path


def found(paths: dict[str, str], body: bytes) -> dict[str, Any]:
    find = Shape({name: parse_path(text) for name, text in paths.items()}).read(body)
    return {name: find(name) for name in paths}


def items(path: str, body: bytes, **others: str) -> Any:
    paths = {"items": path} | others
    listed = Shape({name: parse_path(text) for name, text in paths.items()}, raw_list="items").read(body)("items")
    return [bytes(item) for item in listed] if isinstance(listed, list) else listed


@pytest.mark.parametrize(
    ("paths", "body", "values"),
    [
        ({"a": "$.a", "b": "$.a.b"}, b'{"a":{"b":1}}', {"a": {"b": 1}, "b": 1}),
        ({"a": "$.a.b", "b": "$.a.b.c[0]"}, b'{"a":{"b":{"c":[5]}}}', {"a": {"c": [5]}, "b": 5}),
        ({"a": "$.a[0].b", "b": "$.a[1]"}, b'{"a":[{"b":1},2]}', {"a": 1, "b": 2}),
        ({"a": "$.x-y", "b": "$['x.y']"}, b'{"x-y":1,"x.y":2}', {"a": 1, "b": 2}),
        ({"a": "$.a.b", "b": "$.c"}, b'{"a":"text","c":1}', {"a": None, "b": 1}),
        ({"a": "$.a.b", "b": "$.c"}, b'{"a":null,"c":null}', {"a": None, "b": None}),
        ({"a": "$.a", "b": "$"}, b'{"a":1}', {"a": 1, "b": {"a": 1}}),
        ({"a": "$.a", "b": "$.b[*].c"}, b'{"a":1,"b":[{"c":2},{"c":3}]}', {"a": 1, "b": [2, 3]}),
        ({"a": "$.a"}, b"[1]", {"a": None}),
        ({"a": "$[-1]", "b": "$[0]"}, b"[]", {"a": None, "b": None}),
        ({"a": "$[-1]", "b": "$[-3].x"}, b"[1,2]", {"a": 2, "b": None}),
        ({"a": "$.a"}, b'{"a":1,"a":2}', {"a": 2}),
        ({"a": "$.a", "b": "$.b"}, b'{"a":1234567890123456789012345}', {"a": 1234567890123456789012345, "b": None}),
    ],
)  # fmt: skip
def test_paths_find_what_is_there(paths: dict[str, str], body: bytes, values: dict[str, Any]) -> None:
    assert found(paths, body) == values


def test_only_the_named_fields_are_decoded() -> None:
    assert found({"a": "$.a"}, b'{"b":1e999,"c":"\xff","a":1}') == {"a": 1}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("$.data", b'{"data":[%b],"n":1}'),
        ("$", b"[%b]"),
        ("$.a.data", b'{"a":{"data":[%b]}}'),
        ("$.pages[0].data", b'{"pages":[{"data":[%b]}]}'),
        ("$[0]", b"[[%b]]"),
    ],
)
def test_items_are_the_text_the_source_sent(path: str, body: bytes) -> None:
    texts = [b'{ "price" : 1.10, "n": 1e2, "s": "\\u4f5c" }', b'"\xff"', b"1e999"]
    assert items(path, body % b",".join(texts)) == texts


def test_items_are_that_text_although_the_envelope_has_another_shape() -> None:
    text = b'{"price":1.10}'
    body = b'{"data":[' + text + b'],"next":{"token":"x"}}'
    assert items("$.data", body, next="$.next.token.value") == [text]


@pytest.mark.parametrize("other", ["$.a", "$.a.items[0].x", "$.a.items"])
def test_items_are_that_text_although_another_path_shares_the_way(other: str) -> None:
    text = b'{"x":1.10}'
    assert items("$.a.items", b'{"a":{"items":[' + text + b"]}}", other=other) == [text]


def test_items_of_a_path_that_is_not_plain_are_all_its_matches() -> None:
    assert items("$.data[*].r", b'{"data":[{"r":{"a":1}}]}') == [b'{"a":1}']
    assert items("$.data[*].r", b'{"data":[]}') == []
    assert items("$.data[*].r", b'{"error":"no"}') is None


@pytest.mark.parametrize(
    ("body", "kind"), [(b'{"data":{"a":1}}', dict), (b'{"data":null}', type(None)), (b"{}", type(None))]
)
def test_what_stands_instead_of_items_is_told(body: bytes, kind: type) -> None:
    assert isinstance(items("$.data", body), kind)


def test_a_row_reader_returns_values_in_the_order_asked() -> None:
    shape = Shape({"b": parse_path("$.b"), "a": parse_path("$.a.x")})
    read = shape.rows(["a", "b"])
    assert read(msgspec.Raw(b'{"b":2,"a":{"x":1}}')) == (1, 2)
    assert read(b'{"b":2,"a":[1]}') == (None, 2)


def test_what_is_no_json_is_told() -> None:
    with pytest.raises(msgspec.DecodeError):
        found({"a": "$.a"}, b"<html>")
