"""The gate's arithmetic: slots are promises, windows are never broken, cuts come once."""

from dataclasses import replace

import pytest

from ingest.gate import Policy, State, current_factor, reserve, throttled

MINUTE = Policy(windows=((200, 60.0),))
STEADY = Policy(rate_per_s=1.0)
NOW = 1_700_000_000.0


def take(policy: Policy, state: State, now: float, count: int = 1) -> tuple[State, list[float]]:
    after, slots = reserve(policy, state, now, count)
    return after, [round(slot - NOW, 6) for slot in slots]


def test_the_first_slot_is_now() -> None:
    assert take(MINUTE, State(), NOW)[1] == [0.0]
    assert take(STEADY, State(), NOW)[1] == [0.0]


def test_a_steady_rate_is_spaced() -> None:
    state = State()
    found = []
    for _ in range(4):
        state, slots = take(STEADY, state, NOW)
        found += slots
    assert found == [0.0, 1.0, 2.0, 3.0]


def test_a_bucket_starts_full_and_fills_again() -> None:
    policy = Policy(rate_per_s=2.0, burst=3)
    state, slots = take(policy, State(), NOW, 5)
    assert slots == [0.0, 0.0, 0.0, 0.5, 1.0]
    _, slots = take(policy, state, NOW + 60, 4)
    assert slots == [60.0, 60.0, 60.0, 60.5]


def test_a_window_lets_its_limit_through_and_then_waits_for_its_end() -> None:
    policy = Policy(windows=((3, 10.0),))
    state, slots = take(policy, State(), NOW, 3)
    assert slots == [0.0, 0.0, 0.0]
    _, slots = take(policy, state, NOW + 1)
    assert slots == [10.0 + policy.grace]


def test_of_several_windows_each_is_kept() -> None:
    policy = Policy(windows=((2, 1.0), (3, 60.0)))
    state, slots = take(policy, State(), NOW, 2)
    assert slots == [0.0, 0.0]
    state, slots = take(policy, state, NOW)
    assert slots == [1.0 + policy.grace]
    _, slots = take(policy, state, NOW + 2)
    assert slots == [60.0 + policy.grace]


def test_what_was_sent_early_in_a_window_counts_until_its_end() -> None:
    policy = Policy(windows=((4, 60.0),))
    state, _ = take(policy, State(), NOW, 3)
    state, slots = take(policy, state, NOW + 59)
    assert slots == [59.0]
    assert take(policy, state, NOW + 59)[1] == [60.0 + policy.grace]


def test_slots_reach_no_further_than_the_horizon_but_the_next_is_always_given() -> None:
    state, slots = take(STEADY, State(), NOW, 10)
    assert slots == [0.0, 1.0]
    _, slots = take(STEADY, state, NOW, 10)
    assert slots == [2.0]


def test_slots_are_handed_out_in_the_order_of_time() -> None:
    policy = Policy(windows=((2, 10.0),), rate_per_s=5.0, burst=5)
    state, found = State(), list[float]()
    for _ in range(8):
        state, slots = take(policy, state, NOW, 3)
        found += slots
    assert found == sorted(found)


def test_a_clock_that_steps_back_grants_nothing() -> None:
    policy = Policy(windows=((3, 10.0),))
    state, _ = take(policy, State(), NOW, 3)
    state, slots = take(policy, state, NOW - 3600)
    assert slots == [10.0 + policy.grace]
    assert state.seen == NOW


def test_a_cooldown_holds_for_everyone() -> None:
    state = throttled(STEADY, State(), NOW, retry_after=30.0, slot_epoch=0)
    assert take(STEADY, state, NOW + 1)[1] == [30.0]


def test_the_later_of_two_cooldowns_holds() -> None:
    state = throttled(STEADY, State(), NOW, retry_after=30.0, slot_epoch=0)
    shorter = throttled(STEADY, state, NOW + 1, retry_after=1.0, slot_epoch=0)
    assert shorter is state
    longer = throttled(STEADY, state, NOW + 1, retry_after=60.0, slot_epoch=0)
    assert longer.cooldown == NOW + 61


def test_a_cooldown_is_not_shortened_by_a_clock_that_steps_back() -> None:
    state, _ = take(STEADY, State(), NOW)
    state = throttled(STEADY, state, NOW - 3600, retry_after=30.0, slot_epoch=0)
    assert take(STEADY, state, NOW - 3590)[1] == [30.0]


def test_ten_threads_with_one_429_cut_once() -> None:
    state = State(epoch=4)
    for _ in range(10):
        state = throttled(STEADY, state, NOW, retry_after=None, slot_epoch=4)
    assert state.factor == 0.5
    assert state.epoch == 5


def test_the_next_429_cuts_again() -> None:
    state = throttled(STEADY, State(), NOW, retry_after=None, slot_epoch=0)
    state = throttled(STEADY, state, NOW, retry_after=None, slot_epoch=1)
    assert state.factor == 0.25


def test_a_stale_report_with_a_longer_cooldown_voids_slots_and_cuts_nothing() -> None:
    state = throttled(STEADY, State(), NOW, retry_after=1.0, slot_epoch=0)
    longer = throttled(STEADY, state, NOW, retry_after=9.0, slot_epoch=0)
    assert (longer.epoch, longer.factor) == (state.epoch + 1, state.factor)


def test_no_cut_goes_below_the_floor() -> None:
    policy = Policy(rate_per_s=1.0, rate_min=0.1, demote_rate=4.0)
    state = State()
    for epoch in range(10):
        state = throttled(policy, state, NOW, retry_after=None, slot_epoch=epoch)
    assert state.factor == 0.1
    _, slots = take(policy, replace(state, sent=(NOW,), next_at=NOW + 10.0), NOW)
    assert slots == [10.0]


def test_a_cut_rate_recovers_after_the_cooldown() -> None:
    state = throttled(STEADY, State(), NOW, retry_after=10.0, slot_epoch=0)
    assert current_factor(state, NOW + 10) == 0.5
    assert 0.5 < current_factor(state, NOW + 20) < 1.0
    assert current_factor(state, NOW + 60) == 1.0


def test_a_cut_applies_to_windows_too() -> None:
    policy = Policy(windows=((10, 10.0),))
    state = throttled(policy, State(), NOW, retry_after=None, slot_epoch=0)
    slots = take(policy, state, NOW, 10)[1]
    assert len(slots) == 5


def test_a_cut_sets_no_burst_free() -> None:
    """Ten were sent at once, the source said 429: the next one waits a step of the cut rate, not five at once."""
    policy = Policy(rate_per_s=1.0, burst=10)
    state, slots = take(policy, State(), NOW, 10)
    assert slots == [0.0] * 10
    state = throttled(policy, state, NOW, retry_after=None, slot_epoch=0)
    found = []
    for _ in range(3):
        state, slots = take(policy, state, NOW)
        found += slots
    assert found == [1.0, 3.0, 5.0]


def test_a_429_spends_what_is_left_of_the_burst() -> None:
    policy = Policy(rate_per_s=1.0, burst=10)
    state, _ = take(policy, State(), NOW, 2)
    state = throttled(policy, state, NOW, retry_after=5.0, slot_epoch=0)
    assert take(policy, state, NOW + 5, 10)[1] == [5.0]


def test_recovery_does_not_hold_back_what_a_cut_had_allowed() -> None:
    policy = Policy(rate_per_s=1.0, burst=100)
    state = throttled(policy, State(), NOW, retry_after=None, slot_epoch=0)
    for second in (0, 10, 20, 40):
        assert take(policy, state, NOW + second)[1] == [second]


def test_what_has_left_every_window_is_forgotten() -> None:
    state = State()
    for second in range(0, 3000, 3):
        state, _ = take(MINUTE, state, NOW + second)
    assert len(state.sent) <= 22


@pytest.mark.parametrize(("seconds", "grace"), [(60.0, 0.6), (1.0, 0.1), (3600.0, 1.0)])
def test_a_slot_may_be_used_about_a_hundredth_of_its_window_late(seconds: float, grace: float) -> None:
    assert Policy(windows=((5, seconds),)).grace == pytest.approx(grace)


def test_a_hard_limit_is_used_to_97_percent() -> None:
    """I4: 200 calls a minute, one at a time, for twenty simulated minutes."""
    state, now, sent = State(), NOW, 0
    while now < NOW + 1200:
        state, slots = reserve(MINUTE, state, now, 10)
        sent += len(slots)
        now = max(now, slots[-1])
    assert 0.97 * 200 * 20 <= sent <= 200 * 20 + 200
