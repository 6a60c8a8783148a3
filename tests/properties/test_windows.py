"""Windows: for any gap, any rules and any zone, what is rendered tiles time exactly."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from typing import Any
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from ingest.spec.snapshot import Window
from ingest.spec.windows import advance, coarsest_unit, floor_to_unit, horizon, render_window
from planner.slicing import cut

# with and without DST, at half hours, at midnight, by half an hour, across the date line
ZONES = [
    "UTC", "America/New_York", "Asia/Shanghai", "Africa/Cairo", "America/Havana", "America/Sao_Paulo", "Asia/Beirut",
    "Asia/Kathmandu", "Atlantic/Azores", "Australia/Lord_Howe", "Pacific/Apia", "Europe/London",
]  # fmt: skip
UNITS = ["day", "hour", "minute", "second", "ms", "us"]
FORMATS = {
    "day": ["iso", "date", "%Y%m%d", "%Y/%m/%d"],
    "minute": ["iso", "epoch_s", "epoch_ms", "%Y-%m-%dT%H:%M%z"],
    "second": ["iso", "epoch_s", "epoch_ms", "%Y-%m-%dT%H:%M:%S%z"],
    "ms": ["iso", "epoch_ms", "epoch_us"],
    "us": ["iso", "epoch_us", "%Y-%m-%dT%H:%M:%S.%f%z"],
}


def _changes(zone: str) -> Iterator[datetime]:
    """Yield the moments around which the zone's clocks change, to the hour."""
    moment, place = datetime(2011, 6, 1, tzinfo=UTC), ZoneInfo(zone)
    while moment.year < 2025:
        following = moment + timedelta(hours=12)
        if moment.astimezone(place).utcoffset() != following.astimezone(place).utcoffset():
            yield moment
        moment = following


CHANGES = {zone: [*_changes(zone), datetime(2024, 2, 28, tzinfo=UTC)] for zone in ZONES}


@st.composite
def moments(draw: st.DrawFn, zone: str) -> datetime:
    """Draw a moment, most of them within two days of a change of the clocks."""
    near = draw(st.sampled_from(CHANGES[zone]))
    return near + timedelta(microseconds=draw(st.integers(-2 * 86_400_000_000, 2 * 86_400_000_000)))


@st.composite
def windows(draw: st.DrawFn) -> Window:
    precision = draw(st.sampled_from(list(FORMATS)))
    values: dict[str, Any] = {
        "precision": precision,
        "format": draw(st.sampled_from(FORMATS[precision])),
        "zone": draw(st.sampled_from(ZONES)),
        "ends": draw(st.sampled_from(["exclusive", "inclusive"])),
        "bound": draw(st.sampled_from(["unit", "instant"])),
        "max_s": draw(st.sampled_from([60.0, 3600.0, 5400.0, 86400.0, 100_000.0, 7 * 86400.0])),
        "align": draw(st.sampled_from([None, "minute", "hour", "day"])),
    }
    return Window(filter="server", field="at", **values)


def read_back(window: Window, told: Any) -> datetime:
    """Read a rendered end as a source would, in its own zone."""
    if window.format.startswith("epoch"):
        ticks = {"epoch_s": 1_000_000, "epoch_ms": 1_000, "epoch_us": 1}[window.format]
        return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=told * ticks)
    if window.format == "iso" or window.format == "date":
        moment = datetime.fromisoformat(told)
    else:
        moment = datetime.strptime(told, window.format)  # noqa: DTZ007 -- the pattern has %z, or means a local day
    return (moment if moment.tzinfo else moment.replace(tzinfo=ZoneInfo(window.zone))).astimezone(UTC)


@given(st.data(), st.sampled_from(ZONES), st.sampled_from(UNITS))
def test_a_floor_is_a_boundary_at_or_before(data: st.DataObject, zone: str, unit: str) -> None:
    moment = data.draw(moments(zone))
    floored = floor_to_unit(moment, unit, zone)
    assert floored <= moment < floored + timedelta(days=1, hours=2)
    assert floor_to_unit(floored, unit, zone) == floored
    later = data.draw(moments(zone))
    if later >= moment:
        assert floor_to_unit(later, unit, zone) >= floored


@given(st.data(), st.sampled_from(ZONES), st.sampled_from(UNITS), st.floats(1e-6, 1e7))
def test_advancing_always_progresses_to_a_boundary_and_not_past_the_step(
    data: st.DataObject, zone: str, unit: str, step: float
) -> None:
    moment = data.draw(moments(zone))
    following = advance(moment, step, unit, zone)
    assert following > moment
    assert floor_to_unit(following, unit, zone) == following
    inside = floor_to_unit(following - timedelta(microseconds=1), unit, zone) <= moment
    assert inside or following <= moment + timedelta(seconds=step, hours=2)


@given(st.data(), windows())
def test_windows_cover_a_gap_exactly_and_are_read_by_the_source_as_they_are_meant(
    data: st.DataObject, window: Window
) -> None:
    unit = coarsest_unit(window)
    ends = sorted(floor_to_unit(data.draw(moments(window.zone)), unit, window.zone) for _ in range(2))
    made = list(islice(cut([(ends[0], ends[1])], window), 40))
    assert [a for a, _ in made[:1]] == ([ends[0]] if ends[0] < ends[1] else [])
    assert all(a < b for a, b in made)
    assert all(before[1] == after[0] for before, after in pairwise(made))
    if made and len(made) < 40:
        assert made[-1][1] == ends[1]
    for start, end in made:
        assert floor_to_unit(end, unit, window.zone) == end
        told = render_window(window, start, end)
        first, last = read_back(window, told["from"]), read_back(window, told["to"])
        if window.ends == "inclusive" and window.bound == "unit":
            last = advance(last, 0.0, window.precision, window.zone)  # the source takes all of its last unit
        assert (first, last) == (start, end)


@given(st.data(), windows())
def test_a_gap_off_the_boundaries_is_asked_for_whole(data: st.DataObject, window: Window) -> None:
    start, end = sorted(data.draw(moments(window.zone)) for _ in range(2))
    if start == end:
        return
    for a, b in islice(cut([(start, end)], window), 20):
        told = render_window(window, a, b)
        first, last = read_back(window, told["from"]), read_back(window, told["to"])
        if window.ends == "inclusive" and window.bound == "unit":
            last = advance(last, 0.0, window.precision, window.zone)
        assert first <= a < b <= last


@given(st.data(), windows(), st.floats(0, 1e6))
def test_the_horizon_is_a_boundary_behind_the_lag(data: st.DataObject, window: Window, lag: float) -> None:
    now = data.draw(moments(window.zone))
    end = horizon(window.model_copy(update={"safety_lag_s": lag}), now)
    assert end <= now - timedelta(seconds=lag)
    assert floor_to_unit(end, coarsest_unit(window), window.zone) == end
