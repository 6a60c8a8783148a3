"""What a person wrote in the wrong shape is told in plain words, at its place, all of it at once."""

# ruff: noqa: E501 -- one mistake, one line

import pytest

from registry.problems import format_problem, summarize
from tests.unit.registry.writing import PLAIN, change, draft_of, only_problem, place_of, problems_of


def test_the_plain_file_is_valid() -> None:
    assert problems_of() == []


@pytest.mark.parametrize(
    ("old", "new", "path", "message"),
    [
        ("base: 1, size: 100", "base: 1, size: many", "endpoints.items.pagination.size", "expected a whole number, got 'many'"),
        ("size: 100", "size: 0", "endpoints.items.pagination.size", "0 is out of range: at least 1"),
        ("size: 100", "size: true", "endpoints.items.pagination.size", "expected a whole number, got true"),
        ("rate: 10/s", "rate: ten", "rate", "'ten' is not a rate: write 10/s, 200/min or 195/60s"),
        ("rate: 10/s", "rate: 10", "rate", "expected a mapping, got 10"),
        ("max: 1d", "max: 90", "endpoints.items.window.max", "expected a duration such as 15m, got 90"),
        ("max: 1d", "max: soon", "endpoints.items.window.max", "'soon' is not a duration: write 90s, 15m, 1h30m, 7d or PT15M"),
        ("start: 2024-01-01", "start: yesterday", "endpoints.items.window.start", "'yesterday' is not a date"),
        ("start: 2024-01-01", "start: 2024-13-01", "endpoints.items.window.start", "'2024-13-01' is not a date"),
        ("{every: 1h}", "{every: 30s}", "schedule", "'every' is at least 60s"),
        ("{every: 1h}", "{every: 1h, cron: 0 2 * * *}", "schedule", "a schedule is 'every: 1h', 'once: "),
        ("{every: 1h}", "{cron: 61 * * * *}", "schedule", "'61 * * * *' is not a cron expression: bad minute"),
        ("{every: 1h}", "{cron: 0 0 30 2 *}", "schedule", "bad day-of-month"),
        ("{every: 1h}", "{quiet: 22-6}", "schedule", "'22-6' is not a stretch of hours"),
        ("{every: 1h}", "{zone: Mars/Olympus}", "schedule", "'Mars/Olympus' is not a time zone"),
        ("{every: 1h}", "{every: 1h, once: 2024-01-01}", "schedule", "one of them"),
        ("source: plain", "source: Plain", "source", "'Plain' is not a name here"),
        ("base_url: https://api.example.org/v1", "base_url: 5", "base_url", "expected text, got 5"),
        ("    get: /items", "    get: /items\n    post: /items", "endpoints.items", "either 'get: /path' or 'post: /path'"),
        ("    get: /items\n", "", "endpoints.items", "either 'get: /path' or 'post: /path'"),
        ("id: $.id, ", "", "endpoints.items.records.id", "'id' is missing"),
        ("title: text", "title: 5", "endpoints.items.columns.title", "expected a mapping, got 5"),
        ('q: "{{ vars.term }}"', "q: [a, b]", "endpoints.items.query.q", "expected one value, got a list"),
        ("vars: {term: cats}", "vars: {term: }", "vars.term", "expected one value, got nothing"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_named_with_what_was_expected(old: str, new: str, path: str, message: str) -> None:
    problem = only_problem((old, new))
    assert problem.path == path
    assert message in problem.message


@pytest.mark.parametrize(
    ("old", "new", "key", "hint"),
    [
        ("schedule:", "shedule:", "shedule", "did you mean 'schedule'?"),
        ("filter: server", "filtr: server", "filtr", "did you mean 'filter'?"),
        ("id: $.id", "id: {path: $.id, lowr: true}", "lowr", "did you mean 'lower'?"),
        ("title: text", "title: {typ: text}", "typ", "did you mean 'type'?"),
        ("source: plain", "source: plain\nauth: {type: bearer, sekret: env:X}", "sekret", "did you mean 'secret'?"),
    ],
)
def test_an_unknown_key_is_named_at_the_key_with_what_was_meant(old: str, new: str, key: str, hint: str) -> None:
    text = change(PLAIN, (old, new))
    problem = next(problem for problem in draft_of(text).problems if problem.code == "unknown-key")
    assert problem.message == f"unknown key '{key}'"
    assert problem.hint == hint
    assert (problem.line, problem.column) == place_of(text, key)


def test_a_problem_prints_its_line_a_caret_and_the_hint() -> None:
    text = change(PLAIN, ("max: 1d", "ends: inclusiv"))
    problem = draft_of(text).problems[0]
    line, column = place_of(text, "inclusiv")
    assert format_problem(problem) == (
        f"plain.yaml:{line}:{column}: error: endpoints.items.window.ends: "
        "'inclusiv' is not one of exclusive, inclusive\n"
        f"{line:>5} | {text.splitlines()[line - 1]}\n"
        f"      | {' ' * (column - 1)}^ did you mean 'inclusive'?"
    )


def test_all_problems_of_a_file_are_told_at_once() -> None:
    problems = problems_of(
        ("source: plain", "source: PLAIN"), ("rate: 10/s", "rate: x"), ("size: 100", "size: many"), ("max:", "mx:")
    )
    assert [problem.line for problem in problems] == sorted(problem.line for problem in problems)
    assert len(problems) == 4
    assert summarize(problems, files=1) == "4 errors, 0 warnings in 1 file."


def test_a_wrong_secret_is_never_echoed() -> None:
    problem = only_problem(("source: plain", "source: plain\nauth: {type: bearer, secret: 31337}"))
    assert "31337" not in format_problem(problem)
    assert "31337" not in str(problem.as_data())


def test_the_json_form_has_the_place_and_the_hint() -> None:
    data = only_problem(("schedule:", "shedule:")).as_data()
    assert data == {
        "file": "plain.yaml",
        "line": 5,
        "column": 1,
        "severity": "error",
        "code": "unknown-key",
        "path": "",
        "message": "unknown key 'shedule'",
        "hint": "did you mean 'schedule'?",
    }


def test_an_endpoint_is_needed() -> None:
    problem = draft_of("source: plain\nbase_url: https://x.example\nendpoints: {}\n").problems[0]
    assert (problem.path, problem.message) == ("endpoints", "at least one is needed")
