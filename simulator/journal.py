"""Journal: every request that arrived, so that a test can count at the server what a client did.

Times of arrival are kept for all requests; the rest is kept for the last thousand per API. Secrets are
never kept: a credential is written as a short hash, enough to see which one was sent.
"""

import re
import time
from array import array
from bisect import bisect_right
from collections import Counter, deque
from dataclasses import dataclass, field
from hashlib import sha256
from threading import Lock
from typing import Any

from simulator.answers import Answer, Request

KEPT = 1000
_SECRET_HEADERS = {
    "authorization", "proxy-authorization", "cookie", "x-api-key", "crossref-plus-api-token", "x-shopify-access-token",
}  # fmt: skip
_SECRET_PARAMS = re.compile(r"(?<=[?&])((?:api_key|apikey|token|access_token|key)=)([^&]+)")


@dataclass(slots=True)
class Entry:
    """One request, from its arrival to its last byte."""

    api: str
    monotonic: float
    wall: float
    method: str
    target: str
    headers: dict[str, str]
    early: bool
    status: int | None = None
    fault: str | None = None
    bytes_sent: int = 0
    seconds: float | None = None


@dataclass(slots=True)
class _Log:
    monotonic: "array[float]" = field(default_factory=lambda: array("d"))
    wall: "array[float]" = field(default_factory=lambda: array("d"))
    statuses: Counter[int] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    last: deque[Entry] = field(default_factory=lambda: deque(maxlen=KEPT))
    in_flight: int = 0
    in_flight_max: int = 0
    early: int = 0
    bytes_sent: int = 0
    silences: list[tuple[float, float]] = field(default_factory=list)


class Journal:
    def __init__(self) -> None:
        self._lock = Lock()
        self._logs: dict[str, _Log] = {}

    def arrive(self, api: str, request: Request, monotonic: float) -> Entry:
        """Write down an arrival. It is early if the API had asked for silence by Retry-After."""
        headers = {name: _redact(name, value) for name, value in request.headers.items()}
        target = _SECRET_PARAMS.sub(lambda match: match[1] + _hash(match[2]), request.target)
        wall = time.time() - (time.monotonic() - monotonic)
        with self._lock:
            log = self._logs.setdefault(api, _Log())
            early = any(start <= monotonic < end for start, end in log.silences[-100:])
            entry = Entry(api, monotonic, wall, request.method, target, headers, early)
            log.monotonic.append(monotonic)
            log.wall.append(wall)
            log.early += early
            log.in_flight += 1
            log.in_flight_max = max(log.in_flight_max, log.in_flight)
            log.last.append(entry)
            return entry

    def decide(self, entry: Entry, answer: Answer, fault: str | None) -> None:
        """Write down what the answer is, before the first byte of it leaves."""
        with self._lock:
            log = self._logs.setdefault(entry.api, _Log())
            entry.status, entry.fault = answer.status, fault
            log.statuses[answer.status] += 1
            if fault is not None:
                log.faults[fault] += 1
            for name, value in answer.headers:
                if name == "Retry-After" and value.replace(".", "", 1).isdigit():
                    now = time.monotonic()
                    log.silences.append((now, now + float(value)))

    def finish(self, entry: Entry, bytes_sent: int) -> None:
        with self._lock:
            log = self._logs.setdefault(entry.api, _Log())
            log.in_flight = max(0, log.in_flight - 1)
            log.bytes_sent += bytes_sent
            entry.bytes_sent = bytes_sent
            entry.seconds = time.monotonic() - entry.monotonic

    def clear(self) -> None:
        with self._lock:
            self._logs.clear()

    def summarize(self, api: str, *, last: int = 20, arrivals: bool = True) -> dict[str, Any]:
        """Say how many requests came to `api`, when, and what became of them.

        `silences` are the times from each Retry-After sent to its end; `early` counts arrivals in them.
        """
        with self._lock:
            log = self._logs.get(api, _Log())
            summary: dict[str, Any] = {
                "count": len(log.monotonic),
                "statuses": {str(status): count for status, count in sorted(log.statuses.items())},
                "faults": dict(sorted(log.faults.items())),
                "early": log.early,
                "in_flight": log.in_flight,
                "in_flight_max": log.in_flight_max,
                "bytes_sent": log.bytes_sent,
                "last": [_describe(entry) for entry in list(log.last)[-last:]] if last else [],
            }
            if arrivals:
                order = sorted(range(len(log.monotonic)), key=log.monotonic.__getitem__)
                summary["silences"] = [list(silence) for silence in log.silences]
                summary["arrivals"] = {
                    "monotonic": [log.monotonic[n] for n in order],
                    "wall": [log.wall[n] for n in order],
                }
            return summary

    def count_worst_window(self, api: str, window_s: float) -> int:
        """Return the largest number of arrivals in any `window_s` seconds, answered or refused."""
        with self._lock:
            times = sorted(self._logs[api].monotonic) if api in self._logs else []
        # Half-open: two arrivals exactly window_s apart are not in one window.
        return max((n + 1 - bisect_right(times, at - window_s) for n, at in enumerate(times)), default=0)


def _describe(entry: Entry) -> dict[str, Any]:
    return {
        "monotonic": entry.monotonic,
        "wall": entry.wall,
        "method": entry.method,
        "target": entry.target,
        "headers": entry.headers,
        "status": entry.status,
        "fault": entry.fault,
        "early": entry.early,
        "bytes_sent": entry.bytes_sent,
        "seconds": entry.seconds,
    }


def _redact(name: str, value: str) -> str:
    return _hash(value) if name.lower() in _SECRET_HEADERS else value


def _hash(secret: str) -> str:
    return f"redacted-{sha256(secret.encode()).hexdigest()[:12]}"
