"""Faults: rules that say which requests go wrong, and how.

Rules are asked in the order they were added, and the first that fires takes the request: the rules
after it do not see it. What fires depends on the rules, the seed and the order of requests alone, so a
run with one client can be repeated exactly.
"""

import math
import random
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from threading import Lock
from typing import Any, get_args

from simulator.answers import JSON, Answer, Delivery, SpoilField, Twist, set_headers
from simulator.dataset import encode_json

# Besides these, every status from 400 to 599 is a kind: "429", "503" and so on. "throttle" is a refusal in the
# API's own manner, whatever status that has; "lost_token" makes the API forget the token it is asked with.
KINDS = (
    "status", "slow", "drip", "truncate", "disconnect", "bad_record", "duplicate_page", "empty_page",
    "lost_token", "throttle", "invalid_json", "html_200", "empty",
)  # fmt: skip
_HTML = b"<!DOCTYPE html><html><body><h1>We will be back soon</h1><p>Scheduled maintenance.</p></body></html>"


_TYPES: dict[str, type | tuple[type, ...]] = {
    **dict.fromkeys(("times", "every", "after", "status", "record", "record_every", "cut"), int),
    **dict.fromkeys(("probability", "delay_s"), (int, float)),
    **dict.fromkeys(("api", "match"), str),
    "retry_after": (int, float, str),
    "headers": dict,
}


class BadRule(ValueError):
    """A fault rule that cannot be followed."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One fault. It is counted against requests to `api` ("*": any) whose target contains `match`.

    Of those it skips the first `after`, then fires on every one, on every `every`-th, or with
    `probability`; `times` bounds how often (once, unless `every` or `probability` is given).
    """

    api: str
    kind: str
    times: int | None = None
    every: int | None = None
    probability: float | None = None
    after: int = 0
    match: str = ""
    status: int | None = None
    retry_after: float | str | None = None
    delay_s: float = 0.0  # before the answer; with `drip`, before each byte
    record: int = 1  # bad_record: which one of the page, from 1
    record_every: int | None = None  # bad_record: every so many instead
    spoil: SpoilField = "id"  # bad_record: what is wrong with it
    cut: int | None = None  # truncate: how many bytes of the body are sent; half of them by default
    body: object = None  # status: what to say instead of the API's own words; text or JSON
    headers: Mapping[str, str] = field(default_factory=dict)  # added to the answer

    def __post_init__(self) -> None:
        status = self.get_status()
        if self.kind not in KINDS and status is None:
            raise BadRule(f"unknown kind {self.kind!r}; known: {', '.join(KINDS)} and the statuses 400 to 599")
        if self.kind == "status" and status is None:
            raise BadRule("kind 'status' needs a status")
        if status is not None and not 100 <= status <= 599:
            raise BadRule(f"status {status} is none")
        if self.spoil not in get_args(SpoilField):
            raise BadRule(f"spoil must be one of {', '.join(get_args(SpoilField))}")
        if self.probability is not None and not 0 <= self.probability <= 1:
            raise BadRule("probability must lie between 0 and 1")
        if any(value is not None and value < 1 for value in (self.every, self.record, self.record_every)):
            raise BadRule("every, record and record_every count from 1")

    def get_status(self) -> int | None:
        """Return the status this rule answers with, or None if it leaves the status alone."""
        if self.status is not None:
            return self.status
        is_error = len(self.kind) == 3 and self.kind.isascii() and self.kind.isdigit() and "400" <= self.kind < "600"
        return int(self.kind) if is_error else None

    @property
    def replaces_page(self) -> bool:
        """True if the answer is an error, so that no page needs to be made."""
        return self.kind in ("status", "throttle") or self.kind not in KINDS

    @property
    def twist(self) -> Twist:
        match self.kind:
            case "duplicate_page":
                return Twist(again=True)
            case "empty_page":
                return Twist(empty=True)
            case "lost_token":
                return Twist(lost=True)
            case "bad_record":
                return Twist(spoil_at=self.record - 1, spoil_every=self.record_every, spoil_field=self.spoil)
            case _:
                return Twist()

    def change(self, answer: Answer) -> Answer:
        """Return the answer as this rule wants it."""
        match self.kind:
            case "invalid_json":
                answer = replace(answer, body=answer.body[: len(answer.body) * 2 // 3])
            case "html_200":
                answer = replace(answer, body=_HTML, content_type="text/html; charset=utf-8")
            case "empty":
                answer = replace(answer, body=b"")
        if self.body is not None:
            as_text = isinstance(self.body, str)
            text = self.body if isinstance(self.body, str) else encode_json(self.body)
            answer = replace(answer, body=text.encode(), content_type="text/plain" if as_text else JSON)
        headers = tuple(self.headers.items())
        if self.retry_after is not None:
            headers += (("Retry-After", _write_number(self.retry_after)),)
        status = self.get_status() or answer.status
        return replace(answer, status=status, headers=set_headers(answer.headers, headers))

    def deliver(self, answer: Answer) -> Delivery:
        match self.kind:
            case "truncate":
                half = len(answer.body) // 2
                return Delivery(delay_s=self.delay_s, cut=half if self.cut is None else self.cut)
            case "disconnect":
                return Delivery(delay_s=self.delay_s, hang_up=True)
            case "drip":
                return Delivery(delay_s=self.delay_s, drip=True)
            case _:
                return Delivery(delay_s=self.delay_s)


def read_rule(value: Mapping[str, Any]) -> Rule:
    """Make a rule from JSON; raises BadRule naming what is wrong."""
    known = {item.name for item in fields(Rule)}
    if unknown := sorted(set(value) - known):
        raise BadRule(f"unknown field {unknown[0]!r}; known: {', '.join(sorted(known))}")
    if "api" not in value or "kind" not in value:
        raise BadRule("a rule needs api and kind")
    for name, types in _TYPES.items():
        if value.get(name) is not None and not isinstance(value[name], types):
            raise BadRule(f"{name} cannot be {value[name]!r}")
    return Rule(**{**value, "kind": str(value["kind"])})


@dataclass(slots=True)
class _Posted:
    rule: Rule
    number: int
    seen: int = 0
    fired: int = 0


class FaultBook:
    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._lock = Lock()
        self._posted: list[_Posted] = []
        self._number = 0

    def add(self, rule: Rule) -> int:
        """Add a rule after the others and return its number."""
        with self._lock:
            self._number += 1
            self._posted.append(_Posted(rule, self._number))
            return self._number

    def clear(self) -> None:
        with self._lock:
            self._posted.clear()

    def list_rules(self) -> list[dict[str, Any]]:
        """Return every rule with its number and how often it was asked and fired."""
        with self._lock:
            return [
                {"number": posted.number, "seen": posted.seen, "fired": posted.fired, **asdict(posted.rule)}
                for posted in self._posted
            ]

    def take(self, api: str, target: str, *, first_page: bool) -> Rule | None:
        """Return the rule that this request falls to, and count it.

        First pages have none to repeat and no token to lose.
        """
        with self._lock:
            for posted in self._posted:
                rule = posted.rule
                if rule.api not in ("*", api) or rule.match not in target:
                    continue
                if rule.kind in ("duplicate_page", "lost_token") and first_page:
                    continue
                posted.seen += 1
                if self._fires(posted):
                    posted.fired += 1
                    return rule
            return None

    def _fires(self, posted: _Posted) -> bool:
        rule, turn = posted.rule, posted.seen - posted.rule.after
        regular = rule.every is not None or rule.probability is not None
        times = rule.times if rule.times is not None else (math.inf if regular else 1)
        if turn < 1 or posted.fired >= times:
            return False
        if rule.every is not None and turn % rule.every:
            return False
        if rule.probability is None:
            return True
        return random.Random(f"{self._seed}/{posted.number}/{turn}").random() < rule.probability


def _write_number(value: float | str) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
