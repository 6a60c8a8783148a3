"""Rows in the words of the file: what differs, said as people write it."""

import pytest

from registry.describe import compare, describe
from registry.explain import explain
from registry.report import LostCoverage
from tests.unit.registry.writing import PLAIN, change, compiled_of, draft_of


def _changes(*replacements: tuple[str, str]) -> list[tuple[str, object, object]]:
    found = compare(draft_of(PLAIN).rows, draft_of(change(PLAIN, *replacements)).rows)
    return [(c.path, c.old, c.new) for c in found]


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (("max: 1d", "max: 6h"), ("endpoints.items.window.max", "1d", "6h")),
        (("rate: 10/s", "rate: 200/min"), ("rate.windows", ["10/1s"], ["200/1m"])),
        (("term: cats", "term: dogs"), ("vars.term", "cats", "dogs")),
        (("{every: 1h}", "{every: 30m}"), ("endpoints.items.schedule.every", "1h", "30m")),
        (("title: text", "title: $.t"), ("endpoints.items.columns.title", "$.title", "$.t")),
        (("title: text", "title: int"), ("endpoints.items.columns.title.type", "text", "int")),
        (("get: /items", "get: /things"), ("endpoints.items.get", "/items", "/things")),
        (("size: 100", "size: 50"), ("endpoints.items.pagination.size", 100, 50)),
        (('q: "{{ vars.term }}"', "q: x"), ("endpoints.items.query.q", "{{ vars.term }}", "x")),
    ],
)
def test_one_change_is_one_line_old_and_new(written: tuple[str, str], expected: tuple[str, object, object]) -> None:
    assert _changes(written) == [expected]


def test_what_is_added_had_no_value_and_what_is_gone_has_none() -> None:
    added = "title: text\n      year: int"
    assert _changes(("title: text", added)) == [
        ("endpoints.items.columns.year", None, "$.year"),
        ("endpoints.items.columns.year.type", None, "int"),
    ]
    assert _changes((", total: $.total", "")) == [("endpoints.items.records.total", "$.total", None)]


def test_equal_files_differ_in_nothing_however_they_are_written() -> None:
    same = (
        ("max: 1d", "max: 24h"),
        ("title: text", "title: {path: $.title, type: string}"),
        ("rate: 10/s", "rate: [10/1s]"),
    )
    assert _changes(*same) == []


def test_a_new_order_of_columns_is_a_change() -> None:
    text = change(PLAIN, ("title: text", "title: text\n      year: int"))
    turned = change(PLAIN, ("title: text", "year: int\n      title: text"))
    changes = compare(draft_of(text).rows, draft_of(turned).rows)
    assert [c.path for c in changes] == ["(order of entries)"]


def test_a_variable_from_the_environment_is_seen_in_the_description() -> None:
    text = change(PLAIN, ("https://api.example.org/v1", "${BASE:-https://api.example.org}"))
    assert describe(draft_of(text).rows)["base_url"] == "https://api.example.org"
    assert (
        describe(draft_of(text, environment={"BASE": "https://other.example"}).rows)["base_url"]
        == "https://other.example"
    )


def test_show_has_a_line_for_every_value_with_its_origin() -> None:
    lines = {line.path: (line.value, line.origin) for line in explain(compiled_of())}
    assert lines["window.max_s"] == ("1d", "endpoint window_offset_cfg")
    assert lines["retry.max_attempts"] == ("5", "platform")
    assert lines["rate.windows"] == ("10/1s", "source rate_limit_cfg")
    assert lines["rate.rate_per_s"] == ("-", "derived: windows are declared")
    assert lines["pagination.stop"] == ("short_page", "derived: kind page")
    assert lines["mapping.columns.title"] == ("$.title text", "endpoint expr_field_dict")
    assert lines["mapping.identity.provider_id"] == ("$.id text", "endpoint expr_field_dict")
    assert lines["http.query.q"] == ("{{ vars.term }}", "endpoint api_param_map")
    assert lines["expr.vars.term"] == ("cats", "source")


def test_lost_coverage_says_how_much_and_how_to_keep_it() -> None:
    lost = LostCoverage(series_id=1, partition_key="", covered_seconds=86400 * 31, new_selection_hash="h")
    assert str(lost) == "selection changed: 31d of coverage no longer applies (--keep-coverage copies it)"
