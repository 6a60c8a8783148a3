"""Firing: on the grid, after now, no fire made up."""

from datetime import UTC, datetime, timedelta

import pytest

from planner.firing import missed_once, next_fire

PLANNED = datetime(2024, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


@pytest.mark.parametrize(
    ("late", "fires"),
    [
        (timedelta(), 1),
        (timedelta(seconds=7), 1),
        (HOUR - timedelta(microseconds=1), 1),
        (HOUR, 2),
        (HOUR * 5 + timedelta(minutes=59), 6),
        (timedelta(days=365), 365 * 24 + 1),
    ],
)
def test_the_next_fire_is_the_first_of_the_grid_after_now(late: timedelta, fires: int) -> None:
    assert next_fire(PLANNED, 3600.0, PLANNED + late) == PLANNED + HOUR * fires


def test_a_fire_noticed_late_does_not_move_the_grid() -> None:
    moment = PLANNED
    for number in range(1, 200):
        moment = next_fire(moment, 3600.0, moment + timedelta(seconds=number % 60, milliseconds=317))
    assert moment == PLANNED + HOUR * 199


def test_a_fire_noticed_early_is_still_followed_by_the_next() -> None:
    assert next_fire(PLANNED, 3600.0, PLANNED - timedelta(minutes=5)) == PLANNED + HOUR


def test_intervals_of_a_fraction_keep_their_grid() -> None:
    assert next_fire(PLANNED, 0.5, PLANNED + timedelta(seconds=10.2)) == PLANNED + timedelta(seconds=10.5)


def test_a_once_within_its_grace_fires() -> None:
    assert missed_once(PLANNED, PLANNED - HOUR) is None
    assert missed_once(PLANNED, PLANNED + timedelta(seconds=60)) is None


def test_a_once_noticed_too_late_is_missed_and_says_by_how_much() -> None:
    reason = missed_once(PLANNED, PLANNED + timedelta(seconds=61))
    assert reason == "missed: due at 2024-01-01T12:00:00+00:00, noticed 61 s later"
