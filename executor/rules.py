"""Response rules: from an answer to what the source file says that it means (pure; B13, DESIGN §5).

Rules are asked in their order and the first that fits decides; an answer no rule fits is judged by its status alone
(`executor.fetch.judge`). Compiled once per snapshot; without rules nothing is looked at.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from executor.paging import Step
from executor.shapes import Shape
from executor.transport import Answer
from ingest.errors import Closed, CredentialRefused, Refused, Retryable
from ingest.spec.paths import parse_path
from ingest.spec.patterns import compile_pattern, matches
from ingest.spec.rules import BodyTest, Rule

Action = Literal["ok", "empty", "end", "retry", "throttle", "refuse", "fatal", "refresh"]
_Find = Callable[[str], Any]
_Test = Callable[[Answer, Callable[[], _Find | None]], bool]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a rule made of an answer."""

    number: int  # of the rule, from 1
    then: Action
    wait_s: float | None
    covers: bool
    because: str

    def __str__(self) -> str:
        return f"response rule {self.number} ({self.then})" + (f": {self.because}" if self.because else "")

    @property
    def ends_walk(self) -> bool:
        """Whether the answer is not read and the walk is over with it."""
        return self.then in ("empty", "end")

    @property
    def passes(self) -> bool:
        """Whether the answer reaches the walk, to be read or to end with."""
        return self.then in ("ok", "empty", "end")

    def raise_for(self, answer: Answer, excerpt: str) -> None:
        """Raise what the rule says of an answer that does not pass."""
        if self.passes:
            return
        text = f"HTTP {answer.status}: {self}"
        errors = {"refuse": Refused, "fatal": Closed, "refresh": CredentialRefused}
        raise errors.get(self.then, Retryable)(text, status=answer.status, excerpt=excerpt)

    def step(self) -> Step:
        """Return the end of the walk; only a declared one may cover the window (DESIGN rule 7)."""
        return Step(None, declared=self.then == "end" or self.covers, reason=str(self))


class Rules:
    """The rules of one snapshot; false if there are none."""

    def __init__(self, rules: tuple[Rule, ...]) -> None:
        paths = {str(n): parse_path(rule.body.path) for n, rule in enumerate(rules) if rule.body is not None}
        self._shape = Shape(paths) if paths else None
        self._rules = [(_compile(str(n), rule), _verdict(n, rule)) for n, rule in enumerate(rules)]
        # of an error's body the beginning is enough, unless a rule takes the answer for a good one
        self.reads_errors = any(rule.then == "ok" for rule in rules)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def find(self, answer: Answer) -> Verdict | None:
        """Return the verdict of the first rule that fits."""
        read: list[_Find | None] = []

        def body() -> _Find | None:
            if not read:
                read.append(self._read(answer.body))
            return read[0]

        return next((verdict for tests, verdict in self._rules if all(test(answer, body) for test in tests)), None)

    def _read(self, body: bytes) -> _Find | None:
        try:
            return None if self._shape is None else self._shape.read(body.removeprefix(b"\xef\xbb\xbf"))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None  # no JSON: no rule about a value of it fits


def _verdict(number: int, rule: Rule) -> Verdict:
    return Verdict(number + 1, rule.then, rule.wait_s, rule.covers, rule.because)


def _compile(name: str, rule: Rule) -> list[_Test]:
    """Return the rule's tests, the cheap ones first."""
    tests: list[_Test] = []
    if rule.status:
        tests.append(_status_test(rule.status))
    if rule.content_type:
        kind = rule.content_type.lower()
        tests.append(lambda answer, _: kind in answer.headers.get("content-type", "").lower())
    for header, text in rule.header.items():
        tests.append(_header_test(header.lower(), compile_pattern(text)))
    if rule.contains:
        tests.append(_text_test(rule.contains))
    if rule.body is not None:
        tests.append(_body_test(name, rule.body))
    return tests


def _status_test(statuses: tuple[str, ...]) -> _Test:
    exact = frozenset(int(text) for text in statuses if text.isdigit())
    families = frozenset(int(text[0]) for text in statuses if not text.isdigit())
    return lambda answer, _: answer.status in exact or answer.status // 100 in families


def _header_test(name: str, pattern: re.Pattern[str]) -> _Test:
    return lambda answer, _: name in answer.headers and matches(pattern, answer.headers[name])


def _text_test(text: str) -> _Test:
    """Find the text as it is or as JSON escapes it: many servers write 频率 as \\u9891\\u7387."""
    plain, escaped = text.encode(), json.dumps(text)[1:-1]
    spellings = {
        plain,
        escaped.encode(),
        re.sub(r"\\u....", lambda code: r"\u" + code[0][2:].upper(), escaped).encode(),
    }
    return lambda answer, _: any(spelling in answer.body for spelling in spellings)


def _body_test(name: str, test: BodyTest) -> _Test:
    asked = _value_test(test)

    def ask(_answer: Answer, body: Callable[[], _Find | None]) -> bool:
        find = body()
        try:
            return find is not None and asked(find(name))
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return False  # what the path was walked through is no JSON after all

    return ask


def _value_test(test: BodyTest) -> Callable[[Any], bool]:
    if test.exists is not None:
        wanted = test.exists
        return lambda value: (value is not None) == wanted
    if test.matches is not None:
        pattern = compile_pattern(test.matches)
        return lambda value: value is not None and matches(pattern, _text(value))
    if test.contains is not None:
        part = test.contains
        return lambda value: value is not None and part in _text(value)
    values = test.among or (test.equals,)
    return lambda value: any(_same(value, wanted) for wanted in values)


def _same(value: Any, wanted: Any) -> bool:
    """Compare as JSON does: true is not 1; 0 is 0.0."""
    return bool(value == wanted) and isinstance(value, bool) == isinstance(wanted, bool)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
