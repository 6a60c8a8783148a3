"""Values: what a source wrote becomes what a column holds, or is refused with what was expected."""

import time
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest

from executor.values import (
    check_jsonb,
    column_converter,
    moment_reader,
    to_bool,
    to_date,
    to_float,
    to_int,
    to_json_text,
    to_numeric,
    to_partial_date,
    to_text,
)
from ingest.spec.snapshot import Column, Moment


def moment(value: Any, form: str = "iso", zone: str = "UTC") -> datetime:
    read: datetime = moment_reader(Moment(path="$.at", format=form, zone=zone))(value)
    return read.astimezone(UTC)


@pytest.mark.parametrize(
    ("value", "text"),
    [("a", "a"), ("", ""), (1, "1"), (2**80, str(2**80)), (1.5, "1.5"), (True, "true"), (False, "false")],
)
def test_text_is_the_value_as_json_writes_it(value: Any, text: str) -> None:
    assert to_text(value) == text


@pytest.mark.parametrize("value", [[], {}, ["a"], "a\x00b"])
def test_what_is_no_text_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"expected text|NUL"):
        to_text(value)


@pytest.mark.parametrize(("value", "number"), [(5, 5), (5.0, 5), ("-7", -7), (2**63 - 1, 2**63 - 1), (" 8 ", 8)])
def test_a_whole_number_is_read(value: Any, number: int) -> None:
    assert to_int(value) == number


@pytest.mark.parametrize("value", [5.5, True, "", "x", "1_000", "1e3", 2**63, -(2**63) - 1, 1e300, [], {}, "9" * 5000])
def test_what_is_no_bigint_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"whole number|bigint|digits"):
        to_int(value)


@pytest.mark.parametrize(("value", "number"), [(1, 1.0), ("2.5", 2.5), ("1e3", 1000.0), (1e308, 1e308)])
def test_a_float_is_read(value: Any, number: float) -> None:
    assert to_float(value) == number


@pytest.mark.parametrize("value", ["nan", "inf", "1e999", "1_0", True, [], "x", 10**400])
def test_what_is_no_finite_number_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="number"):
        to_float(value)


@pytest.mark.parametrize(
    ("value", "number"), [(1, "1"), ("0.10", "0.10"), (0.1, "0.1"), (2**80, str(2**80)), ("1e131071", "1e131071")]
)
def test_a_numeric_is_exact(value: Any, number: str) -> None:
    assert to_numeric(value) == Decimal(number)


@pytest.mark.parametrize(
    "value",
    ["NaN", "Infinity", True, None, [], [0, [1], 2], "1_0", "x", "1e131072", "-1e131072", "1e-16384", "1e9999999"],
)
def test_a_number_that_numeric_cannot_hold_is_refused_before_the_database_refuses_the_page(value: Any) -> None:
    with pytest.raises(ValueError, match=r"number|digits"):
        to_numeric(value)


@pytest.mark.parametrize(
    ("value", "truth"),
    [(True, True), ("Yes", True), (1, True), ("t", True), ("FALSE", False), (0, False), ("n", False)],
)
def test_booleans_are_read_as_sources_spell_them(value: Any, truth: bool) -> None:
    assert to_bool(value) is truth


@pytest.mark.parametrize("value", ["maybe", 2, [], "", 0.5])
def test_what_is_no_boolean_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="true or false"):
        to_bool(value)


@pytest.mark.parametrize("value", ["2024-01-31", "20240131", "2024-01-31T23:59:00-05:00", "2024-01-31 10:00"])
def test_a_day_is_read(value: str) -> None:
    assert to_date(value) == date(2024, 1, 31)


@pytest.mark.parametrize("value", ["2024-02-30", "31.01.2024", 20240131, "", None, "2024-01"])
def test_what_is_no_day_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="expected a date"):
        to_date(value)


@pytest.mark.parametrize(
    ("form", "value"),
    [("%d.%m.%Y", "31.01.2024"), ("%Y%m%d", 20240131), ("epoch_s", 1706659200), ("date_parts", [[2024, 1, 31]])],
)
def test_a_date_column_is_read_in_its_declared_form(form: str, value: Any) -> None:
    assert column_converter(Column(name="d", path="$.d", type="date", format=form))(value) == date(2024, 1, 31)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2024, "2024"),
        ("2024-1", "2024-01"),
        ("2024-01-31", "2024-01-31"),
        ([[2024]], "2024"),
        ([[2024, 2]], "2024-02"),
        ([2024, 2, 29], "2024-02-29"),
        ([[None]], None),
        ([[]], None),
    ],
)
def test_a_partial_date_is_as_long_as_what_is_known(value: Any, text: str | None) -> None:
    assert to_partial_date(value) == text


@pytest.mark.parametrize(
    "value", ["x", "2023-02-29", [2024, 13], [2024, None], "-500", [1, 2, 3, 4], {}, True, "99999"]
)
def test_what_is_no_part_of_a_date_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="part of one"):
        to_partial_date(value)


@pytest.mark.parametrize(
    "value",
    [
        "2024-03-10T12:30:45Z",
        "2024-03-10t12:30:45z",
        "2024-03-10T12:30:45+00:00",
        "2024-03-10T20:30:45+0800",
        "20240310T123045Z",
        "2024-03-10 12:30:45",
        "2024-03-10T12:30:45.000000000Z",
        "2024-03-10T12:30:45,000Z",
    ],
)
def test_iso_times_are_read_in_all_their_spellings(value: str) -> None:
    assert moment(value) == datetime(2024, 3, 10, 12, 30, 45, tzinfo=UTC)


def test_a_day_alone_is_its_midnight_in_the_declared_zone() -> None:
    assert moment("2024-03-11", zone="America/New_York") == datetime(2024, 3, 11, 4, tzinfo=UTC)


@pytest.mark.parametrize("text", ["2016-12-31T23:59:60Z", "2017-01-01T07:59:60+08:00", "2016-12-31T23:59:60.0Z"])
def test_a_leap_second_is_the_next_second(text: str) -> None:
    assert moment(text) == datetime(2017, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    "value", ["", "yesterday", "2024-13-01", "2024-01-01T25:00:00Z", 1706659200, None, [], "12:60"]
)
def test_what_is_no_iso_time_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="ISO 8601"):
        moment(value)


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ("epoch_s", 1706659200),
        ("epoch_s", "1706659200"),
        ("epoch_s", 1706659200.0),
        ("epoch_ms", 1706659200000),
        ("epoch_us", 1706659200000000),
    ],
)
def test_epochs_are_read(form: str, value: Any) -> None:
    assert moment(value, form) == datetime(2024, 1, 31, tzinfo=UTC)


def test_epochs_are_exact_to_the_microsecond() -> None:
    assert moment(253370764799999999, "epoch_us").microsecond == 999999
    assert moment("1706659200.000001", "epoch_s").microsecond == 1
    assert moment(1706659200.123456, "epoch_s").microsecond == 123456
    assert moment(-1, "epoch_ms") == datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)


@pytest.mark.parametrize(
    "value",
    ["x", "", None, True, [], [0, [1, 7], 8], {}, "nan", "inf", "1e999999", "1e9999999", 10**30, "-1e18", "1_0"],
)
def test_what_is_no_epoch_is_refused_at_once(value: Any) -> None:
    started = time.monotonic()
    with pytest.raises(ValueError, match="seconds since 1970"):
        moment(value, "epoch_s")
    assert time.monotonic() - started < 0.1


@pytest.mark.parametrize(
    ("value", "first"), [([[2024]], "2024-01-01"), ([[2024, 2]], "2024-02-01"), ([2024, 2, 29], "2024-02-29")]
)
def test_date_parts_are_the_first_moment_of_what_they_name(value: Any, first: str) -> None:
    assert moment(value, "date_parts") == datetime.fromisoformat(first + "T00:00:00Z")


@pytest.mark.parametrize("value", [[[None]], None, "x"])
def test_missing_date_parts_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match="date"):
        moment(value, "date_parts")


def test_a_pattern_is_read_in_its_zone_unless_it_names_one() -> None:
    assert moment("31/01/2024 08:00", "%d/%m/%Y %H:%M", "Asia/Shanghai") == datetime(2024, 1, 31, tzinfo=UTC)
    assert moment("2024-01-31 01:00 +0100", "%Y-%m-%d %H:%M %z", "Asia/Shanghai") == datetime(2024, 1, 31, tzinfo=UTC)
    assert moment(20240131, "%Y%m%d") == datetime(2024, 1, 31, tzinfo=UTC)
    with pytest.raises(ValueError, match="expected a time like %Y"):
        moment("2024-01-31", "%Y")


def test_json_is_kept_as_text() -> None:
    assert to_json_text({"a": [1, 2**70, None, "\\u0000"]}) == '{"a":[1,1180591620717411303424,null,"\\\\u0000"]}'
    with pytest.raises(ValueError, match="NUL"):
        to_json_text({"a": "x\x00"})


@pytest.mark.parametrize(
    "text",
    [r'{"a":"\u0000"}', r'{"a":"\\\u0000"}', '{"a":1e400000}', '{"a":1e-20000}', "[" + "1" * 200_000 + "]"],
    ids=["NUL", "NUL after a backslash", "huge", "tiny", "long"],
)
def test_json_that_jsonb_refuses_is_known(text: str) -> None:
    with pytest.raises(ValueError, match=r"jsonb|numeric"):
        check_jsonb(text)


@pytest.mark.parametrize("text", [r'{"a":"\\u0000"}', '{"a":"3e123456789f"}', '{"a":1e400}', '{"a":"\x7f"}', "[1.5e3]"])
def test_json_that_only_looks_like_it_is_taken(text: str) -> None:
    check_jsonb(text)
