"""Mapping: records, duplicates, filtered and rejects are all there is; one bad record never stops the page."""

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from executor.mapping import Mapped, RecordMapper
from ingest.spec.snapshot import Column, IdPart, Mapping, Moment, Window
from tests.factories import START, make_snapshot

UNTIL = datetime(2024, 2, 1, tzinfo=UTC)


def mapper(**mapping: Any) -> RecordMapper:
    window = mapping.pop("window", None)
    values: dict[str, Any] = {
        "dataset": "plain_items",
        "identity": (IdPart(column="provider_id", path="$.id"),),
        "updated_at": Moment(path="$.at"),
        "columns": (Column(name="title", path="$.title"),),
    }
    sections = {} if window is None else {"window": window}
    return RecordMapper(make_snapshot(mapping=Mapping(**(values | mapping)), **sections))


def map_texts(made: RecordMapper, *texts: bytes | dict[str, Any]) -> Mapped:
    raws = [msgspec.Raw(text if isinstance(text, bytes) else json.dumps(text).encode()) for text in texts]
    return made.map_items(raws, until=UNTIL)


def item(id_: Any = "1", at: Any = "2024-01-02T00:00:00Z", **more: Any) -> dict[str, Any]:
    return {"id": id_, "at": at} | more


def test_a_record_becomes_a_row_with_its_own_text() -> None:
    text = b'{ "id":"A", "at":"2024-01-02T08:00:00+08:00", "title":"t", "price":1.10 }'
    (record,) = map_texts(mapper(), text).records
    assert record.key == ("A",)
    assert record.updated_at == datetime(2024, 1, 2, tzinfo=UTC)
    assert record.columns == ("t",)
    assert record.payload == text
    assert record.content_hash is None


def test_bad_records_go_to_quarantine_and_the_rest_go_on() -> None:
    mapped = map_texts(mapper(), item("1"), item(None), item("2", at="never"), item("3"), b"[]", b'"x"')
    assert [record.key for record in mapped.records] == [("1",), ("3",)]
    places = [(reject.item_no, reject.path) for reject in mapped.rejects]
    assert places == [(1, "$.id"), (2, "$.at"), (4, "$.id"), (5, "$.id")]
    assert json.loads(mapped.rejects[0].record) == item(None)


@pytest.mark.parametrize(
    "text",
    [
        b'{"id":"1","at":"2024-01-02T00:00:00Z","x":"\xff"}',
        b'{"id":"1","at":"2024-01-02T00:00:00Z","x":"\\ud800"}',
        b'{"id":"1","at":"2024-01-02T00:00:00Z","x":"\\x"}',
        b'{"id":"1","at":"2024-01-02T00:00:00Z","x":"\x01"}',
        b'{"id":"1","at":"2024-01-02T00:00:00Z","title":"\xff"}',
        b'{"id":"1","at":"2024-01-02T00:00:00Z","title":"a\\u0000"}',
        b'{"id":"1","at":"2024-01-02T00:00:00Z","title":1e999}',
        b'{"id":"1","at":"2024-01-02T00:00:00Z","x":' + b"[" * 5000 + b"]" * 5000 + b"}",
        b'{"id":"1","at":NaN}',
        b'{"id":"1"',
        b"",
    ],
    ids=["utf-8", "surrogate", "escape", "control", "mapped utf-8", "NUL", "huge", "deep", "NaN", "cut", "empty"],
)
def test_text_nobody_can_store_is_quarantined_as_text_that_can(text: bytes) -> None:
    mapped = map_texts(mapper(), text, item("2"))
    assert len(mapped.records) == len(mapped.rejects) == 1
    evidence = mapped.rejects[0]
    for stored in (evidence.record, evidence.reason, evidence.path):
        assert "\x00" not in stored
        stored.encode()


@pytest.mark.parametrize("payload", ["json", "jsonb", "none"])
@pytest.mark.parametrize("updated_at", [Moment(path="$.at"), None], ids=["dated", "undated"])
@pytest.mark.parametrize(
    "text",
    [b'{"id":"1","x":"\xff"}', b'{"id":"1","x":' + b"[" * 950 + b"]" * 950 + b"}", b'{"id":"1","x":1e999}'],
    ids=["utf-8", "deep", "huge"],
)
def test_no_record_stops_the_page_whatever_is_kept_of_it(text: bytes, updated_at: Moment | None, payload: str) -> None:
    mapped = map_texts(mapper(updated_at=updated_at, payload=payload), text, item("2"))
    assert len(mapped.records) + len(mapped.rejects) == 2
    assert mapped.records[-1].key == ("2",)


@pytest.mark.parametrize("text", [rb'{"id":"1","x":"\u0000"}', b'{"id":"1","x":1e400000}', b'{"id":"1","x":1e-20000}'])
def test_what_jsonb_refuses_is_quarantined_and_json_keeps_it(text: bytes) -> None:
    assert len(map_texts(mapper(updated_at=None, columns=(), payload="jsonb"), text).rejects) == 1
    dated = text[:-1] + b',"at":"2024-01-02T00:00:00Z"}'
    assert map_texts(mapper(columns=()), dated).records[0].payload == dated


@pytest.mark.parametrize(
    ("value", "key"), [("a", "a"), (5, "5"), (2**80, str(2**80)), (" ", " "), ("É", "É"), ("x" * 1000, "x" * 1000)]
)
def test_an_id_is_text_or_a_whole_number(value: Any, key: str) -> None:
    assert map_texts(mapper(), item(value)).records[0].key == (key,)


@pytest.mark.parametrize("value", [None, "", True, 1.5, [], {}, ["a"], "a\x00", "x" * 1001, "作" * 334])
def test_what_is_no_id_is_quarantined(value: Any) -> None:
    (reject,) = map_texts(mapper(), item(value)).rejects
    assert reject.path == "$.id"


def test_ids_may_be_lowered() -> None:
    made = mapper(identity=(IdPart(column="provider_id", path="$.id", lower=True),))
    assert map_texts(made, item("10.1/ABC"), item("10.1/abc")).records[0].key == ("10.1/abc",)


def test_an_id_of_several_typed_parts_is_one_key() -> None:
    parts = (
        IdPart(column="series_id", path="$.series"),
        IdPart(column="open_time", path="$.open", type="timestamp"),
        IdPart(column="n", path="$.n", type="int"),
    )
    made = mapper(identity=parts, updated_at=None)
    east, utc = "2024-01-01T08:00:00+08:00", "2024-01-01T00:00:00Z"
    one, again = {"series": "a", "open": east, "n": 1}, {"series": "a", "open": utc, "n": "1"}
    mapped = map_texts(made, one, again, {"series": "a", "n": 1})
    assert mapped.duplicate == 1
    assert mapped.records[0].key == ("a", START, 1)
    assert mapped.rejects[0].path == "$.open"


def test_an_id_of_several_parts_is_not_longer_than_an_index_can_hold() -> None:
    parts = tuple(IdPart(column=name, path=f"$.{name}") for name in "abc")
    made = mapper(identity=parts, updated_at=None)
    mapped = map_texts(made, dict.fromkeys("abc", "x" * 333), dict.fromkeys("abc", "x" * 334))
    assert (len(mapped.records), len(mapped.rejects)) == (1, 1)


def test_items_may_be_ids_themselves() -> None:
    made = mapper(identity=(IdPart(column="provider_id", path="$"),), updated_at=None, columns=())
    assert [record.key for record in map_texts(made, b'"39"', b"40").records] == [("39",), ("40",)]


def test_records_that_share_a_key_are_folded_into_the_newest() -> None:
    old, new = item("1", at="2024-01-01T00:00:00Z", title="old"), item("1", at="2024-01-03T00:00:00Z", title="new")
    for order in ((old, new), (new, old)):
        mapped = map_texts(mapper(), *order, item("2"))
        assert mapped.duplicate == 1
        assert [record.columns for record in mapped.records] == [("new",), (None,)]


def test_of_equal_versions_the_later_in_the_page_counts() -> None:
    mapped = map_texts(mapper(), item("1", title="first"), item("1", title="second"))
    assert [record.columns for record in mapped.records] == [("second",)]


def test_at_an_inclusive_instant_the_record_at_the_end_belongs_to_the_next_window() -> None:
    window = Window(filter="server", field="at", start=START, ends="inclusive", bound="instant", precision="second")
    at_end, before, after = "2024-02-01T00:00:00Z", "2024-01-31T23:59:59Z", "2024-02-01T00:00:01Z"
    mapped = map_texts(mapper(window=window), item("1", at=at_end), item("2", at=before), item("3", at=after))
    assert mapped.filtered == 1
    assert [record.key for record in mapped.records] == [("2",), ("3",)]


@pytest.mark.parametrize("rules", [{"ends": "exclusive"}, {"ends": "inclusive"}, {"filter": "none"}])
def test_other_windows_keep_every_record(rules: dict[str, Any]) -> None:
    window = Window(**({"filter": "server", "field": "at", "start": START} | rules))
    assert map_texts(mapper(window=window), item("1", at="2024-02-01T00:00:00Z")).filtered == 0


def test_the_newest_time_of_the_page_is_observed() -> None:
    mapped = map_texts(mapper(), item("1", at="2024-01-05T00:00:00Z"), item("2", at="2024-01-03T00:00:00Z"))
    assert mapped.observed_max == datetime(2024, 1, 5, tzinfo=UTC)
    assert map_texts(mapper()).observed_max is None


@pytest.mark.parametrize("at", [None, "", "never", 5, "0001-01-01T00:00:00+05:00", "9999-12-31T23:59:59-05:00"])
def test_a_record_without_a_readable_time_is_quarantined(at: Any) -> None:
    (reject,) = map_texts(mapper(), item(at=at)).rejects
    assert reject.path == "$.at"


def test_without_a_time_the_content_is_the_version() -> None:
    made = mapper(updated_at=None)
    same, spaced, other = b'{"id":"1","b":1,"a":2}', b'{ "a": 2, "b": 1, "id": "1" }', b'{"id":"1","b":2,"a":2}'
    hashes = [map_texts(made, text).records[0].content_hash for text in (same, spaced, other)]
    assert hashes[0] == hashes[1] != hashes[2]


def test_a_required_column_and_an_enumeration_are_kept() -> None:
    made = mapper(columns=(Column(name="state", path="$.state", required=True, enum=("open", "closed")),))
    mapped = map_texts(made, item("1", state="open"), item("2"), item("3", state="ajar"), item("4", state=None))
    assert [record.key for record in mapped.records] == [("1",)]
    assert [reject.reason for reject in mapped.rejects][0::2] == ["required, but missing"] * 2
    assert "ajar" in mapped.rejects[1].reason


def test_a_missing_column_is_null() -> None:
    assert map_texts(mapper(), item("1"), item("2", title=None)).records[0].columns == (None,)
