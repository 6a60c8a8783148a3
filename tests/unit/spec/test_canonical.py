"""Canonical JSON: equal data has one text and one hash."""

from datetime import UTC, datetime, timedelta, timezone

import msgspec
import pytest

from ingest.spec.canonical import canonical_json, format_instant, hash_of, hash_of_json


def test_key_order_does_not_matter() -> None:
    assert canonical_json({"b": 1, "a": [1, {"d": 2, "c": 3}]}) == b'{"a":[1,{"c":3,"d":2}],"b":1}'


def test_list_order_matters() -> None:
    assert hash_of([1, 2]) != hash_of([2, 1])


def test_one_moment_has_one_text_in_every_zone() -> None:
    east = datetime(2024, 6, 1, 8, 30, tzinfo=timezone(timedelta(hours=8)))
    assert format_instant(east) == "2024-06-01T00:30:00.000000Z"
    assert hash_of({"at": east}) == hash_of({"at": datetime(2024, 6, 1, 0, 30, tzinfo=UTC)})


def test_microseconds_are_kept() -> None:
    assert format_instant(datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)) == "2024-01-01T00:00:00.000001Z"


def test_early_years_have_four_digits() -> None:
    assert format_instant(datetime(1, 1, 1, tzinfo=UTC)) == "0001-01-01T00:00:00.000000Z"


def test_a_time_without_a_zone_has_no_hash() -> None:
    with pytest.raises(ValueError, match="without a zone"):
        hash_of({"at": datetime(2024, 1, 1)})  # noqa: DTZ001 -- this is the mistake


def test_a_hash_says_its_version() -> None:
    assert hash_of({}).startswith("h1:")
    assert len(hash_of({})) == len("h1:") + 64


def test_big_integers_are_exact() -> None:
    assert hash_of(2**80) != hash_of(2**80 + 1)


def test_decoded_json_has_the_same_hash_by_both_ways() -> None:
    value = msgspec.json.decode(
        b'{"z": [1, 2.5, null, "\\u4f5c"], "a": {"y": true, "b": 123456789012345678901234567890}}'
    )
    assert hash_of_json(value) == hash_of(value)


def test_json_that_is_nested_deeply_can_be_hashed() -> None:
    deep = msgspec.json.decode(b"[" * 700 + b"]" * 700)
    assert hash_of_json(deep).startswith("h1:")
