"""Limits: sliding windows that a vendor enforces.

A request is let in if, for every window of its API, fewer than `limit` requests were let in during the
last `window_s` seconds. Refused requests are counted as violations and take no place.
"""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from simulator.answers import Allowance


@dataclass(slots=True)
class _Window:
    limit: int
    window_s: float
    admitted: deque[float] = field(default_factory=deque)

    def free_place(self, now: float) -> float:
        """Return how long until there is a place; 0 if there is one."""
        while self.admitted and self.admitted[0] <= now - self.window_s:
            self.admitted.popleft()
        if len(self.admitted) < self.limit:
            return 0.0
        if not self.admitted:  # a limit of 0 lets nobody in
            return self.window_s
        return self.admitted[len(self.admitted) - self.limit] + self.window_s - now


class Limits:
    def __init__(self) -> None:
        self._lock = Lock()
        self._windows: dict[str, list[_Window]] = {}
        self._violations: dict[str, int] = {}

    def set(self, api: str, windows: Sequence[tuple[int, float]]) -> None:
        """Replace the windows of `api`, each (limit, seconds), and forget its violations; [] lifts it."""
        if any(limit < 0 or window_s <= 0 for limit, window_s in windows):
            raise ValueError("a limit is a count from 0 in a window longer than 0 seconds")
        with self._lock:
            self._windows[api] = [_Window(limit, window_s) for limit, window_s in windows]
            self._violations[api] = 0

    def clear(self) -> None:
        with self._lock:
            self._windows.clear()
            self._violations.clear()

    def admit(self, api: str, now: float) -> Allowance | None:
        """Let a request in, or say how long it should have waited; None where there is no limit.

        `now` is monotonic. Arrivals may be handed in slightly out of order by threads; that shifts a
        place by as much and no more.
        """
        with self._lock:
            windows = self._windows.get(api)
            if not windows:
                return None
            waits = [window.free_place(now) for window in windows]
            wait_s = max(waits)
            if wait_s > 0:
                self._violations[api] += 1
            else:
                for window in windows:
                    window.admitted.append(now)
            tight = windows[waits.index(wait_s)]
            oldest = tight.admitted[0] if tight.admitted else now
            return Allowance(
                limit=tight.limit,
                window_s=tight.window_s,
                remaining=max(0, tight.limit - len(tight.admitted)),
                wait_s=wait_s,
                reset_at=time.time() + oldest + tight.window_s - now,
            )

    def count_violations(self, api: str) -> int:
        with self._lock:
            return self._violations.get(api, 0)

    def list_windows(self, api: str) -> list[dict[str, float]]:
        with self._lock:
            return [{"limit": w.limit, "window_s": w.window_s} for w in self._windows.get(api, [])]
