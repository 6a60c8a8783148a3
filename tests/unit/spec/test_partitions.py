"""Partition keys are readable and lead back to exactly the values they were made of (D9)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.spec.partitions import decode_partition, encode_partition

_FIRST = st.text(min_size=1, max_size=20)
_OTHERS = st.lists(st.text(min_size=1, max_size=20).filter(lambda text: "/" not in text), max_size=3)


def test_the_key_is_what_a_person_would_write() -> None:
    assert encode_partition({"symbol": "BTCUSDT", "interval": "1h"}) == "BTCUSDT/1h"
    assert encode_partition({"symbol": "BTCUSDT"}) == "BTCUSDT"
    assert encode_partition({}) == ""


def test_a_key_is_read_from_its_last_slash() -> None:
    assert decode_partition("BTC/USDT/1h", ["symbol", "interval"]) == {"symbol": "BTC/USDT", "interval": "1h"}
    assert decode_partition("BTC/USDT", ["symbol"]) == {"symbol": "BTC/USDT"}


@given(_FIRST, _OTHERS)
def test_every_key_leads_back_to_its_values(first: str, others: list[str]) -> None:
    partition = {f"d{number}": value for number, value in enumerate([first, *others])}
    assert decode_partition(encode_partition(partition), list(partition)) == partition


@pytest.mark.parametrize("partition", [{"a": ""}, {"a": "x", "b": ""}, {"a": "x", "b": "1/2"}])
def test_what_could_not_be_read_back_is_refused(partition: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"empty|only the first"):
        encode_partition(partition)


@pytest.mark.parametrize(("key", "dimensions"), [("x", []), ("x", ["a", "b"]), ("", ["a"]), ("x/", ["a", "b"])])
def test_a_key_without_a_value_for_each_dimension_is_refused(key: str, dimensions: list[str]) -> None:
    with pytest.raises(ValueError, match=r"partition|one value"):
        decode_partition(key, dimensions)
