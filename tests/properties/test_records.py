"""Records: on any JSON the fast way finds what the general way finds, and every item is accounted for."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from executor.mapping import RecordMapper
from executor.salvage import blank_broken, cut_items
from executor.shapes import Shape
from ingest.spec.paths import Path, parse_path
from ingest.spec.snapshot import Column, IdPart, Mapping, Moment, Window
from tests.factories import START, make_snapshot

KEYS = ["a", "b", "c", "date-time", "x.y", "作"]
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | st.text(max_size=6)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4)
)
steps = st.sampled_from([*(f"['{key}']" for key in KEYS), "[0]", "[1]", "[-1]"])
plain_paths = st.lists(steps, max_size=4).map(lambda parts: parse_path("$" + "".join(parts)))
TYPES = ["text", "int", "float", "numeric", "bool", "timestamp", "date", "json", "partial_date"]


def walk(path: Path, value: Any) -> Any:
    """Find by jsonpath-ng itself, where it does not trip over the data."""
    found = [match.value for match in path.parsed.find(value)]
    return found[0] if found else None


@given(st.lists(plain_paths, min_size=1, max_size=5), values)
def test_the_compiled_shape_finds_what_jsonpath_finds(paths: list[Path], value: Any) -> None:
    named = {f"p{n}": path for n, path in enumerate(paths)}
    body = json.dumps(value).encode()
    expected = {name: walk(path, value) for name, path in named.items()}
    shape = Shape(named)
    find = shape.read(body)
    assert {name: find(name) for name in named} == expected
    assert shape.rows(list(named))(body) == tuple(expected.values())
    assert {name: path.getter()(value) for name, path in named.items()} == expected


@given(st.lists(plain_paths, max_size=3), plain_paths, values)
def test_items_are_always_raw_and_always_their_own_text(others: list[Path], items: Path, value: Any) -> None:
    body = json.dumps(value, indent=1).encode()
    named = {"items": items} | {f"p{n}": path for n, path in enumerate(others)}
    found = Shape(named, raw_list="items").read(body)("items")
    expected = walk(items, value)
    if isinstance(expected, list):
        assert all(isinstance(item, msgspec.Raw) for item in found)
        assert [json.loads(bytes(item)) for item in found] == expected
        assert all(bytes(item) in body for item in found)
        if -1 not in (items.plain or ()):
            assert [bytes(item) for item in cut_items(body, items.plain or ()) or []] == [bytes(item) for item in found]
    else:
        assert found == expected


@given(st.lists(st.binary(max_size=12) | st.sampled_from([rb"\ud800", rb"\x", b"\\", b'\\"', b"\n", rb"\ud83d\ude00"])))
def test_blanking_never_moves_a_byte_and_never_harms_good_json(parts: list[bytes]) -> None:
    text = b"".join(parts)
    assert len(blank_broken(text)) == len(text)
    good = json.dumps(text.decode("latin-1")).encode()
    assert blank_broken(good) == good


records = st.builds(
    lambda known, more: more | known,
    st.fixed_dictionaries(
        {},
        optional={
            "id": st.sampled_from(["1", "2", "3", 4]) | scalars,
            "at": st.sampled_from(["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z", "2024-01-03", "soon"]) | scalars,
        },
    ),
    st.dictionaries(st.sampled_from(KEYS), values, max_size=4),
)
BROKEN = [b"", b"{", b'{"id":"1","a":"\xff"}', rb'{"id":"1","a":"\ud800"}', b"[" * 4000 + b"]" * 4000, b'{"id":1e999}']
items = (records | values).map(lambda value: json.dumps(value).encode()) | st.sampled_from(BROKEN)


@given(
    st.lists(items, max_size=8),
    st.lists(st.tuples(st.sampled_from(TYPES), st.sampled_from(KEYS), st.booleans()), max_size=4),
    st.sampled_from(["json", "jsonb", "none"]),
    st.booleans(),
)
def test_every_item_is_a_record_a_duplicate_filtered_or_a_reject(
    texts: list[bytes], columns: list[tuple[str, str, bool]], payload: str, dated: bool
) -> None:
    window = Window(filter="server", field="at", start=START, ends="inclusive", bound="instant", precision="second")
    mapping = Mapping(
        dataset="plain_items",
        identity=(IdPart(column="provider_id", path="$.id"),),
        updated_at=Moment(path="$.at") if dated else None,
        columns=tuple(
            Column(name=f"c{n}", path=f"$['{key}']", type=kind, required=required)  # type: ignore[arg-type]
            for n, (kind, key, required) in enumerate(columns)
        ),
        payload=payload,  # type: ignore[arg-type]
    )
    mapper = RecordMapper(make_snapshot(mapping=mapping, window=window))
    mapped = mapper.map_items([msgspec.Raw(text) for text in texts], until=datetime(2024, 1, 2, tzinfo=UTC))
    assert len(mapped.records) + mapped.duplicate + mapped.filtered + len(mapped.rejects) == len(texts)
    keys = [record.key for record in mapped.records]
    assert len(set(keys)) == len(keys)
    for record in mapped.records:
        assert isinstance(record.key[0], str)
        assert "\x00" not in record.key[0]
        assert len(record.columns) == len(columns)
        assert (record.updated_at is None) is not dated
        assert (record.content_hash is None) is dated
        for value in record.columns:
            assert not isinstance(value, str) or "\x00" not in value
    for reject in mapped.rejects:
        for text in (reject.record, reject.reason, reject.path):
            assert "\x00" not in text
            text.encode()
