"""Response rules in the fetcher, over real sockets: asked before the status is judged, told to the gate (B13)."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from executor.decode import JsonDecoder
from executor.transport import Transport
from ingest.errors import Closed, CredentialRefused, IngestError, Refused, Retryable, Throttled, Unreadable
from ingest.spec.rules import BodyTest, Rule
from ingest.spec.snapshot import Response, Retry
from tests.unit.executor.servers import answer, serve
from tests.unit.executor.test_fetch import Fetch, OpenGate, in_turn

_GOOD = answer(b'{"code": 0, "data": [{"id": "1"}]}')
_SLOW = answer(json.dumps({"code": 40203, "msg": "抱歉，您每分钟最多访问该接口200次"}).encode())
_THROTTLE = Rule(body=BodyTest(path="$.msg", contains="每分钟最多访问该接口"), then="throttle")
_S0 = Retry(policy="exponential", base_s=3, factor=2, max_attempts=4)  # 3 s, 6 s, 12 s


@pytest.fixture(scope="module")
def transport() -> Iterator[Transport]:
    made = Transport(open_origins=("http://127.0.0.1:*",), connections=2)
    yield made
    made.close()


def fetch_of(url: str, transport: Transport, *rules: Rule, **sections: Any) -> Fetch:
    return Fetch(url, transport, response=Response(items="$.data", rules=rules), **sections)


def test_a_throttle_inside_200_is_told_to_the_gate_and_asked_again_after_3_6_12_seconds(transport: Transport) -> None:
    with serve(in_turn(_SLOW, _SLOW, _SLOW, _GOOD)) as server:
        fetch = fetch_of(server.url, transport, _THROTTLE, retry=_S0)
        assert b'"id"' in fetch().body
    assert fetch.waits == [3, 6, 12]
    assert fetch.gate.throttles == [None, None, None]
    stats = fetch.tally.stats()
    assert (stats["429Count"], stats["retryCount"], stats["ignored"]) == (3, 3, 0)
    assert stats["rules"] == ["response rule 1 (throttle)"] * 3


def test_a_rule_names_the_pause_unless_the_answer_does(transport: Transport) -> None:
    rule = Rule(status=("403",), then="throttle", wait_s=60)
    with serve(in_turn(answer(status=403), answer(status=403, headers={"Retry-After": "7"}), _GOOD)) as server:
        fetch = fetch_of(server.url, transport, rule)
        fetch()
    assert fetch.gate.throttles == [60, 7]


def test_a_throttle_that_never_ends_fails_after_the_last_attempt(transport: Transport) -> None:
    with serve(_SLOW) as server:
        fetch = fetch_of(server.url, transport, _THROTTLE, retry=_S0)
        with pytest.raises(Retryable, match="response rule 1"):
            fetch()
    assert fetch.tally.attempts == 4


@pytest.mark.parametrize(
    ("then", "raised"), [("refuse", Refused), ("fatal", Closed), ("refresh", CredentialRefused), ("retry", Retryable)]
)
def test_each_action_has_its_error_with_the_reason_and_the_evidence(
    transport: Transport, then: Any, raised: type[IngestError]
) -> None:
    with serve(answer(b'{"why": "gone"}')) as server:
        fetch = fetch_of(
            server.url, transport, Rule(status=("2xx",), then=then, because="it is off"), retry=Retry(max_attempts=1)
        )
        with pytest.raises(raised, match=r"HTTP 200: response rule 1 \(.*\): it is off") as caught:
            fetch()
    assert type(caught.value) is raised
    assert getattr(caught.value, "excerpt", None) == '{"why": "gone"}'
    assert fetch.gate.throttles == []


@pytest.mark.parametrize("then", ["ok", "empty", "end"])
def test_an_answer_a_rule_lets_pass_is_not_judged_by_its_status(transport: Transport, then: Any) -> None:
    with serve(answer(status=429)) as server:
        fetch = fetch_of(server.url, transport, Rule(status=("429",), then=then))
        assert fetch().status == 429
    assert fetch.tally.verdict is not None
    assert fetch.tally.stats()["ignored"] == (then == "empty")
    assert fetch.gate.throttles == []


def test_an_error_taken_as_good_is_read_whole(transport: Transport) -> None:
    body = b'{"data": [' + b'{"id": "1"},' * 20_000 + b'{"id": "2"}]}'
    with serve(answer(body, status=500)) as server:
        assert fetch_of(server.url, transport, Rule(status=("500",), then="ok"))().body == body


def test_what_no_rule_fits_is_judged_as_ever(transport: Transport) -> None:
    with serve(answer(status=410)) as server:
        fetch = fetch_of(server.url, transport, Rule(status=("404",), then="end"))
        with pytest.raises(Refused, match=r"^HTTP 410$"):
            fetch()
    assert "rules" not in fetch.tally.stats()


def test_a_wait_that_the_source_asked_for_is_told_apart(transport: Transport) -> None:
    class ClosingGate(OpenGate):
        def acquire(self, key: str, policy: Any) -> Any:
            if self.throttles:
                raise_wait(60.0)
            return super().acquire(key, policy)

    with serve(answer(status=429, headers={"Retry-After": "60"})) as server:
        fetch = fetch_of(server.url, transport)
        fetch.gate = ClosingGate()
        fetch._fetcher._gate = fetch.gate  # type: ignore[assignment]
        with pytest.raises(Throttled, match="throttled by the source"):
            fetch()


def raise_wait(seconds: float) -> None:
    from ingest.errors import Deferred

    raise Deferred("the gate opens later", wait_seconds=seconds)


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (b"<!DOCTYPE html><title>Sign in</title>", "text/html; charset=utf-8", "an HTML page came (text/html)"),
        (b"\xef\xbb\xbf <html>", "application/json", "an HTML page came"),
        (b"<error/>", "application/xml", "XML came (application/xml)"),
        (b'{"data": [{"id": ', "application/json", "cut JSON text of 17 bytes"),
        (b"", "application/json", "an empty body came"),
        (b"Service busy", "text/plain", "text came (text/plain): 'Service busy'"),
    ],
)
def test_what_is_not_json_at_200_says_what_came(transport: Transport, body: bytes, kind: str, said: str) -> None:
    with serve(answer(body, headers={"Content-Type": kind})) as server:
        fetch = fetch_of(server.url, transport)
        answered = fetch()
    with pytest.raises(Unreadable, match="not JSON") as caught:
        JsonDecoder(fetch.snapshot).decode(answered)
    assert said in str(caught.value)
