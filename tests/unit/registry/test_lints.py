"""Lints: each by the mistake it finds, and silent where there is none."""

from tests.unit.registry.writing import only_problem, problems_of

_WINDOW = "window: {filter: server, field: updated, start: 2024-01-01, precision: second, max: 1d}"
_NO_BOUNDS = [('      from: "{{ window.from }}"\n', ""), ('      to: "{{ window.to }}"\n', "")]


def test_a_window_field_without_a_filter_is_told() -> None:
    problem = only_problem(*_NO_BOUNDS, (_WINDOW, "window: {filter: none, field: updated}"))
    assert (problem.severity, problem.code) == ("warning", "cursor-unfiltered")
    assert problem.path == "endpoints.items.window.field"
    assert "filter: server" in problem.hint


def test_a_full_walk_that_names_no_field_is_not_told() -> None:
    assert problems_of(*_NO_BOUNDS, (_WINDOW, "window: {filter: none}")) == []


def test_a_page_of_an_absurd_size_is_refused() -> None:
    problem = only_problem(("size: 100}", "size: 100001}"))
    assert (problem.severity, problem.path) == ("error", "endpoints.items.pagination.size")
    assert problems_of(("size: 100}", "size: 100000}")) == []
