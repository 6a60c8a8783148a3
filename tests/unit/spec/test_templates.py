"""Templates: they fill in values, and can do nothing else."""

import time
from typing import Any

import pytest

from ingest.errors import RequestInvalid
from ingest.spec.templates import check_template, compile_template, used_vars

CONTEXT = {
    "vars": {"term": "neoplasms", "none": None, "list": [1, "b"], "flag": True},
    "window": {"from": "2024-01-01", "to": None},
    "page": {"size": 100, "token": None},
    "partition": {},
}


def render(text: str) -> Any:
    return compile_template(text)(CONTEXT)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("plain", "plain"),
        ("{{ page.size }}", 100),
        ("  {{ page.size }} ", 100),
        ("{{- page.size -}}", 100),
        ("{{-5}}", 5),
        ("{{ -5 }}", -5),
        ("{{ page.size + 1 }}", 101),
        ("{{ window.to }}", None),
        ("{{ vars.none | lower }}", None),
        ("{{ vars['term'] }}", "neoplasms"),
        ("{{ vars.list[0] }}", 1),
        ("{{ vars.list }}", [1, "b"]),
        ("{{ coalesce(window.to, 'open') }}", "open"),
        ("{{ window.to | default('open') }}", "open"),
        ("{{ concat(vars.term, vars.none, '!') }}", "neoplasms!"),
        ("{{ 'a' if page.token is none else page.token }}", "a"),
        ("from:{{ window.from }},n:{{ page.size }}", "from:2024-01-01,n:100"),
        ("flag={{ vars.flag }}", "flag=true"),
        ("{# why #}x", "x"),
        ("{{ '}}' }}", "}}"),
    ],
)
def test_a_template_renders(text: str, value: Any) -> None:
    assert render(text) == value


def test_a_time_is_written_in_iso_8601_utc() -> None:
    assert str(render("{{ now() }}")).endswith("Z")
    assert "T" in render("at {{ now() }}")
    assert len(render("{{ now() | formatDateTime('%Y%m%d') }}")) == 8


@pytest.mark.parametrize(
    "text",
    [
        "{{ missing }}",
        "{{ vars.missing }}",
        "{{ [vars.missing] }}",
        "x{{ vars.missing }}",
        "{{ vars.term.upper }}",
        "{{ vars.__class__ }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ now().__class__ }}",
        "{{ self }}",
        "{{ 'x' | int }}",
        "{{ page.size | formatDateTime('%Y') }}",
        "{{ vars.term + 1 }}",
        "{{ vars.term * 1000000000 }}",
        "{{ vars.list * 1000000000 }}",
        "{{ 1e308 * 10 }}",
        "{{ vars.term < 5 }}",
        "{{ concat(**vars) }}",
    ],
)
def test_a_template_that_fails_says_so_by_one_error(text: str) -> None:
    with pytest.raises(RequestInvalid):
        render(text)


@pytest.mark.parametrize("text", ["until:{{ window.to }}", "ids={{ vars.list }}"])
def test_null_or_a_list_inside_a_text_is_refused(text: str) -> None:
    with pytest.raises(RequestInvalid, match="inside a text"):
        render(text)


@pytest.mark.parametrize(
    "text",
    [
        "{% for x in vars %}{{ x }}{% endfor %}",
        "{% set x = 1 %}{{ x }}",
        "{% include 'x' %}",
        "{% macro f() %}{% endmacro %}",
        "{{ lipsum(n=20000) }}",
        "{{ range(10) }}",
        "{{ cycler() }}",
        "{{ vars.term.upper() }}",
        "{{ vars | attr('__class__') }}",
        "{{ '%s' | format(1) }}",
        "{{ 10 ** 9 }}",
        "{{ 'a' * 1000000000 }}",
        "{{ 7 % 2 }}",
        "{{ {'a': 1} }}",
        "{{ vars.list[0:1] }}",
        "{{ 'a' ~ vars.none }}",
        "{{ now }}",
        "{{ concat }}",
        "{{ concat.__globals__ }}",
        "{{ 1 is divisibleby(1) }}",
        "{{ }}",
        "{{",
        "x" * 5000,
    ],
)
def test_what_a_template_may_not_be_made_of_is_refused_before_it_runs(text: str) -> None:
    assert check_template(text, names=None)
    with pytest.raises(RequestInvalid):
        compile_template(text)


@pytest.mark.parametrize(
    "text",
    [
        "{{ " + "(" * 1500 + "1" + ")" * 1500 + " }}",
        "{{ " + "+".join(["1"] * 900) + " }}",
        "{{ " + "not " * 900 + "1 }}",
        "{{ " + "[" * 1500 + "]" * 1500 + " }}",
        "{{ " + "-" * 3000 + "1 }}",
    ],
    ids=["parentheses", "sum", "not", "lists", "minus"],
)
def test_deep_nesting_is_refused_and_does_not_break_the_compiler(text: str) -> None:
    assert [problem.message for problem in check_template(text, names=None)] == ["nested more than 50 deep"]


def test_output_is_capped() -> None:
    render_long = compile_template("{{ vars.term }}" * 20)
    with pytest.raises(RequestInvalid, match="characters"):
        render_long({"vars": {"term": "x" * 1000}})


def test_a_width_in_a_time_format_does_not_take_the_memory() -> None:
    started = time.monotonic()
    assert render("{{ now() | formatDateTime('%1000000000Y') }}") == ""
    assert time.monotonic() - started < 1


def test_unknown_names_are_told_with_what_was_meant() -> None:
    names = {"vars": ("term",), "window": ("from", "to"), "page": ("size", "token")}
    (problem,) = check_template("a {{ window.form }}", names=names)
    assert problem.hint == "did you mean 'from'?"
    assert problem.offset == "a {{ window.form }}".index("form")
    (problem,) = check_template("{{ windw.from }}", names=names)
    assert "'windw' is not a name" in problem.message
    (problem,) = check_template("{{ vars['trem'] }}", names=names)
    assert problem.hint == "did you mean 'term'?"
    assert check_template("{{ coalesce(page.token, vars['term']) }}", names=names) == []


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("{{ vars.a }}", {"a"}),
        ("{{ vars['a'] }} {{ vars.b }}", {"a", "b"}),
        ("{{ page.size }}", set()),
        ("{{ vars }}", {"a", "b", "c"}),
        ("{{ concat(vars) }}", {"a", "b", "c"}),
        ("{{ vars[page.token] }}", {"a", "b", "c"}),
        ("{{ broken", set()),
    ],
)
def test_the_vars_a_text_uses_are_known(text: str, used: set[str]) -> None:
    assert used_vars(text, ("a", "b", "c")) == used
