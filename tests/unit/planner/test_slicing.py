"""Slicing: windows touch, do not overlap, and a slice is known by what it asks for."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ingest.spec.snapshot import Budget, Column, Snapshot, Window
from ingest.states import Operation, SlicePurpose
from ingest.store.plans import NewSlice
from planner.slicing import cut, make_slice, priority_of
from tests.factories import START, make_snapshot

DAY = timedelta(days=1)


def window(**values: Any) -> Window:
    return Window(**({"filter": "server", "field": "at", "start": START} | values))


def sliced(snapshot: Snapshot | None = None, **values: Any) -> NewSlice:
    given = {
        "operation": Operation.HARVEST,
        "span": (START, START + DAY),
        "slice_no": 1,
        "trigger": "schedule:2024-01-02",
        "purpose": SlicePurpose.FILL,
    } | values
    return make_slice(snapshot or make_snapshot(), given.pop("operation"), given.pop("span"), **given)


def test_a_gap_is_cut_into_windows_of_the_widest_allowed() -> None:
    windows = list(cut([(START, START + DAY * 5)], window(max_s=2 * 86400.0, precision="day")))
    assert windows == [(START, START + DAY * 2), (START + DAY * 2, START + DAY * 4), (START + DAY * 4, START + DAY * 5)]


def test_each_gap_is_cut_by_itself() -> None:
    gaps = [(START, START + DAY), (START + DAY * 3, START + DAY * 4)]
    assert list(cut(gaps, window(max_s=86400.0 * 10))) == gaps


def test_an_empty_gap_has_no_window() -> None:
    assert list(cut([(START, START)], window())) == []


def test_windows_are_cut_at_local_midnights() -> None:
    # a week around the night the clocks change in New York
    start, end = datetime(2024, 3, 8, 5, tzinfo=UTC), datetime(2024, 3, 12, 4, tzinfo=UTC)
    windows = list(cut([(start, end)], window(precision="day", zone="America/New_York", max_s=86400.0)))
    assert [(b - a) // timedelta(hours=1) for a, b in windows] == [24, 24, 23, 24]


def test_a_gap_that_begins_within_a_unit_is_cut_at_the_next_boundary() -> None:
    start = START + timedelta(hours=6)
    windows = list(cut([(start, START + DAY * 2)], window(precision="day", max_s=86400.0)))
    assert windows == [(start, START + DAY), (START + DAY, START + DAY * 2)]


def test_cutting_is_lazy() -> None:
    gap = (datetime(1800, 1, 1, tzinfo=UTC), datetime(2200, 1, 1, tzinfo=UTC))
    assert next(iter(cut([gap], window(max_s=1.0, precision="second")))) == (gap[0], gap[0] + timedelta(seconds=1))


def test_a_slice_says_what_it_asks_for() -> None:
    made = sliced()
    assert made.params == {
        "from": "2024-01-01T00:00:00.000000Z",
        "to": "2024-01-02T00:00:00.000000Z",
        "purpose": "FILL",
    }
    assert made.slice_spec["bounds"] == {"time": {"from": made.params["from"], "to": made.params["to"]}}
    assert made.expr_snapshot["window"]["from"] == "2024-01-01T00:00:00.000000Z"


def test_a_walk_has_no_window_to_ask_for() -> None:
    assert sliced(purpose=SlicePurpose.WALK).expr_snapshot["window"] is None


def test_the_same_slice_has_the_same_signature_and_key() -> None:
    assert sliced() == sliced()


@pytest.mark.parametrize(
    "other",
    [
        {"span": (START, START + DAY * 2)},
        {"operation": Operation.BACKFILL},
        {"purpose": SlicePurpose.WALK},
        {"snapshot": make_snapshot(source="other")},
        {"snapshot": make_snapshot(endpoint="other")},
    ],
)
def test_another_slice_has_another_signature(other: dict[str, Any]) -> None:
    assert sliced(**other).slice_signature_hash != sliced().slice_signature_hash


def test_another_mapping_is_another_expression() -> None:
    snapshot = make_snapshot()
    mapping = snapshot.mapping.model_copy(update={"columns": (Column(name="title", path="$.name"),)})
    changed = sliced(snapshot.model_copy(update={"mapping": mapping}))
    assert changed.expr_hash != sliced().expr_hash


def test_budget_and_priority_do_not_make_another_slice() -> None:
    rich = make_snapshot(budget=Budget(max_requests=5, max_records=6, max_duration_s=7.0, priority=1))
    assert sliced(rich).slice_signature_hash == sliced().slice_signature_hash
    assert sliced(rich).slice_spec["budget"] == {
        "maxRequests": 5,
        "maxRecords": 6,
        "maxDurationSec": 7.0,
        "priority": 1,
    }


def test_one_fire_makes_a_task_once_and_the_next_fire_makes_another() -> None:
    assert sliced(slice_no=9).idempotent_key == sliced().idempotent_key
    assert sliced(trigger="schedule:2024-01-03").idempotent_key != sliced().idempotent_key
    assert sliced(trigger="schedule:2024-01-03").slice_signature_hash == sliced().slice_signature_hash


def test_priority_is_the_files_or_the_operations() -> None:
    assert priority_of(make_snapshot(), Operation.HARVEST) == 100
    assert priority_of(make_snapshot(), Operation.BACKFILL) == 300
    assert priority_of(make_snapshot(budget=Budget(priority=7)), Operation.BACKFILL) == 7


def test_a_partition_makes_another_slice_and_travels_with_its_task() -> None:
    whole, btc, eth = sliced(), sliced(partition={"symbol": "BTC"}), sliced(partition={"symbol": "ETH"})
    assert btc.params["partition"] == {"symbol": "BTC"}
    assert "partition" not in whole.params
    assert len({it.idempotent_key for it in (whole, btc, eth)}) == 3
    assert len({it.slice_signature_hash for it in (whole, btc, eth)}) == 3
