"""Durations, sizes and rates are read as people write them, exactly, or refused with what would be right."""

from contextlib import suppress
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.durations import format_duration, format_rate, format_size, parse_duration, parse_rate, parse_size

_SPANS = st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=36_500))


@given(_SPANS)
def test_a_written_duration_reads_back_as_itself(span: timedelta) -> None:
    assert parse_duration(format_duration(span)) == span


@given(st.integers(1, 10**9 - 1), _SPANS.filter(bool))
def test_a_written_rate_reads_back_as_itself(limit: int, span: timedelta) -> None:
    assert parse_rate(format_rate(limit, span)) == (limit, span)


@given(st.integers(0, 2**40))
def test_a_written_size_reads_back_as_itself(size: int) -> None:
    assert parse_size(format_size(size)) == size


@given(st.text(max_size=20))
def test_any_text_is_either_read_or_refused(text: str) -> None:
    for parse in (parse_duration, parse_size, parse_rate):
        with suppress(ValueError):  # and nothing else
            parse(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("15m", 900),
        ("1h30m", 5400),
        ("7d", 604800),
        ("2w", 1209600),
        ("250ms", 0.25),
        ("1.5h", 5400),
        ("PT15M", 900),
        ("P1DT12H", 129600),
        ("P2W", 1209600),
        (" 5m ", 300),
        ("0s", 0),
    ],
)
def test_durations_people_write_are_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("90", "'90' has no unit: write 90s"),
        ("P1M", "no fixed length"),
        ("P1Y", "no fixed length"),
        ("30m1h", "is not a duration"),
        ("1h1h", "is not a duration"),
        ("4:13", "is not a duration"),
        ("-5m", "is not a duration"),
        ("", "is not a duration"),
        ("P", "is not a duration"),
        ("PT", "is not a duration"),
        ("0.1us", "finer than a microsecond"),
        ("99999999d", "longer than a hundred years"),
        ("٣s", "is not a duration"),
    ],
)
def test_a_doubtful_duration_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match="'") as refused:
        parse_duration(text)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("text", "limit", "seconds"),
    [
        ("3/1s", 3, 1),
        ("200/min", 200, 60),
        ("10/s", 10, 1),
        ("195/60s", 195, 60),
        ("5000/h", 5000, 3600),
        ("1/day", 1, 86400),
    ],
)
def test_rates_people_write_are_read(text: str, limit: int, seconds: int) -> None:
    assert parse_rate(text) == (limit, timedelta(seconds=seconds))


@pytest.mark.parametrize("text", ["10", "10/", "/s", "0/s", "10/0s", "ten/s", "10/x", "-1/s"])
def test_a_doubtful_rate_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"rate|lets nothing"):
        parse_rate(text)


@pytest.mark.parametrize(("text", "size"), [("64MiB", 67108864), ("10MB", 10**7), ("512B", 512), ("1.5KiB", 1536)])
def test_sizes_people_write_are_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["64", "64mib", "MiB", "-1B", "0.5B", "2000GiB"])
def test_a_doubtful_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"size|bytes|larger"):
        parse_size(text)
