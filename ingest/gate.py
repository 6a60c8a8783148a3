"""The gate's arithmetic: pure functions over one key's state; times are seconds of the database's clock (DESIGN §8).

A reservation, not a race: `reserve` hands out times to send at. A slot is a promise to send in [at, at + grace] and is
charged at its end, so that late senders cannot bunch into one window. Each slot carries the key's epoch; a cooldown or
a cut raises it and voids what was not sent yet. `ingest.store.gates` keeps the state, `executor.gatekeeper` uses it.
"""

from dataclasses import dataclass, replace

_RECOVERY_PER_SECOND = 0.02  # additive increase: from half rate back to full in 25 s


@dataclass(frozen=True, slots=True)
class Policy:
    """What a key allows: a rate with a burst and/or exact sliding windows."""

    windows: tuple[tuple[int, float], ...] = ()  # (limit, seconds)
    rate_per_s: float | None = None
    burst: int = 1
    demote_rate: float = 2.0
    rate_min: float = 0.1
    horizon: float = 1.0  # never hand out a slot further ahead than this, but always the next one

    @property
    def grace(self) -> float:
        """How late a slot may still be used: about 1 % of the shortest window, network and database included."""
        if not self.windows:
            return 0.25  # spacing alone is not exact about bunching; be patient with a busy machine
        return max(0.1, min(1.0, min(seconds for _, seconds in self.windows) * 0.01))

    @property
    def tolerance(self) -> float:
        """How far ahead of its step a request may be: the burst at the full rate.

        Never at a cut rate: the tolerance would grow with the step, and a 429 would set requests free.
        """
        return (self.burst - 1) / self.rate_per_s if self.rate_per_s else 0.0

    @property
    def factor_min(self) -> float:
        """The smallest share of the configured rate: r_min, but never zero."""
        return min(1.0, self.rate_min / self.rate_per_s) if self.rate_per_s else 0.05


@dataclass(frozen=True, slots=True)
class State:
    """What has been handed out on a key."""

    sent: tuple[float, ...] = ()  # slot times, ascending; charged at time + grace
    next_at: float = 0.0  # GCRA's theoretical arrival time
    factor: float = 1.0  # AIMD: 1.0 is the full configured rate
    factor_at: float = 0.0
    cooldown: float = 0.0
    epoch: int = 0
    seen: float = 0.0  # highest clock seen: a clock stepping back grants nothing


def current_factor(state: State, now: float) -> float:
    """Return the share of the rate in force: it recovers with time after a cut, once the cooldown is over."""
    since = max(0.0, now - max(state.factor_at, state.cooldown))
    return min(1.0, state.factor + since * _RECOVERY_PER_SECOND)


def _earliest(policy: Policy, sent: list[float], moment: float, factor: float) -> float:
    """Return the first moment at or after `moment` at which one more slot keeps every window."""
    for limit, seconds in policy.windows:
        allowed = max(1, int(limit * factor))
        if len(sent) >= allowed:
            # the allowed-th newest slot, charged at its end, must have left the window
            moment = max(moment, sent[-allowed] + policy.grace + seconds)
    return moment


def reserve(policy: Policy, state: State, now: float, count: int) -> tuple[State, list[float]]:
    """Hand out up to `count` slots, fewer when the horizon is reached, at least the next one."""
    now = max(now, state.seen)
    factor = current_factor(state, now)
    sent, next_at = list(state.sent), state.next_at
    slots: list[float] = []
    step = 1.0 / (policy.rate_per_s * factor) if policy.rate_per_s else 0.0
    for _ in range(max(1, count)):
        moment = max(now, state.cooldown, sent[-1] if sent else 0.0)  # hand-out order is time order
        if policy.rate_per_s:
            moment = max(moment, next_at - policy.tolerance)
        moment = _earliest(policy, sent, moment, factor)
        if slots and moment > now + policy.horizon:
            break
        if policy.rate_per_s:
            next_at = max(next_at, moment) + step
        sent.append(moment)
        slots.append(moment)
    longest = max((seconds for _, seconds in policy.windows), default=0.0)
    keep = now - longest - policy.grace
    kept = tuple(moment for moment in sent if moment > keep) or tuple(sent[-1:])
    return replace(state, sent=kept, next_at=next_at, seen=now), slots


def throttled(policy: Policy, state: State, now: float, *, retry_after: float | None, slot_epoch: int | None) -> State:
    """Note a throttle: the later of the two cooldowns holds, unsent slots are void, and the rate is cut once.

    Ten threads that were sent under one epoch and all report the same 429 cut once: the first raises the epoch.
    """
    now = max(now, state.seen)  # or a clock that stepped back would end the cooldown before it began
    until = max(state.cooldown, now + retry_after) if retry_after else state.cooldown
    stale = slot_epoch is not None and slot_epoch < state.epoch
    if stale and until <= state.cooldown:
        return state
    factor = current_factor(state, now)
    cut = factor if stale else max(policy.factor_min, factor / policy.demote_rate)
    next_at = max(state.next_at, max(now, until) + policy.tolerance)  # the burst is spent: one now, the rest in step
    return replace(state, cooldown=until, factor=cut, factor_at=now, epoch=state.epoch + 1, next_at=next_at, seen=now)
