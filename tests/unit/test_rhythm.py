"""Rhythm: fires lie on a grid nothing moves; what was missed is skipped, made up once, or made up whole (G1, G2)."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.rhythm import NEVER, Rhythm, check_cron, check_quiet, decide, jitter_of, list_next, next_fire, quiet_hours

PLANNED = datetime(2024, 1, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)
HOURLY = Rhythm(kind="every", every_s=3600.0)


def _every(seconds: float, on_missed: str = "skip") -> Rhythm:
    return Rhythm(kind="every", every_s=seconds, on_missed=on_missed)


def _cron(expression: str, zone: str = "UTC", on_missed: str = "skip") -> Rhythm:
    return Rhythm(kind="cron", cron=expression, zone=zone, on_missed=on_missed)


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
    assert next_fire(HOURLY, PLANNED, PLANNED + late) == PLANNED + HOUR * fires


def test_a_fire_noticed_late_does_not_move_the_grid() -> None:
    moment = PLANNED
    for number in range(1, 200):
        moment = next_fire(HOURLY, moment, moment + timedelta(seconds=number % 60, milliseconds=317))
    assert moment == PLANNED + HOUR * 199


def test_a_fire_noticed_early_is_still_followed_by_the_next() -> None:
    assert next_fire(HOURLY, PLANNED, PLANNED - timedelta(minutes=5)) == PLANNED + HOUR


def test_intervals_of_a_fraction_keep_their_grid() -> None:
    assert next_fire(_every(0.5), PLANNED, PLANNED + timedelta(seconds=10.2)) == PLANNED + timedelta(seconds=10.5)


def test_a_once_within_its_grace_fires_and_never_again() -> None:
    decision = decide(Rhythm(kind="once"), PLANNED, PLANNED + timedelta(seconds=60))
    assert (decision.fires, decision.missed, decision.following) == ((PLANNED,), None, NEVER)


def test_a_once_noticed_too_late_is_missed_and_says_by_how_much() -> None:
    decision = decide(Rhythm(kind="once"), PLANNED, PLANNED + timedelta(seconds=61))
    assert decision.fires == ()
    assert decision.missed == "missed: due at 2024-01-01T12:00:00+00:00, noticed 61 s later"


def test_an_outage_is_skipped_made_up_once_or_made_up_whole() -> None:
    now = PLANNED + HOUR * 3 + timedelta(minutes=30)
    skip, one, whole = (decide(_every(3600.0, how), PLANNED, now) for how in ("skip", "one", "all"))
    assert skip.fires == ()
    assert skip.missed is not None
    assert one.fires == (PLANNED + HOUR * 3,)
    assert whole.fires == tuple(PLANNED + HOUR * n for n in range(4))
    assert skip.following == one.following == whole.following == PLANNED + HOUR * 4


def test_after_an_outage_a_fire_that_is_on_time_takes_place_although_others_were_missed() -> None:
    decision = decide(HOURLY, PLANNED, PLANNED + HOUR * 2 + timedelta(seconds=5))
    assert decision.fires == (PLANNED + HOUR * 2,)
    assert decision.missed is not None


def test_making_up_a_year_is_bounded() -> None:
    assert len(decide(_every(60.0, "all"), PLANNED, PLANNED + timedelta(days=365)).fires) == 100
    assert len(decide(_cron("* * * * *", on_missed="all"), PLANNED, PLANNED + timedelta(days=365)).fires) == 100


@given(
    st.floats(60, 604_800),
    st.floats(0, 5e6),
    st.sampled_from(["skip", "one", "all"]),
)
def test_whatever_the_delay_fires_and_the_next_are_on_the_grid(every: float, late: float, how: str) -> None:
    rhythm, now = _every(round(every), how), PLANNED + timedelta(seconds=late)
    decision = decide(rhythm, PLANNED, now)
    for moment in (*decision.fires, decision.following):
        assert (moment - PLANNED) % timedelta(seconds=round(every)) == timedelta()
    assert all(PLANNED <= moment <= now for moment in decision.fires)
    assert list(decision.fires) == sorted(set(decision.fires))
    assert now < decision.following <= now + timedelta(seconds=round(every))


def test_cron_fires_at_its_moments_in_its_zone() -> None:
    rhythm = _cron("30 2 * * *", "Asia/Shanghai")
    first = next_fire(rhythm, PLANNED, PLANNED)
    assert first == datetime(2024, 1, 1, 18, 30, tzinfo=UTC)
    decision = decide(rhythm, first, first + timedelta(seconds=3))
    assert (decision.fires, decision.following) == ((first,), first + timedelta(days=1))
    assert decide(rhythm, first, first).fires == (first,)


def test_a_nightly_cron_fires_once_on_both_nights_of_a_clock_change() -> None:
    rhythm = _cron("30 2 * * *", "Europe/Berlin")
    zone = ZoneInfo("Europe/Berlin")
    for before in (datetime(2024, 3, 30, 12, tzinfo=zone), datetime(2024, 10, 26, 12, tzinfo=zone)):
        start = before.astimezone(UTC)
        days = [at.astimezone(zone).date() for at in list_next(rhythm, next_fire(rhythm, start, start), 3)]
        assert days == [before.date() + timedelta(days=n) for n in (1, 2, 3)]


def test_an_hourly_cron_fires_every_hour_of_a_night_that_has_one_twice() -> None:
    rhythm = _cron("0 * * * *", "Europe/Berlin")
    start = datetime(2024, 10, 26, 22, 30, tzinfo=UTC)
    fires = list_next(rhythm, next_fire(rhythm, start, start), 6)
    assert {later - earlier for earlier, later in pairwise(fires)} == {HOUR}


@pytest.mark.parametrize("expression", ["61 * * * *", "* * *", "", "a b c d e", "0 0 30 2 *"])
def test_what_is_no_cron_expression_is_refused(expression: str) -> None:
    with pytest.raises(ValueError, match="is not a cron expression"):
        check_cron(expression)


def test_jitter_is_the_same_for_every_planner_within_its_bound_and_not_all_alike() -> None:
    delays = {jitter_of(f"s{n}.e", PLANNED, 30.0) for n in range(50)}
    assert jitter_of("a.b", PLANNED, 30.0) == jitter_of("a.b", PLANNED, 30.0)
    assert all(0 <= delay <= 30 for delay in delays)
    assert len(delays) > 40
    assert jitter_of("a.b", PLANNED, 0.0) == 0


@pytest.mark.parametrize(
    ("hour", "quiet"), [(21, None), (22, "22:00-06:00"), (23, "22:00-06:00"), (5, "22:00-06:00"), (6, None)]
)
def test_quiet_hours_may_pass_midnight(hour: int, quiet: str | None) -> None:
    rhythm = Rhythm(kind="every", every_s=60, quiet=("22:00-06:00",))
    assert quiet_hours(rhythm, PLANNED.replace(hour=hour)) == quiet


@pytest.mark.parametrize("stretch", ["22-6", "25:00-06:00", "06:00-06:00", "06:00"])
def test_what_is_no_stretch_of_hours_is_refused(stretch: str) -> None:
    with pytest.raises(ValueError, match="is not a stretch of hours"):
        check_quiet(stretch)
