"""What people read: counts, spans, moments and tables, each with one right text."""

from datetime import UTC, datetime, timedelta

import pytest

from ingest.cli import texts

NOW = datetime(2026, 11, 18, 4, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0"), (950, "950"), (1_000, "1k"), (1_200, "1.2k"), (34_017, "34k"), (1_240_000, "1.2M"), (10**10, "10G")],
)
def test_short_count_keeps_two_figures(count: int, text: str) -> None:
    assert texts.short_count(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (-5, "0s"),
        (0.25, "250ms"),
        (3.7, "3.7s"),
        (41, "41s"),
        (60, "1m"),
        (4_320, "1h12m"),
        (3_601, "1h"),
        (273_600, "3d4h"),
    ],
)
def test_short_span_shows_its_two_largest_units(seconds: float, text: str) -> None:
    assert texts.short_span(timedelta(seconds=seconds)) == text


def test_ago_tells_never_from_now() -> None:
    assert texts.ago(None, NOW) == "-"
    assert texts.ago(NOW, NOW) == "just now"
    assert texts.ago(NOW - timedelta(minutes=2, milliseconds=300), NOW) == "2m ago"


@pytest.mark.parametrize(
    ("moment", "text"),
    [
        (None, "-"),
        (datetime(2026, 11, 18, tzinfo=UTC), "2026-11-18"),
        (datetime(2026, 11, 18, 4, 0, tzinfo=UTC), "2026-11-18 04:00Z"),
        (datetime(2026, 11, 18, 4, 0, 7, tzinfo=UTC), "2026-11-18 04:00:07Z"),
    ],
)
def test_short_moment_leaves_out_what_is_zero(moment: datetime | None, text: str) -> None:
    assert texts.short_moment(moment) == text


def test_short_moment_is_utc_whatever_zone_it_came_in() -> None:
    tokyo = datetime.fromisoformat("2026-11-18T09:00:00+09:00")
    assert texts.short_moment(tokyo) == "2026-11-18"


def test_short_window_names_a_day_once() -> None:
    assert texts.short_window(NOW, NOW + timedelta(hours=1)) == "2026-11-18 04:00Z .. 05:00Z"
    assert texts.short_window(NOW - timedelta(days=1), NOW) == "2026-11-17 04:00Z .. 2026-11-18 04:00Z"
    assert texts.short_window(datetime(1970, 1, 1, tzinfo=UTC), NOW) == "all up to 2026-11-18 04:00Z"
    assert texts.short_window(None, None) == "-"


def test_next_at_is_relative_when_near_and_a_date_when_far() -> None:
    assert texts.next_at(None, NOW) == "-"
    assert texts.next_at(NOW - timedelta(seconds=1), NOW) == "due"
    assert texts.next_at(NOW + timedelta(seconds=41), NOW) == "in 41s"
    assert texts.next_at(NOW + timedelta(hours=2), NOW) == "06:00Z (in 2h)"
    assert texts.next_at(NOW + timedelta(days=3), NOW) == "2026-11-21 04:00Z (in 3d)"


def test_shorten_makes_one_line_of_many() -> None:
    assert texts.shorten("a\n  b", 10) == "a b"
    assert texts.shorten("abcdefgh", 5) == "abcd…"


def test_table_aligns_and_has_no_trailing_blanks() -> None:
    lines = texts.table(["NAME", "N"], [["a", "1"], ["longer", "1,000"]], right=("N",))
    assert lines == ["NAME        N", "a           1", "longer  1,000"]
    assert texts.table(["NAME", "N"], []) == ["NAME  N"]


def test_table_shortens_only_its_last_column_to_fit_the_terminal() -> None:
    lines = texts.table(["NAME", "TEXT"], [["crossref", "x" * 100]], width=40)
    assert [len(line) for line in lines[1:]] == [40]
    assert lines[1].startswith("crossref  xxx")


def test_details_leave_out_what_is_empty() -> None:
    assert texts.details([("a", "1"), ("longer", "2"), ("none", "")]) == ["a       1", "longer  2"]


def test_did_you_mean_names_one_or_lists_a_few() -> None:
    assert texts.did_you_mean("crosref", ["crossref", "pubmed"]) == " - did you mean 'crossref'?"
    assert texts.did_you_mean("zzz", ["pubmed", "crossref"]) == " (known: crossref, pubmed)"
    assert texts.did_you_mean("zzz", []) == ""


def test_plural_counts_as_people_do() -> None:
    assert texts.plural(1, "run") == "1 run"
    assert texts.plural(25_000, "record") == "25,000 records"
