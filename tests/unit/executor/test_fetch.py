"""Fetching: judged in one place, retried while that makes sense, told to the gate; over real sockets."""

import email.utils
import itertools
import socket
import time
from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import pytest

from executor.fetch import Fetcher, Tally, judge, response_digest, retry_after_seconds
from executor.gatekeeper import Permit
from executor.request import Request
from executor.secrets import REDACTOR
from executor.transport import Answer, Transport
from ingest.errors import (
    CredentialRefused,
    Deferred,
    IngestError,
    LeaseLost,
    Refused,
    Retryable,
    SecretMissing,
    Unreadable,
)
from ingest.spec.snapshot import Auth, Http, Retry
from tests.factories import make_snapshot
from tests.unit.executor.servers import Server, answer, serve, silence


class OpenGate:
    """A gate that lets everything through and remembers what it was told; the real one needs a database."""

    def __init__(self) -> None:
        self.permits = 0
        self.throttles: list[float | None] = []

    def acquire(self, _key: str, _policy: Any) -> Permit:
        self.permits += 1
        return Permit(epoch=1, waited_s=0.5)

    def report_throttle(self, _key: str, _policy: Any, permit: Permit, retry_after: float | None) -> None:
        assert permit.epoch == 1
        self.throttles.append(retry_after)


class Fetch:
    """One endpoint to fetch from, its gate and its waits."""

    def __init__(self, url: str, transport: Transport, **sections: Any) -> None:
        http = sections.pop("http", {})
        values = {"method": "GET", "base_url": url, "path": "/"} | http
        self.snapshot = make_snapshot(http=Http(**values), **sections)
        self.gate, self.tally, self.waits = OpenGate(), Tally(), list[float]()
        self.stopping = False
        self._fetcher = Fetcher(self.snapshot, transport, self.gate, self._wait)  # type: ignore[arg-type]
        self._request = Request("GET", url + "/", (), ())

    def _wait(self, seconds: float) -> bool:
        self.waits.append(seconds)
        return self.stopping

    def __call__(self, lease_remaining: Callable[[], float] = lambda: 60.0) -> Answer:
        return self._fetcher.fetch(self._request, self.tally, lease_remaining=lease_remaining)


@pytest.fixture(scope="module")
def transport() -> Iterator[Transport]:
    """A transport that may go to loopback."""
    made = Transport(open_origins=("http://127.0.0.1:*",), connections=2)
    yield made
    made.close()


def in_turn(*answers: bytes) -> Callable[[socket.socket, bytes, Event], None]:
    """Give each answer once, the last for ever."""
    turns = itertools.chain(answers, itertools.repeat(answers[-1]))
    return lambda connection, _head, _stop: connection.sendall(next(turns))


def fetching(transport: Transport, server: Server, **sections: Any) -> Fetch:
    return Fetch(server.url, transport, **sections)


def test_a_good_answer_costs_one_attempt(transport: Transport) -> None:
    with serve(answer(b"[1]")) as server:
        fetch = fetching(transport, server)
        assert fetch().body == b"[1]"
    assert (fetch.tally.attempts, fetch.tally.statuses, fetch.gate.permits, fetch.waits) == (1, [200], 1, [])
    assert fetch.tally.stats()["waitMs"] == 500


def test_a_failure_that_passes_is_tried_again_and_each_try_passes_the_gate(transport: Transport) -> None:
    with serve(in_turn(answer(status=500), answer(status=502), answer())) as server:
        fetch = fetching(transport, server, retry=Retry(policy="exponential", base_s=3.0))
        fetch()
    assert fetch.tally.statuses == [500, 502, 200]
    assert fetch.gate.permits == 3
    assert fetch.waits == [3.0, 6.0]
    assert fetch.tally.stats()["retryCount"] == 2


def test_after_the_last_attempt_the_error_stays(transport: Transport) -> None:
    with serve(answer(b"down", status=503)) as server:
        fetch = fetching(transport, server, retry=Retry(max_attempts=3))
        with pytest.raises(Retryable) as caught:
            fetch()
    assert (caught.value.status, caught.value.excerpt, fetch.tally.attempts) == (503, "down", 3)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 408, 409, 422, 302, 304])
def test_what_will_not_succeed_by_asking_again_is_asked_once(transport: Transport, status: int) -> None:
    with serve(answer(b"", status=status)) as server:
        fetch = fetching(transport, server)
        with pytest.raises((Refused, CredentialRefused)):
            fetch()
    assert fetch.tally.attempts == 1


def test_a_stop_during_a_wait_gives_the_task_back(transport: Transport) -> None:
    with serve(answer(status=500)) as server:
        fetch = fetching(transport, server)
        fetch.stopping = True
        with pytest.raises(Deferred):
            fetch()
    assert fetch.tally.attempts == 1


def test_nothing_is_sent_under_a_lease_that_has_ended(transport: Transport) -> None:
    with serve(answer()) as server:
        with pytest.raises(LeaseLost):
            fetching(transport, server)(lease_remaining=lambda: 0.0)
        assert server.requests == []


def test_no_retry_goes_on_under_a_lease_that_has_ended(transport: Transport) -> None:
    remaining = itertools.chain([60.0] * 20, itertools.repeat(0.0))
    with serve(answer(status=500)) as server:
        fetch = fetching(transport, server, retry=Retry(max_attempts=50))
        with pytest.raises(LeaseLost):
            fetch(lease_remaining=lambda: next(remaining))
        assert len(server.requests) < 20


@pytest.mark.parametrize(
    ("status", "retry_after", "told"),
    [
        (429, None, [None, None]),
        (429, "7", [7.0, 7.0]),
        (503, "7", [7.0, 7.0]),
        (503, None, []),
        (500, "7", [7.0, 7.0]),
        (502, None, []),
    ],
)
def test_the_gate_is_told_what_the_source_asked_for(
    transport: Transport, status: int, retry_after: str | None, told: list[float | None]
) -> None:
    headers = {"Retry-After": retry_after} if retry_after else {}
    with serve(answer(b"", status=status, headers=headers)) as server:
        fetch = fetching(transport, server, retry=Retry(max_attempts=2))
        with pytest.raises(Retryable):
            fetch()
    assert fetch.gate.throttles == told
    assert fetch.tally.throttles == len(told)


def test_a_refusal_with_retry_after_is_no_throttle(transport: Transport) -> None:
    with serve(answer(b"", status=404, headers={"Retry-After": "7"})) as server:
        fetch = fetching(transport, server)
        with pytest.raises(Refused):
            fetch()
    assert fetch.gate.throttles == []


def test_a_request_ends_at_its_own_total_deadline_however_long_the_lease(transport: Transport) -> None:
    with serve(silence) as server:
        fetch = fetching(transport, server, http={"total_timeout_s": 0.2}, retry=Retry(max_attempts=1))
        started = time.monotonic()
        with pytest.raises(Retryable):
            fetch()
        assert time.monotonic() - started < 1.0


def test_a_body_over_the_cap_is_not_asked_for_again(transport: Transport) -> None:
    with serve(answer(b"x" * 100)) as server:
        fetch = fetching(transport, server)
        capped = fetch.snapshot.response.model_copy(update={"max_body_bytes": 10})
        fetch = fetching(transport, server, response=capped)
        with pytest.raises(Unreadable):
            fetch()
    assert fetch.tally.attempts == 1


def test_a_credential_is_sent_and_stays_out_of_the_error(transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VENDOR_KEY", "k3y-of-fetch")
    auth = Auth(type="BEARER", secret_ref="env:VENDOR_KEY")
    with serve(answer(b'{"error":"k3y-of-fetch is unknown"}', status=401)) as server:
        fetch = fetching(transport, server, auth=auth)
        with pytest.raises(CredentialRefused) as caught:
            fetch()
    assert b"Bearer k3y-of-fetch" in server.requests[0]
    assert "k3y-of-fetch" not in str(caught.value.excerpt)


def test_a_missing_credential_sends_nothing(transport: Transport) -> None:
    with serve(answer()) as server:
        with pytest.raises(SecretMissing):
            fetching(transport, server, auth=Auth(type="BEARER", secret_ref="env:NO_SUCH_KEY"))()
        assert server.requests == []


def test_compression_can_be_declined(transport: Transport) -> None:
    with serve(answer()) as server:
        fetching(transport, server, http={"compression": False})()
        fetching(transport, server)()
    assert b"accept-encoding: identity" in server.requests[0].lower()
    assert b"accept-encoding: gzip, deflate" in server.requests[1].lower()


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, Retryable),
        (500, Retryable),
        (504, Retryable),
        (401, CredentialRefused),
        (403, Refused),
        (404, Refused),
        (301, Refused),
        (304, Refused),
        (100, Refused),
    ],
)
def test_each_status_means_one_thing_to_do(status: int, error: type[IngestError]) -> None:
    with pytest.raises(error):
        judge(Answer(status, {}, b"", {}, 0, 0.0, 0.0), Retry(), None)


@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_success_is_no_error(status: int) -> None:
    judge(Answer(status, {}, b"", {}, 0, 0.0, 0.0), Retry(), None)


def test_a_declared_status_is_retried() -> None:
    with pytest.raises(Retryable):
        judge(Answer(408, {}, b"", {}, 0, 0.0, 0.0), Retry(statuses=(408,)), None)
    with pytest.raises(Refused):
        judge(Answer(500, {}, b"", {}, 0, 0.0, 0.0), Retry(statuses=(408,)), None)


def test_a_refused_redirect_names_its_target() -> None:
    with pytest.raises(Refused, match=r"https://login\.example\.org"):
        judge(Answer(302, {"location": "https://login.example.org"}, b"", {}, 0, 0.0, 0.0), Retry(), None)


DATE = "Wed, 21 Oct 2015 07:28:00 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "120"}, 120.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "1e9"}, 86400.0),
        ({"retry-after": "99999999999999999999999"}, 86400.0),
        ({"retry-after": "120, 60"}, 120.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "1_0"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:30:00 GMT", "date": DATE}, 120.0),
        ({"retry-after": "Wednesday, 21-Oct-15 07:30:00 GMT", "date": DATE}, 120.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:30:00 -0000", "date": DATE}, 120.0),
        ({"retry-after": "Wed, 21 Oct 2015 09:30:00 +0200", "date": DATE}, 120.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:00:00 GMT", "date": DATE}, 0.0),
        ({"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT", "date": DATE}, 86400.0),
        ({"retry-after": "Wed, 99 Oct 2015 07:00:00 GMT", "date": DATE}, None),
    ],
)
def test_retry_after_is_read_in_both_its_forms(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds


@pytest.mark.parametrize("date", ["", "garbage"])
def test_a_date_without_a_date_to_compare_is_compared_with_our_clock(date: str) -> None:
    later = email.utils.formatdate(time.time() + 100, usegmt=True)
    assert retry_after_seconds({"retry-after": later, "date": date}) == pytest.approx(100, abs=2)


def test_the_ledger_keeps_hints_a_hash_and_a_redacted_sample() -> None:
    REDACTOR.learn("l3dger-secret")
    body = b'{"you":"l3dger-secret","n":"\x00"}' + b"x" * 5000
    headers = {"etag": '"1"', "x-ratelimit-remaining": "4", "set-cookie": "a=b"}
    digest = response_digest(Answer(200, headers, body, {}, 77, 0.0, 0.0), "$.data")
    assert digest["headerHints"] == {"x-ratelimit-remaining": "4", "etag": '"1"'}
    assert digest["bodyHash"].startswith("sha256:")
    assert (digest["bytes"], digest["wireBytes"], len(digest["sample"])) == (len(body), 77, 1024)
    assert "l3dger" not in digest["sample"]
    assert "\x00" not in digest["sample"]
