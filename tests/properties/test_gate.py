"""The gate: whatever callers and clocks do, no sliding window is ever broken, and the next slot is always given."""

from bisect import bisect_left

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.gate import Policy, State, current_factor, reserve, throttled

NOW = 1_700_000_000.0

rate_windows = st.lists(
    st.tuples(st.integers(1, 12), st.sampled_from([0.5, 1.0, 2.0, 10.0, 60.0])), min_size=0, max_size=3
)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    windows = tuple(draw(rate_windows))
    rate = draw(st.sampled_from([0.2, 1.0, 7.0])) if not windows else draw(st.sampled_from([None, 1.0, 7.0]))
    return Policy(
        windows=windows,
        rate_per_s=rate,
        burst=draw(st.integers(1, 6)),
        demote_rate=draw(st.sampled_from([2.0, 4.0])),
        rate_min=0.1,
    )


events = st.lists(
    st.one_of(
        st.tuples(st.just("pass"), st.floats(0, 90)),
        st.tuples(st.just("pass"), st.sampled_from([0.01, 0.3, 0.6, 1.5, 4.0, 7.0, 20.0, 35.0])),
        st.tuples(st.just("back"), st.floats(0, 3600)),
        st.tuples(st.just("take"), st.integers(1, 10)),
        st.tuples(st.just("take"), st.integers(1, 10)),
        st.tuples(st.just("late"), st.integers(1, 10)),
        st.tuples(st.just("throttle"), st.none() | st.floats(0, 40)),
    ),
    max_size=60,
)


@settings(max_examples=200)
@given(policies(), events)
def test_no_window_and_no_rate_is_ever_broken(policy: Policy, story: list[tuple[str, float]]) -> None:
    """True time only moves on; the database's clock may step back. Slots are sent at once or as late as allowed."""
    state, true, behind = State(), NOW, 0.0
    sends: list[float] = []
    for kind, amount in story:
        clock = true - behind
        if kind == "pass":
            true += amount
        elif kind == "back":
            behind += amount
        elif kind == "throttle":
            before = state
            state = throttled(policy, state, clock, retry_after=amount, slot_epoch=state.epoch)
            assert state.epoch == before.epoch + 1
            assert state.factor < current_factor(before, max(clock, before.seen)) or state.factor == policy.factor_min
            assert state.cooldown >= before.cooldown
        else:
            seen = max(clock, state.seen)
            state, slots = reserve(policy, state, clock, int(amount))
            assert slots, "at least the next slot is always given"
            assert len(slots) <= int(amount)
            assert slots == sorted(slots)
            assert all(slot <= seen + policy.horizon for slot in slots[1:])
            assert all(slot >= max(seen, state.cooldown) for slot in slots)
            late = policy.grace if kind == "late" else 0.0
            # an executor waits the difference to the gate's now on its own clock
            sends += [true + (slot - seen) + late for slot in slots]
            true = max(true, sends[-1] - late)
    sends.sort()
    for limit, seconds in policy.windows:
        for number, moment in enumerate(sends):
            inside = bisect_left(sends, moment + seconds - 1e-6) - number
            assert inside <= limit, (limit, seconds, sends)
    if policy.rate_per_s:
        slack = policy.grace * policy.rate_per_s + 1e-4  # late senders may bunch by their lateness
        for number, moment in enumerate(sends):
            for count, other in enumerate(sends[number:], start=1):
                assert count <= policy.burst + policy.rate_per_s * (other - moment) + slack


@given(policies(), st.integers(1, 30), st.none() | st.floats(0, 60))
def test_one_cut_per_epoch_however_many_report_it(policy: Policy, reporters: int, wish: float | None) -> None:
    state, _ = reserve(policy, State(), NOW, 1)
    once = throttled(policy, state, NOW, retry_after=wish, slot_epoch=state.epoch)
    many = state
    for _ in range(reporters):
        many = throttled(policy, many, NOW, retry_after=wish, slot_epoch=state.epoch)
    assert many == once


@given(policies(), st.lists(st.none() | st.floats(0, 300), max_size=6))
def test_every_key_recovers_to_its_full_rate(policy: Policy, wishes: list[float | None]) -> None:
    state = State()
    for wish in wishes:
        state = throttled(policy, state, NOW, retry_after=wish, slot_epoch=None)
    assert current_factor(state, NOW + 300 + 60) == 1.0


@given(st.integers(20, 300), st.integers(1, 10), st.floats(0, 1))
@settings(max_examples=10)
def test_a_hard_limit_is_used_to_97_percent(limit: int, quantum: int, lateness: float) -> None:
    """I4, for callers that take any number at a time and come back up to a hundredth of the window late."""
    policy, state, now, sent = Policy(windows=((limit, 60.0),)), State(), NOW, 0
    while now < NOW + 600:
        state, slots = reserve(policy, state, now, quantum)
        sent += len(slots)
        now = max(now, slots[-1]) + lateness * 0.001
    assert sent >= 0.97 * limit * 10
