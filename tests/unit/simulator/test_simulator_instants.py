"""Texts name spans of seconds; bounds round up."""

import pytest

from simulator.instants import BEGINNING, END, format_instant, parse_bound, parse_unit, parse_window


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("2024", "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z"),
        ("2024-02", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"),
        ("2024/02/28", "2024-02-28T00:00:00Z", "2024-02-29T00:00:00Z"),
        ("2024-12-31T23", "2024-12-31T23:00:00Z", "2025-01-01T00:00:00Z"),
        ("2024-01-05 10:11", "2024-01-05T10:11:00Z", "2024-01-05T10:12:00Z"),
        ("2024-01-05T10:11:12", "2024-01-05T10:11:12Z", "2024-01-05T10:11:13Z"),
        ("2024-01-05T10:11:12+02:00", "2024-01-05T08:11:12Z", "2024-01-05T08:11:13Z"),
        ("2024-01-05T10:11:12-0130", "2024-01-05T11:41:12Z", "2024-01-05T11:41:13Z"),
    ],
)
def test_a_text_names_a_unit_of_its_own_precision(text: str, low: str, high: str) -> None:
    assert tuple(map(format_instant, parse_unit(text))) == (low, high)


@pytest.mark.parametrize("text", ["", "soon", "2024-13-01", "2024-02-30", "2024-01-01T", "2024-01-01T24:00:00Z"])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_unit(text)


def test_a_bound_is_the_first_second_not_before_it() -> None:
    assert parse_bound("1970-01-01T00:00:07Z") == 7
    assert parse_bound("1970-01-01T00:00:07.000Z") == 7
    assert parse_bound("1970-01-01T00:00:07.001Z") == 8


def test_missing_ends_are_open() -> None:
    assert parse_window(None, "") == (BEGINNING, END)
