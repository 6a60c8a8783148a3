"""Paging: every walk ends once, by a rule it declared, or loudly."""

from typing import Any

import pytest

from executor.paging import Seen, Step, first_state, next_step, template_values
from ingest.errors import Unreadable
from ingest.spec.snapshot import Pagination


def pages(**values: Any) -> Pagination:
    return Pagination(**({"kind": "PAGE", "size": 10, "base": 1, "stop": ("short_page",)} | values))


def step(pagination: Pagination, seen: Seen, **state: Any) -> Step:
    return next_step(pagination, first_state(pagination) | state, seen)


@pytest.mark.parametrize(
    ("rules", "told"),
    [
        ({"kind": "PAGE", "base": 0}, {"number": 0}),
        ({"kind": "PAGE", "base": 1}, {"number": 1}),
        ({"kind": "PAGE", "initial": "5"}, {"number": 5}),
        ({"kind": "OFFSET"}, {"offset": 0}),
        ({"kind": "OFFSET", "initial": "20"}, {"offset": 20}),
        ({"kind": "TOKEN", "initial": "*"}, {"token": "*"}),
        ({"kind": "TOKEN"}, {}),
        ({"kind": "URL"}, {}),
        ({"kind": "NONE"}, {}),
    ],
)
def test_the_first_request_asks_for_the_beginning(rules: dict[str, Any], told: dict[str, Any]) -> None:
    pagination = pages(**rules)
    nothing = {"size": 10, "offset": None, "number": None, "token": None, "url": None}
    assert template_values(pagination, first_state(pagination)) == nothing | told


@pytest.mark.parametrize(
    ("rules", "seen", "following"),
    [
        ({"kind": "PAGE"}, Seen(items=10), {"page": 2}),
        ({"kind": "OFFSET"}, Seen(items=10), {"offset": 10}),
        (
            {"kind": "OFFSET", "advance_by": "asked", "stop": ("total_reached",)},
            Seen(items=7, total=99),
            {"offset": 10},
        ),
        ({"kind": "OFFSET", "stop": ("total_reached",)}, Seen(items=7, total=99), {"offset": 7}),
        ({"kind": "TOKEN"}, Seen(items=10, next_value="b"), {"token": "b"}),
        ({"kind": "URL"}, Seen(items=10, next_value="https://h/2"), {"url": "https://h/2"}),
    ],
)
def test_the_next_page_is_where_its_kind_says(rules: dict[str, Any], seen: Seen, following: dict[str, Any]) -> None:
    found = step(pages(**rules), seen)
    assert found.following is not None
    assert found.following.items() >= ({"number": 2, "received": seen.items} | following).items()
    assert not found.declared


@pytest.mark.parametrize(
    ("stop", "seen"),
    [
        ("short_page", Seen(items=9)),
        ("short_page", Seen(items=0)),
        ("empty_page", Seen(items=0)),
        ("no_next", Seen(items=10)),
        ("has_more_false", Seen(items=10, has_more=False)),
        ("total_reached", Seen(items=10, total=10)),
        ("total_reached", Seen(items=0, total=0)),
        ("single", Seen(items=10)),
    ],
)
@pytest.mark.parametrize("kind", ["PAGE", "OFFSET", "TOKEN", "URL"])
def test_a_declared_rule_ends_the_walk(kind: str, stop: str, seen: Seen) -> None:
    assert step(pages(kind=kind, stop=(stop,)), seen) == Step(None, declared=True, reason=stop)


@pytest.mark.parametrize(
    ("stop", "seen"),
    [
        ("short_page", Seen(items=10)),
        ("short_page", Seen(items=11)),
        ("empty_page", Seen(items=1)),
        ("has_more_false", Seen(items=3, has_more=True)),
        ("has_more_false", Seen(items=3)),
        ("total_reached", Seen(items=3, total=4)),
        ("total_reached", Seen(items=3)),
    ],
)
def test_a_rule_that_does_not_hold_ends_nothing(stop: str, seen: Seen) -> None:
    assert step(pages(stop=(stop,)), seen).following is not None


def test_any_of_several_rules_ends_the_walk() -> None:
    pagination = pages(kind="TOKEN", stop=("no_next", "empty_page"))
    assert step(pagination, Seen(items=0, next_value="t")).reason == "empty_page"
    assert step(pagination, Seen(items=5)).reason == "no_next"


def test_a_source_without_pages_is_one_page() -> None:
    assert step(pages(kind="NONE", stop=()), Seen(items=3)) == Step(None, declared=True, reason="single")


def test_max_page_ends_a_walk_without_declaring_its_end() -> None:
    found = step(pages(max_page=3), Seen(items=10), number=3)
    assert found.following is None
    assert not found.declared
    assert "max_page 3" in found.reason


def test_a_walk_that_ends_on_its_last_allowed_page_is_declared() -> None:
    assert step(pages(max_page=3), Seen(items=9), number=3).declared


@pytest.mark.parametrize("kind", ["PAGE", "OFFSET", "TOKEN", "URL"])
def test_a_page_that_comes_twice_is_a_source_that_does_not_advance(kind: str) -> None:
    pagination = pages(kind=kind)
    first = step(pagination, Seen(items=10, next_value="a", fingerprint="f"))
    assert first.following is not None
    with pytest.raises(Unreadable, match="repeats the page before it"):
        next_step(pagination, first.following, Seen(items=10, next_value="b", fingerprint="f"))


def test_a_repeated_page_is_not_taken_for_the_end() -> None:
    with pytest.raises(Unreadable):
        step(pages(), Seen(items=3, fingerprint="f"), fingerprint="f")


@pytest.mark.parametrize(("kind", "state"), [("TOKEN", {"token": "a"}), ("URL", {"url": "a"})])
def test_a_next_that_is_where_we_are_is_a_circle(kind: str, state: dict[str, str]) -> None:
    with pytest.raises(Unreadable, match="has just served"):
        step(pages(kind=kind), Seen(items=10, next_value="a"), **state)


def test_europe_pmc_ends_with_an_empty_page_and_its_own_token_back() -> None:
    assert step(pages(kind="TOKEN", stop=("empty_page",)), Seen(items=0, next_value="a"), token="a").declared


@pytest.mark.parametrize("kind", ["TOKEN", "URL"])
def test_a_missing_next_is_the_end_only_where_a_rule_says_so(kind: str) -> None:
    with pytest.raises(Unreadable, match=r"no next .* no stop rule \(short_page\) holds"):
        step(pages(kind=kind), Seen(items=10))


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        ("OFFSET", Seen(items=0, total=99)),
        ("OFFSET", Seen(items=0, total=99, has_more=True)),
        ("PAGE", Seen(items=0, total=99)),
        ("PAGE", Seen(items=0)),
    ],
)
def test_an_empty_page_before_the_end_is_loud(kind: str, seen: Seen) -> None:
    with pytest.raises(Unreadable, match="an empty page before the end"):
        step(pages(kind=kind, stop=("total_reached",)), seen)


@pytest.mark.parametrize(
    ("rules", "seen"),
    [
        ({"kind": "PAGE", "stop": ("has_more_false",)}, Seen(items=0, has_more=True)),
        ({"kind": "TOKEN", "stop": ("no_next",)}, Seen(items=0, next_value="b")),
    ],
)
def test_an_empty_page_may_be_followed_by_others_but_not_for_ever(rules: dict[str, Any], seen: Seen) -> None:
    pagination = pages(**rules)
    assert step(pagination, seen).following is not None
    with pytest.raises(Unreadable, match="empty page"):
        step(pagination, seen, empty=99)


def test_a_page_with_items_ends_a_run_of_empty_ones() -> None:
    pagination = pages(kind="TOKEN", stop=("no_next",))
    found = step(pagination, Seen(items=3, next_value="b"), empty=99)
    assert found.following is not None
    assert "empty" not in found.following


def test_a_total_is_reached_by_position_where_some_positions_are_empty() -> None:
    # PubMed: retstart counts the list of ids, of which suppressed ones do not come
    pagination = pages(kind="OFFSET", advance_by="asked", stop=("total_reached",))
    assert step(pagination, Seen(items=4, total=25), offset=20, received=18).reason == "total_reached"
    assert step(pagination, Seen(items=10, total=25), offset=10, received=9).following is not None


def test_a_state_is_plain_json() -> None:
    found = step(pages(kind="TOKEN"), Seen(items=10, next_value="b", fingerprint="f"))
    assert found.following == {"number": 2, "received": 10, "fingerprint": "f", "token": "b"}
