"""The merge order of A3, level by level, and what the result says about where values came from."""

import pytest

from registry.builtin import BUILTIN
from registry.compile import compile_rows
from registry.document import Overrides
from registry.expand import read_overrides
from registry.merge import Level, merge
from tests.unit.registry.writing import PLAIN, change, compiled_of, draft_of

_LEVELS = ["platform", "source defaults", "source retry_cfg", "endpoint", "endpoint retry_cfg", "trigger"]


@pytest.mark.parametrize("highest", range(6))
def test_each_level_beats_the_ones_below_it(highest: int) -> None:
    text = PLAIN
    if highest >= 1:
        text = change(text, ("rate: 10/s", "rate: 10/s\ndefaults: {retry: {attempts: 11}}"))
    if highest >= 2:
        text = change(text, ("rate: 10/s", "rate: 10/s\nretry: {attempts: 12}"))
    if highest >= 4:
        text = change(text, ("get: /items", "get: /items\n    retry: {attempts: 14}"))
    rows = draft_of(text).rows
    if highest >= 3:
        rows["reg_prov_endpoint_def"][0]["overrides"] = {"retry": {"max_attempts": 13}}
    overrides = {"retry": {"max_attempts": 15}} if highest >= 5 else None
    compiled = compile_rows(rows, BUILTIN, "items", overrides=overrides)  # type: ignore[arg-type]
    assert compiled.snapshot.retry.max_attempts == (5, 11, 12, 13, 14, 15)[highest]
    assert compiled.origins["retry.max_attempts"] == _LEVELS[highest]


def test_levels_are_merged_value_by_value_not_section_by_section() -> None:
    compiled = compiled_of(
        ("rate: 10/s", "rate: 10/s\nretry: {attempts: 3, cap: 1m}"),
        ("get: /items", "get: /items\n    retry: {cap: 2m}"),
    )
    assert (compiled.snapshot.retry.max_attempts, compiled.snapshot.retry.cap_s) == (3, 120)
    assert compiled.origins["retry.max_attempts"] == "source retry_cfg"
    assert compiled.origins["retry.cap_s"] == "endpoint retry_cfg"


def test_an_explicit_false_or_zero_beats_a_default() -> None:
    compiled = compiled_of(("rate: 10/s", "rate: 10/s\nhttp: {compression: false}\nretry: {jitter: 0}"))
    assert compiled.snapshot.http.compression is False
    assert compiled.snapshot.retry.jitter == 0


def test_parameters_and_vars_merge_by_name() -> None:
    compiled = compiled_of(
        (
            "vars: {term: cats}",
            "vars: {term: cats, more: x}\nquery: {q: source, lang: en}\nheaders: {User-Agent: source}",
        ),
        ("get: /items", "get: /items\n    vars: {term: dogs}\n    headers: {user-agent: endpoint}"),
    )
    assert compiled.snapshot.expr.vars == {"term": "dogs", "more": "x"}
    assert compiled.snapshot.http.query["q"] == "{{ vars.term }}"
    assert compiled.snapshot.http.query["lang"] == "en"
    assert compiled.snapshot.http.headers == {"user-agent": "endpoint"}
    assert compiled.origins["expr.vars.term"] == "endpoint"
    assert compiled.origins["expr.vars.more"] == "source"
    assert compiled.origins["http.query.lang"] == "source api_param_map"
    assert compiled.origins["http.query.q"] == "endpoint api_param_map"


def test_a_trigger_overrides_in_the_words_of_a_file() -> None:
    written = Overrides.model_validate(
        {"pagination": {"size": 7}, "window": {"max": "1h"}, "vars": {"term": "owls"}, "budget": {"requests": 3}}
    )
    overrides = read_overrides(written, BUILTIN.dictionary)
    compiled = compile_rows(draft_of(PLAIN).rows, BUILTIN, "items", overrides=overrides)
    assert (compiled.snapshot.pagination.size, compiled.snapshot.window.max_s) == (7, 3600)
    assert compiled.snapshot.expr.vars["term"] == "owls"
    assert compiled.snapshot.budget.max_requests == 3
    assert {compiled.origins[path] for path in ("pagination.size", "window.max_s", "expr.vars.term")} == {"trigger"}


def test_none_declares_nothing() -> None:
    merged = merge([Level("low", None, {"a": {"b": 1}}), Level("high", (), {"a": {"b": None}})])
    assert merged["a"]["b"].value == 1
    assert merged["a"]["b"].origin == "low"
