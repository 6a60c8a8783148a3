"""Partitions in source files: what is refused, and how they are kept (A4, D9)."""

import pytest

from ingest.spec.selection import selection_hash
from tests.unit.registry.writing import PLAIN, change, draft_of, problems_of

_GET = "    get: /items\n"
_USE = ('q: "{{ vars.term }}"', 'q: "{{ partition.symbol }}"')


def _partitioned(written: str, *more: tuple[str, str]) -> list[str]:
    found = problems_of((_GET, f"{_GET}    partition: {written}\n"), _USE, *more)
    return [problem.message for problem in found if problem.severity == "error"]


def test_listed_values_keep_their_order_and_are_text() -> None:
    text = change(PLAIN, (_GET, f"{_GET}    partition: {{symbol: [b, a, 3]}}\n"), _USE)
    (dimension,) = draft_of(text).compiled["items"].snapshot.partition.dimensions
    assert (dimension.name, dimension.values) == ("symbol", ("b", "a", "3"))


def test_which_values_are_listed_is_no_part_of_a_series_selection() -> None:
    one, two = (
        draft_of(change(PLAIN, (_GET, f"{_GET}    partition: {{symbol: {values}}}\n"), _USE)).compiled["items"].snapshot
        for values in ("[a]", "[a, b]")
    )
    assert selection_hash(one, "a") == selection_hash(two, "a") != selection_hash(two, "b")
    assert one.spec_fingerprint != two.spec_fingerprint


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("{symbol: [a, a]}", "listed twice"),
        ("{symbol: [a], other: [x/y]}", "only the first dimension"),
        ("{symbol: [a], other: [b]}", "no template uses it"),
        ("{symbol: [a], changed: true}", "no dimension has any"),
        ("{symbol: {from: a.b, field: 'x; y'}}", "cannot be a column"),
        ("{symbol: {from: a.b, field: x}, other: {from: c.d, field: x}}", "two datasets"),
        ("{symbol: []}", "at least one"),
        ("[a]", "expected dimensions"),
    ],
)
def test_a_partition_that_cannot_work_is_refused(written: str, message: str) -> None:
    assert any(message in found for found in _partitioned(written)), _partitioned(written)


def test_what_is_bound_to_the_partition_names_a_dimension_and_more_than_it_names_a_record() -> None:
    bound = ("title: text", "title: {partition: nothing}")
    assert _partitioned("{symbol: [a]}", bound) == ["'nothing' is not a dimension (symbol)"]
    alone = ("id: $.id", "id: {partition: symbol}")
    assert _partitioned("{symbol: [a]}", alone) == ["the partition alone names no record"]


def test_a_template_sees_only_the_dimensions_there_are() -> None:
    found = _partitioned("{symbol: [a]}", ("{{ page.number }}", "{{ partition.symbl }}"))
    assert any("symbl" in message for message in found)
