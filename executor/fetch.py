"""Fetching: one page's request through the gate, sent, judged, and retried while that makes sense (B12, C1, E6).

Every attempt passes the gate. Short waits happen here; a wait longer than a few seconds becomes `Deferred`, which
gives the task back. What an answer means is said by the first response rule that fits (`executor.rules`), else by its
status, in one place: `judge`.
"""

import email.utils
import hashlib
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC
from typing import Any

from tenacity import RetryCallState, Retrying, retry_if_exception_type, stop_after_attempt

from executor.auth import authenticate
from executor.backoff import delay_after
from executor.gatekeeper import Gatekeeper, Permit, rate_key, rate_policy
from executor.request import Request
from executor.rules import Rules, Verdict
from executor.secrets import REDACTOR
from executor.transport import Answer, Transport
from ingest.errors import CredentialRefused, Deferred, LeaseLost, Refused, Retryable, Throttled
from ingest.logs import get_log
from ingest.spec.snapshot import Retry, Snapshot

_log = get_log("executor")
_LONGEST_RETRY_AFTER = 86400.0
_HINTS = ("retry-after", "x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset", "ratelimit", "etag", "date")


@dataclass(slots=True)
class Tally:
    """What getting one page cost, failed attempts included."""

    attempts: int = 0
    throttles: int = 0
    waited_s: float = 0.0
    latency_s: float = 0.0
    statuses: list[int] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)  # of every attempt a response rule fitted
    verdict: Verdict | None = None  # of the answer itself

    def stats(self) -> dict[str, Any]:
        """Return the ledger's names for it (S2 §14.3.2)."""
        counts = {
            "latencyMs": round(self.latency_s * 1000),
            "waitMs": round(self.waited_s * 1000),
            "retryCount": max(0, self.attempts - 1),
            "429Count": self.throttles,
        }
        if self.verdicts:
            ignored = sum(verdict.then == "empty" for verdict in self.verdicts)
            return counts | {"ignored": ignored, "rules": [str(verdict) for verdict in self.verdicts]}
        return counts


class Fetcher:
    """Gets pages of one snapshot."""

    def __init__(
        self, snapshot: Snapshot, transport: Transport, gate: Gatekeeper, wait: Callable[[float], bool]
    ) -> None:
        self._snapshot = snapshot
        self._transport = transport
        self._gate = gate
        self._wait = wait
        self._key = rate_key(snapshot)
        self._policy = rate_policy(snapshot.rate)
        self._rules = Rules(snapshot.response.rules)

    @property
    def rate_digest(self) -> dict[str, Any]:
        """What the ledger says of the gate (S2 §4.10.7)."""
        return {"limitKey": self._key, "permitCost": 1}

    def fetch(self, request: Request, tally: Tally, *, lease_remaining: Callable[[], float]) -> Answer:
        """Return a good answer, or raise what is left after the last attempt."""
        retry = self._snapshot.retry
        retrying = Retrying(
            stop=stop_after_attempt(retry.max_attempts),
            wait=lambda state: _retry_wait(retry, state),
            retry=retry_if_exception_type(Retryable),
            sleep=self._sleep,
            before_sleep=lambda state: self._warn(state, request),
            reraise=True,
        )
        try:
            return retrying(self._attempt, request, tally, lease_remaining)
        except Deferred as deferred:
            if tally.throttles and deferred.wait_seconds:
                raise Throttled(
                    f"throttled by the source: {deferred}", wait_seconds=deferred.wait_seconds
                ) from deferred
            raise

    def _sleep(self, seconds: float) -> None:
        if self._wait(seconds):
            raise Deferred("stopping", wait_seconds=0.0)

    def _warn(self, state: RetryCallState, request: Request) -> None:
        error = state.outcome.exception() if state.outcome else None
        _log.warning(
            "retry", source=self._snapshot.provenance_code, endpoint=self._snapshot.endpoint_name, url=request.url,
            attempt=state.attempt_number, error=REDACTOR.clean(str(error)), error_level="L1",
        )  # fmt: skip

    def _attempt(self, request: Request, tally: Tally, lease_remaining: Callable[[], float]) -> Answer:
        http, retry = self._snapshot.http, self._snapshot.retry
        permit = self._gate.acquire(self._key, self._policy)
        tally.waited_s += permit.waited_s
        tally.attempts += 1
        if lease_remaining() <= 0:
            raise LeaseLost("the lease ended before the page was asked for")
        started = time.monotonic()
        deadline = started + http.total_timeout_s
        if not http.compression:
            request = request.with_headers(("Accept-Encoding", "identity"))
        try:
            answer = self._transport.send(
                authenticate(request, self._snapshot.auth, http.origin),
                connect_s=http.connect_timeout_s,
                read_s=http.read_timeout_s,
                remaining=lambda: min(deadline - time.monotonic(), lease_remaining()),
                max_body_bytes=self._snapshot.response.max_body_bytes,
                whole_errors=self._rules.reads_errors,
            )
        finally:
            tally.latency_s += time.monotonic() - started
        tally.statuses.append(answer.status)
        tally.verdict = verdict = self._rules.find(answer) if self._rules else None
        wait = retry_after_seconds(answer.headers)
        if verdict is not None:
            tally.verdicts.append(verdict)
            self._obey(verdict, answer, tally, permit, wait)
            return answer
        # a Retry-After is obeyed on whatever is asked again, and by every process (C5)
        if answer.status == 429 or (answer.status in retry.statuses and wait is not None):
            tally.throttles += 1
            self._gate.report_throttle(self._key, self._policy, permit, wait)
        judge(answer, retry, wait)
        return answer

    def _obey(self, verdict: Verdict, answer: Answer, tally: Tally, permit: Permit, wait: float | None) -> None:
        """Tell the gate what the rule says, then raise it, or let the answer pass for the walk to read or end with."""
        if verdict.then == "throttle" and wait is None:
            wait = verdict.wait_s
        # a Retry-After is obeyed on whatever is asked again (C5)
        if verdict.then == "throttle" or (verdict.then == "retry" and wait is not None):
            tally.throttles += 1
            self._gate.report_throttle(self._key, self._policy, permit, wait)
        if not verdict.passes:
            verdict.raise_for(answer, REDACTOR.sample(answer.body))


def judge(answer: Answer, retry: Retry, wait: float | None) -> None:
    """Raise for every status that is not a good answer, named for what to do about it."""
    status = answer.status
    if 200 <= status < 300:
        return
    excerpt = REDACTOR.sample(answer.body)
    if status in retry.statuses:
        raise Retryable(f"HTTP {status}", status=status, excerpt=excerpt, wait_seconds=wait)
    if status == 401:
        raise CredentialRefused("HTTP 401: the credential was refused", status=status, excerpt=excerpt)
    if 300 <= status < 400:
        target = answer.headers.get("location", "nowhere")
        raise Refused(f"HTTP {status}: a redirect to {REDACTOR.clean(target)} was not followed", status=status)
    raise Refused(f"HTTP {status}", status=status, excerpt=excerpt)


def _retry_wait(retry: Retry, state: RetryCallState) -> float:
    """The back-off alone: what the source asked for is a cooldown in the gate, which the next attempt passes."""
    return delay_after(retry, state.attempt_number, random.random())  # noqa: S311 -- spreads load, guards nothing


def retry_after_seconds(headers: dict[str, str]) -> float | None:
    """Return what Retry-After asks for: seconds, or a date relative to the answer's own Date; clamped to [0, 1 day].

    Of several (a proxy's and the server's) the longest counts; what is neither is no wish at all.
    """
    text = headers.get("retry-after", "").strip()
    waits = [wait for part in (text, *text.split(",")) if (wait := _wait_of(part.strip(), headers)) is not None]
    return min(max(*waits, 0.0), _LONGEST_RETRY_AFTER) if waits else None


def _wait_of(text: str, headers: dict[str, str]) -> float | None:
    if re.fullmatch(r"[+-]?[0-9]+(\.[0-9]*)?(e[0-9]+)?", text):
        return float(text)
    moment = _http_date(text)
    # the server's clock on both sides: ours may be off
    return None if moment is None else moment - (_http_date(headers.get("date", "")) or time.time())


def _http_date(text: str) -> float | None:
    try:
        moment = email.utils.parsedate_to_datetime(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def response_digest(answer: Answer, items_path: str) -> dict[str, Any]:
    """Return the answer as the ledger keeps it: status, hints, hash and at most 1 KB of redacted sample (F1)."""
    return {
        "status": answer.status,
        "bytes": len(answer.body),
        "wireBytes": answer.wire_bytes,
        "headerHints": {name: answer.headers[name] for name in _HINTS if name in answer.headers},
        "itemsPath": items_path,
        "bodyHash": "sha256:" + hashlib.sha256(answer.body).hexdigest(),
        "sample": REDACTOR.sample(answer.body),
    }
