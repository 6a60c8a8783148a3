"""Response rules: each predicate by itself, their order, and what a verdict means for the walk (B13, DESIGN rule 7)."""

import json
from typing import Any

import pytest

from executor.rules import Rules
from executor.transport import Answer
from ingest.spec.rules import BodyTest, Rule


def answered(body: Any = None, *, status: int = 200, **headers: str) -> Answer:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status, named, data, {}, len(data), 0.0, 0.0)


def fits(answer: Answer, **predicates: Any) -> bool:
    return Rules((Rule(then="refuse", **predicates),)).find(answer) is not None


@pytest.mark.parametrize(
    ("statuses", "status", "fit"),
    [(("404",), 404, True), (("404",), 400, False), (("4xx",), 429, True), (("4xx",), 500, False),
     (("410", "5xx"), 410, True), (("410", "5xx"), 503, True), (("2xx",), 204, True)],
)  # fmt: skip
def test_a_status_is_a_number_one_of_a_list_or_a_family(statuses: tuple[str, ...], status: int, fit: bool) -> None:
    assert fits(answered(status=status), status=statuses) is fit


def test_a_header_is_named_without_case_and_searched() -> None:
    answer = answered(x_error="daily quota spent")
    assert fits(answer, header={"X-Error": "quota"})
    assert not fits(answer, header={"X-Error": "^quota"})
    assert not fits(answered(), header={"X-Error": ".*"})


def test_a_content_type_is_part_of_the_header() -> None:
    assert fits(answered(content_type="Text/HTML; charset=utf-8"), content_type="text/html")
    assert not fits(answered(content_type="application/json"), content_type="text/html")


@pytest.mark.parametrize("ascii_only", [True, False])
def test_chinese_text_is_found_plain_and_as_json_escapes_it(ascii_only: bool) -> None:
    body = json.dumps({"msg": "抱歉，您每分钟最多访问该接口200次"}, ensure_ascii=ascii_only)
    text = "每分钟最多访问该接口"
    for spelling in (body, body.upper().replace("\\U", "\\u")):
        assert fits(answered(spelling.encode()), contains=text)
    assert fits(answered(body.encode()), body=BodyTest(path="$.msg" if ascii_only else "$['msg']", contains=text))
    assert not fits(answered({"msg": "ok"}), contains=text)


@pytest.mark.parametrize(
    ("test", "value", "fit"),
    [
        ({"equals": 0}, 0, True), ({"equals": 0}, 0.0, True), ({"equals": 0}, False, False),
        ({"equals": 0}, "0", False),
        ({"equals": False}, False, True), ({"equals": False}, 0, False), ({"equals": "x"}, None, False),
        ({"among": (1, "b")}, "b", True), ({"among": (1, "b")}, True, False), ({"among": (1, "b")}, None, False),
        ({"matches": "^no "}, "no match", True), ({"matches": "^no "}, "yes no ", False), ({"matches": "42"}, 42, True),
        ({"contains": "频率"}, "频率过高", True), ({"contains": "频率"}, None, False),
        ({"exists": True}, 0, True), ({"exists": True}, None, False), ({"exists": False}, None, True),
    ],
)  # fmt: skip
def test_a_value_of_the_body_is_asked_one_thing(test: dict[str, Any], value: Any, fit: bool) -> None:
    assert fits(answered({"a": {"b": value}}), body=BodyTest(path="$.a.b", **test)) is fit


@pytest.mark.parametrize("body", [b"", b"<html>", b'{"a": ', b'{"a": [1, }', b"\xff\xfe"])
def test_no_rule_about_a_value_fits_what_is_not_json(body: bytes) -> None:
    for path in ("$.a", "$.a[0]", "$.a[*]", "$"):
        assert not fits(answered(body), body=BodyTest(path=path, matches=".*"))
    assert not fits(answered(b"<html>"), body=BodyTest(path="$.a", exists=False))


def test_every_predicate_that_is_written_must_hold() -> None:
    predicates: dict[str, Any] = {"status": ("400",), "contains": "gone", "body": BodyTest(path="$.code", equals=7)}
    assert fits(answered({"code": 7, "why": "gone"}, status=400), **predicates)
    assert not fits(answered({"code": 7, "why": "gone"}, status=200), **predicates)
    assert not fits(answered({"code": 8, "why": "gone"}, status=400), **predicates)
    assert not fits(answered({"code": 7, "why": "here"}, status=400), **predicates)


def test_the_first_rule_that_fits_decides() -> None:
    rules = Rules((Rule(status=("404",), then="end"), Rule(status=("4xx",), then="refuse", because="no")))
    first, second = rules.find(answered(status=404)), rules.find(answered(status=410))
    assert first is not None
    assert (first.number, first.then) == (1, "end")
    assert str(second) == "response rule 2 (refuse): no"
    assert rules.find(answered(status=200)) is None


def test_only_an_end_or_a_rule_that_says_so_may_cover() -> None:
    rules = Rules(
        (
            Rule(status=("404",), then="end"),
            Rule(status=("410",), then="empty", because="taken away"),
            Rule(status=("204",), then="empty", covers=True),
        )
    )
    steps = [verdict.step() for code in (404, 410, 204) if (verdict := rules.find(answered(status=code)))]
    assert [(step.following, step.declared) for step in steps] == [(None, True), (None, False), (None, True)]
    assert "taken away" in steps[1].reason


def test_without_rules_there_is_nothing_to_ask() -> None:
    assert not Rules(())
    assert not Rules((Rule(status=("404",), then="end"),)).reads_errors
    assert Rules((Rule(status=("404",), then="ok"),)).reads_errors
