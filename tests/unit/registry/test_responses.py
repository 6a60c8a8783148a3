"""Response rules in the file: read in every form, refused with a place and a reason, told where they hide."""

import pytest

from tests.unit.registry.writing import compiled_of, only_problem, problems_of

_HERE = "    records: {items"


def rules(text: str) -> tuple[str, str]:
    return _HERE, f"    responses:\n      - {text}\n{_HERE}"


def test_every_form_of_a_rule_reaches_the_snapshot() -> None:
    compiled = compiled_of(
        rules("{status: 404, then: end}"),
        (
            _HERE,
            "      - {status: [400, 5xx], header: {X-Error: ^q}, body: {path: $.code, in: [1, b]}, then: throttle, "
            f"wait: 1m, because: busy}}\n{_HERE}",
        ),
    )
    first, second = compiled.snapshot.response.rules
    assert (first.status, first.then, first.covers) == (("404",), "end", False)
    assert (second.status, second.header, second.wait_s) == (("400", "5xx"), {"X-Error": "^q"}, 60)
    assert second.body is not None
    assert second.body.among == (1, "b")
    assert compiled.origins["response.rules"] == "endpoint retry_cfg"


def test_an_endpoints_rules_stand_in_for_the_sources() -> None:
    source = ("rate: 10/s\n", "rate: 10/s\nresponses: [{status: 410, then: end}]\n")
    assert [rule.status for rule in compiled_of(source).snapshot.response.rules] == [("410",)]
    both = compiled_of(source, rules("{status: 404, then: end}"))
    assert [rule.status for rule in both.snapshot.response.rules] == [("404",)]


def test_rules_change_neither_the_selection_nor_what_rows_hold() -> None:
    from ingest.spec.selection import selection_hash

    before, after = compiled_of().snapshot, compiled_of(rules("{status: 404, then: end}")).snapshot
    assert selection_hash(before) == selection_hash(after)
    assert before.expr_proto_hash == after.expr_proto_hash
    assert before.spec_fingerprint != after.spec_fingerprint


@pytest.mark.parametrize(
    ("rule", "path", "said"),
    [
        ("{then: end}", "responses[0]", "fits every answer"),
        ("{status: 4x, then: end}", "responses[0].status", "'4x' is not a status"),
        ("{status: 404, then: stop}", "responses[0].then", "is not one of ok"),
        ("{header: {x: '(a+)+'}, then: end}", "responses[0].header.x", "could take for ever"),
        ("{body: {path: $.a, matches: '('}, then: end}", "responses[0].body.matches", "not a regular expression"),
        ("{body: {path: '$.[', exists: true}, then: end}", "responses[0].body.path", "not a valid JSONPath"),
        ("{body: {path: $.a}, then: end}", "responses[0].body", "ask one thing"),
        ("{body: {path: $.a, equals: 1, exists: true}, then: end}", "responses[0].body", "ask one thing"),
        ("{status: 404, then: retry, wait: 3s}", "responses[0].wait", "for then: throttle"),
        ("{status: 404, then: end, covers: true}", "responses[0].covers", "for then: empty"),
    ],
)
def test_a_wrong_rule_is_refused_where_it_stands(rule: str, path: str, said: str) -> None:
    problem = only_problem(rules(rule))
    assert problem.severity == "error"
    assert problem.path.replace(".0", "[0]").startswith(f"endpoints.items.{path}"), problem.path
    assert said in problem.message


@pytest.mark.parametrize("status", ["401", "[403, 404]", "4xx"])
@pytest.mark.parametrize("then", ["ok", "empty", "end"])
def test_a_refused_credential_taken_for_no_records_is_told(status: str, then: str) -> None:
    problem = only_problem(rules(f"{{status: {status}, then: {then}}}"))
    assert (problem.severity, problem.code) == ("warning", "denied-ignored")


def test_text_that_records_may_mention_is_told() -> None:
    assert only_problem(rules("{contains: 频率, then: throttle}")).code == "contains-anywhere"
    assert problems_of(rules("{status: 429, contains: 频率, then: throttle}")) == []
    assert problems_of(rules("{body: {path: $.msg, contains: 频率}, then: throttle}")) == []
