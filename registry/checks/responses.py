"""Checks of the response rules: each asks something, can be read, and says what it may say (B13)."""

import re
from collections.abc import Iterator
from typing import Any

from ingest.spec.paths import PathInvalid, parse_path
from ingest.spec.patterns import PatternInvalid, compile_pattern
from registry.checks.subject import Subject, error, warning
from registry.problems import Finding, Where

_STATUS = re.compile(r"[1-5]([0-9]{2}|xx)")
_PREDICATES = ("status", "header", "content_type", "contains", "body")
_DENIED = {"401", "403", "4xx"}


def check_responses(subject: Subject) -> Iterator[Finding]:
    """Every rule is sound by itself."""
    for number, rule in enumerate(subject.get("responses") or []):
        where = (*subject.where("responses"), number)
        yield from _check_predicates(rule, where)
        yield from _check_action(rule, where)
        yield from _check_meaning(rule, where)


def _check_predicates(rule: dict[str, Any], where: Where) -> Iterator[Finding]:
    if not any(rule.get(name) for name in _PREDICATES):
        yield error("missing", where, f"the rule fits every answer: ask for {', '.join(_PREDICATES)}")
    for status in rule.get("status", []):
        if not _STATUS.fullmatch(status):
            yield error("wrong-value", (*where, "status"), f"'{status}' is not a status", "write 404 or 4xx")
    patterns = {("header", name): text for name, text in rule.get("header", {}).items()}
    body = rule.get("body") or {}
    if body.get("matches") is not None:
        patterns["body", "matches"] = body["matches"]
    for place, text in patterns.items():
        try:
            compile_pattern(text)
        except PatternInvalid as problem:
            yield error("bad-pattern", (*where, *place), str(problem))
    if "path" in body:
        try:
            parse_path(body["path"])
        except PathInvalid as problem:
            message = str(problem).removeprefix("not a JSONPath: ")
            at = (*where, "body", "path")
            yield error("bad-path", at, f"not a valid JSONPath: {message}", offset=problem.offset)


def _check_action(rule: dict[str, Any], where: Where) -> Iterator[Finding]:
    if rule.get("wait_s") is not None and rule["then"] != "throttle":
        hint = "write 'then: throttle', or set retry.base"
        yield error("rivals", (*where, "wait"), f"'wait' is for then: throttle, not {rule['then']}", hint)
    if rule.get("covers") is not None and rule["then"] != "empty":
        yield error("rivals", (*where, "covers"), f"'covers' is for then: empty, not {rule['then']}")


def _check_meaning(rule: dict[str, Any], where: Where) -> Iterator[Finding]:
    """Tell rules that hide something: a refused credential, a record that only mentions the text."""
    denied = _DENIED.intersection(rule.get("status", []))
    if denied and rule["then"] in ("ok", "empty", "end"):
        yield warning(
            "denied-ignored",
            (*where, "status"),
            f"{', '.join(sorted(denied))} taken as {rule['then']}: a dead credential would look like a source "
            "without records",
            "write 'then: refuse', or name the statuses that mean it",
        )
    narrowed = rule.get("header") or rule.get("content_type") or rule.get("body")
    failing = rule.get("status") and not any(status.startswith("2") for status in rule["status"])
    if rule.get("contains") and not narrowed and not failing:
        yield warning(
            "contains-anywhere",
            (*where, "contains"),
            "a record that mentions the text would fit too",
            "ask for the value: body: {path: $.msg, contains: ...}",
        )
