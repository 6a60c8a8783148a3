"""The gatekeeper: this process' side of the shared rate gate (C1, DESIGN §8).

Slots are reserved in the database and used by our monotonic clock alone: m0 and m1 around the reserve call bound what
the database's "now" was, so a slot is sent not before m1 + wait and not after m0 + wait + grace; later it is burnt.
Knowledge of a key older than 100 ms is refreshed before a send, so nothing starts more than 100 ms after a cooldown
was stored, whichever process was told.
"""

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from ingest.db import Database
from ingest.errors import Deferred
from ingest.gate import Policy
from ingest.spec.snapshot import Rate, Snapshot
from ingest.store import gates

_PATIENCE_SECONDS = 3.0  # a longer wait gives the task back, so a slow source never holds threads
_FRESH_SECONDS = 0.1
_MOST_SLOTS = 10  # prefetch and fair quantum in one


@dataclass(frozen=True, slots=True)
class Slot:
    """A promise to send between two moments of our monotonic clock."""

    not_before: float
    not_after: float
    epoch: int


@dataclass(slots=True)
class Permit:
    """Leave to send one request, and what getting it cost."""

    epoch: int
    waited_s: float


@dataclass(slots=True)
class _Key:
    lock: threading.Lock = field(default_factory=threading.Lock)
    slots: deque[Slot] = field(default_factory=deque)
    epoch: int = 0
    known_at: float = float("-inf")
    waiting: int = 0
    used: deque[float] = field(default_factory=deque)  # recent sends of this process: how much to prefetch


def rate_key(snapshot: Snapshot) -> str:
    """Return the key requests are counted under: the endpoint's, or one shared by the whole source."""
    parts = [snapshot.provenance_code]
    if snapshot.rate.share == "endpoint":
        parts.append(snapshot.endpoint_name)
    if snapshot.auth.credential_code:
        parts.append(f"@{snapshot.auth.credential_code}")
    return "/".join(parts)


def rate_policy(rate: Rate) -> Policy:
    """Return the arithmetic's policy for what the spec declares."""
    return Policy(
        windows=tuple((window.limit, window.seconds) for window in rate.windows),
        rate_per_s=rate.rate_per_s,
        burst=rate.burst,
        demote_rate=rate.demote_rate,
        rate_min=rate.rate_min,
    )


class Gatekeeper:
    """Every request of this process asks here first."""

    def __init__(self, database: Database, wait: Callable[[float], bool]) -> None:
        """`wait(seconds)` sleeps and returns True if the process was told to stop meanwhile."""
        self._database = database
        self._wait = wait
        self._keys: dict[str, _Key] = {}
        self._lock = threading.Lock()

    def acquire(self, key: str, policy: Policy) -> Permit:
        """Wait for leave to send one request now; raise `Deferred` if that would take too long."""
        started = time.monotonic()
        state = self._key(key)
        with state.lock:
            state.waiting += 1
        try:
            while True:
                slot = self._take(key, state, policy)
                pause = slot.not_before - time.monotonic()
                if pause > 0 and self._wait(pause):
                    raise Deferred("stopping", wait_seconds=0.0)
                if time.monotonic() > slot.not_after:
                    continue  # we overslept: burnt, for sending late would bunch
                if self._is_void(key, state, slot):
                    continue
                with state.lock:
                    state.used.append(time.monotonic())
                return Permit(slot.epoch, time.monotonic() - started)
        finally:
            with state.lock:
                state.waiting -= 1

    def report_throttle(self, key: str, policy: Policy, permit: Permit, retry_after: float | None) -> None:
        """Tell every process that the source asked for a pause, or for less."""
        with self._database.transaction() as conn:
            after = gates.report_throttle(conn, key, policy, retry_after=retry_after, slot_epoch=permit.epoch)
        state = self._key(key)
        with state.lock:
            state.epoch, state.known_at = after.epoch, time.monotonic()
            state.slots.clear()

    def _key(self, key: str) -> _Key:
        with self._lock:
            return self._keys.setdefault(key, _Key())

    def _take(self, key: str, state: _Key, policy: Policy) -> Slot:
        with state.lock:
            now = time.monotonic()
            while state.slots:
                slot = state.slots.popleft()
                if slot.not_after >= now and slot.epoch == state.epoch:
                    return slot
            while state.used and state.used[0] < now - policy.horizon:
                state.used.popleft()
            wanted = min(_MOST_SLOTS, max(state.waiting, len(state.used), 1))
            self._reserve(key, state, policy, wanted)
            return state.slots.popleft()

    def _reserve(self, key: str, state: _Key, policy: Policy, count: int) -> None:
        before = time.monotonic()
        with self._database.transaction() as conn:
            waits, epoch, _ = gates.reserve_slots(conn, key, policy, count=count, patience=_PATIENCE_SECONDS)
        after = time.monotonic()
        state.epoch, state.known_at = epoch, after
        if waits[0] > _PATIENCE_SECONDS:
            raise Deferred(f"the gate opens for {key} in {waits[0]:.1f} s", wait_seconds=waits[0])
        state.slots.extend(Slot(after + wait, before + wait + policy.grace, epoch) for wait in waits)

    def _is_void(self, key: str, state: _Key, slot: Slot) -> bool:
        with state.lock:
            if time.monotonic() - state.known_at > _FRESH_SECONDS:
                with self._database.transaction() as conn:
                    state.epoch = gates.read_epoch(conn, key)
                state.known_at = time.monotonic()
            return slot.epoch != state.epoch
