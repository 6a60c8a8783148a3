"""Windows: exact inside, written as each source wants them outside."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ingest.spec.snapshot import Window
from ingest.spec.windows import advance, coarsest_unit, floor_to_unit, horizon, render_window

NEW_YORK, SHANGHAI = "America/New_York", "Asia/Shanghai"


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def window(**values: Any) -> Window:
    return Window(**({"filter": "server", "field": "updated"} | values))


def rendered(start: str, end: str, **values: Any) -> tuple[Any, Any]:
    told = render_window(window(**values), at(start), at(end))
    return told["from"], told["to"]


DAY = ("2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z")


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({}, ("2024-05-01T00:00:00.000000Z", "2024-05-02T00:00:00.000000Z")),
        ({"precision": "ms"}, ("2024-05-01T00:00:00.000Z", "2024-05-02T00:00:00.000Z")),
        ({"precision": "second"}, ("2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z")),
        ({"precision": "day"}, ("2024-05-01", "2024-05-02")),
        ({"precision": "day", "ends": "inclusive"}, ("2024-05-01", "2024-05-01")),
        ({"precision": "minute", "ends": "inclusive"}, ("2024-05-01T00:00:00Z", "2024-05-01T23:59:00Z")),
        ({"precision": "second", "ends": "inclusive"}, ("2024-05-01T00:00:00Z", "2024-05-01T23:59:59Z")),
        ({"precision": "ms", "ends": "inclusive"}, ("2024-05-01T00:00:00.000Z", "2024-05-01T23:59:59.999Z")),
        ({"precision": "us", "ends": "inclusive"}, ("2024-05-01T00:00:00.000000Z", "2024-05-01T23:59:59.999999Z")),
        (
            {"precision": "second", "ends": "inclusive", "bound": "instant"},
            ("2024-05-01T00:00:00Z", "2024-05-02T00:00:00Z"),
        ),
        ({"precision": "second", "format": "epoch_s"}, (1714521600, 1714608000)),
        ({"precision": "second", "format": "epoch_s", "ends": "inclusive"}, (1714521600, 1714607999)),
        ({"precision": "ms", "format": "epoch_ms", "ends": "inclusive"}, (1714521600000, 1714607999999)),
        ({"format": "epoch_us", "ends": "inclusive"}, (1714521600000000, 1714607999999999)),
        ({"precision": "day", "format": "%Y/%m/%d", "ends": "inclusive"}, ("2024/05/01", "2024/05/01")),
    ],
)
def test_ends_are_written_as_the_source_reads_them(rules: dict[str, Any], told: tuple[Any, Any]) -> None:
    assert rendered(*DAY, **rules) == told


def test_a_local_day_is_written_in_its_own_zone() -> None:
    rules = {"precision": "day", "ends": "inclusive", "zone": SHANGHAI, "format": "%Y%m%d"}
    assert rendered("2024-05-01T00:00:00+08:00", "2024-05-03T00:00:00+08:00", **rules) == ("20240501", "20240502")


@pytest.mark.parametrize(
    ("day", "hours"),
    [("2024-03-10", 23), ("2024-11-03", 25)],
)
def test_days_of_23_and_25_hours_are_one_day(day: str, hours: int) -> None:
    start = floor_to_unit(at(f"{day}T12:00:00-05:00"), "day", NEW_YORK)
    end = advance(start, 86400.0, "day", NEW_YORK)
    assert end - start == timedelta(hours=hours)
    told = render_window(window(precision="day", ends="inclusive", zone=NEW_YORK), start, end)
    assert told == {"from": day, "to": day}


def test_seven_days_after_a_midnight_is_a_midnight_across_dst() -> None:
    start = at("2024-03-08T00:00:00-05:00")
    assert advance(start, 7 * 86400.0, "day", NEW_YORK) == at("2024-03-15T00:00:00-04:00")


def test_a_day_without_midnight_begins_with_its_first_moment() -> None:
    # Cairo skipped 00:00 to 01:00 on 2024-04-26
    assert floor_to_unit(at("2024-04-26T12:00:00+03:00"), "day", "Africa/Cairo") == at("2024-04-26T01:00:00+03:00")


def test_a_day_with_two_midnights_begins_with_the_first() -> None:
    # Havana set 01:00 back to 00:00 on 2024-11-03
    assert floor_to_unit(at("2024-11-03T12:00:00-05:00"), "day", "America/Havana") == at("2024-11-03T00:00:00-04:00")


def test_a_day_that_never_was_is_stepped_over() -> None:
    # Samoa went from 29 to 31 December 2011
    start = at("2011-12-29T00:00:00-10:00")
    end = advance(start, 86400.0, "day", "Pacific/Apia")
    assert end == at("2011-12-31T00:00:00+14:00")
    told = render_window(window(precision="day", ends="inclusive", zone="Pacific/Apia"), start, end)
    assert told == {"from": "2011-12-29", "to": "2011-12-29"}


def test_hours_stay_whole_where_dst_moves_by_half_an_hour() -> None:
    # Lord Howe: from +11:00 to +10:30 on 2024-04-06T15:00Z
    for minute in range(0, 240, 7):
        moment = at("2024-04-06T13:00:00Z") + timedelta(minutes=minute)
        floored = floor_to_unit(moment, "hour", "Australia/Lord_Howe")
        assert timedelta() <= moment - floored < timedelta(hours=1)
        assert floor_to_unit(floored, "hour", "Australia/Lord_Howe") == floored


def test_hours_begin_where_the_zone_begins_them() -> None:
    assert floor_to_unit(at("2024-05-01T10:44:00Z"), "hour", "Asia/Kathmandu") == at("2024-05-01T10:15:00Z")


@pytest.mark.parametrize("unit", ["day", "hour", "minute", "second", "ms", "us"])
def test_a_step_smaller_than_the_unit_takes_the_unit(unit: str) -> None:
    start = at("2024-03-10T05:00:00Z")
    end = advance(start, 1e-9, unit, NEW_YORK)
    assert end > start
    assert floor_to_unit(end, unit, NEW_YORK) == end
    assert floor_to_unit(end - timedelta(microseconds=1), unit, NEW_YORK) == floor_to_unit(start, unit, NEW_YORK)


def test_a_small_step_from_within_a_day_ends_with_that_day() -> None:
    assert advance(at("2024-05-01T23:00:00Z"), 1800.0, "day", "UTC") == at("2024-05-02T00:00:00Z")


def test_an_end_within_a_unit_asks_for_that_unit_whole() -> None:
    # the precision was changed after windows ended within a day: twice is better than never
    assert rendered("2024-05-01T06:00:00Z", "2024-05-02T06:00:00Z", precision="day") == ("2024-05-01", "2024-05-03")
    inclusive = rendered("2024-05-01T06:00:00Z", "2024-05-02T06:00:00Z", precision="day", ends="inclusive")
    assert inclusive == ("2024-05-01", "2024-05-02")


def test_epochs_before_1970_are_floors_too() -> None:
    told = rendered("1969-12-31T23:59:58.500Z", "1969-12-31T23:59:59.500Z", format="epoch_s")
    assert told == (-2, -1)


def test_microseconds_of_far_years_are_exact() -> None:
    told = rendered("9998-12-31T23:59:59.999999Z", "9999-01-01T00:00:00.000001Z", format="epoch_us")
    assert told == (253370764799999999, 253370764800000001)


@pytest.mark.parametrize(
    ("rules", "unit"),
    [
        ({"precision": "second"}, "second"),
        ({"precision": "second", "align": "hour"}, "hour"),
        ({"precision": "day", "align": "hour"}, "day"),
        ({"precision": "us", "align": "minute"}, "minute"),
    ],
)
def test_ends_sit_on_the_coarser_of_precision_and_alignment(rules: dict[str, Any], unit: str) -> None:
    assert coarsest_unit(window(**rules)) == unit


def test_the_horizon_stays_behind_now_by_the_lag_and_on_a_boundary() -> None:
    now = at("2024-05-02T00:05:00Z")
    assert horizon(window(precision="day", safety_lag_s=600.0), now) == at("2024-05-01T00:00:00Z")
    assert horizon(window(precision="second", safety_lag_s=600.0), now) == at("2024-05-01T23:55:00Z")
    assert horizon(window(precision="day", safety_lag_s=0.0, zone=NEW_YORK), now) == at("2024-05-01T00:00:00-04:00")


def test_without_a_window_there_is_nothing_to_write() -> None:
    assert render_window(window(), None, None) == {"from": None, "to": None}
