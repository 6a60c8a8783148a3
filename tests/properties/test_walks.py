"""Walks: for any size of source and page, every item is seen once and the end is declared once."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from executor.paging import Seen, State, first_state, next_step, template_values
from ingest.errors import Unreadable
from ingest.spec.snapshot import Pagination

Source = Callable[[dict[str, Any]], tuple[list[int], Seen]]
sizes = st.integers(1, 7)
totals = st.integers(0, 40)


def seen(items: list[int], **hints: Any) -> Seen:
    return Seen(items=len(items), fingerprint=str(items) if items else "", **hints)


def walk(pagination: Pagination, source: Source) -> tuple[list[int], bool, int]:
    """Walk as the page loop does; return what was seen, whether the end was declared, and the pages asked for."""
    state: State | None = first_state(pagination)
    got: list[int] = []
    for number in range(1, 200):
        assert state is not None
        items, answer = source(template_values(pagination, state))
        step = next_step(pagination, state, answer)
        got += items
        state = step.following
        if state is None:
            return got, step.declared, number
        assert state["number"] == number + 1
        assert state["received"] == len(got)
    raise AssertionError("the walk does not end")


@given(
    totals,
    sizes,
    st.sampled_from([0, 1]),
    st.sampled_from(["short_page", "empty_page", "total_reached", "has_more_false"]),
)
def test_numbered_pages(total: int, size: int, base: int, stop: str) -> None:
    def source(page: dict[str, Any]) -> tuple[list[int], Seen]:
        start = (page["number"] - base) * page["size"]
        items = list(range(total))[start : start + page["size"]]
        return items, seen(items, total=total, has_more=start + page["size"] < total)

    pagination = Pagination(kind="PAGE", size=size, base=base, stop=(stop,))  # type: ignore[arg-type]
    got, declared, pages = walk(pagination, source)
    assert (got, declared) == (list(range(total)), True)
    assert pages <= total // size + 1 or stop == "empty_page"


@given(totals, sizes, sizes, st.sampled_from(["received", "asked"]), st.sampled_from(["empty_page", "total_reached"]))
def test_offsets_by_what_came_or_by_what_was_asked(total: int, size: int, cap: int, by: str, stop: str) -> None:
    """A source may give fewer than asked: then only `received` sees all."""
    assume(by == "received" or cap >= size)

    def source(page: dict[str, Any]) -> tuple[list[int], Seen]:
        items = list(range(total))[page["offset"] :][: min(page["size"], cap)]
        return items, seen(items, total=total)

    pagination = Pagination(kind="OFFSET", size=size, advance_by=by, stop=(stop,))  # type: ignore[arg-type]
    got, declared, _ = walk(pagination, source)
    assert (got, declared) == (list(range(total)), True)


@given(totals, sizes, st.data())
def test_offsets_over_a_list_with_holes(total: int, size: int, data: st.DataObject) -> None:
    """PubMed: positions count, and some of them hold nothing."""
    there = data.draw(st.lists(st.booleans(), min_size=total, max_size=total))
    for start in range(0, total, size):
        assume(any(there[start : start + size]))

    def source(page: dict[str, Any]) -> tuple[list[int], Seen]:
        items = [n for n in range(total)[page["offset"] :][: page["size"]] if there[n]]
        return items, seen(items, total=total)

    pagination = Pagination(kind="OFFSET", size=size, advance_by="asked", stop=("total_reached",))
    got, declared, _ = walk(pagination, source)
    assert (got, declared) == ([n for n in range(total) if there[n]], True)


@given(
    totals,
    sizes,
    st.sampled_from(["short_page", "no_next", "empty_page"]),
    st.booleans(),
    st.sampled_from(["TOKEN", "URL"]),
)
def test_tokens_and_urls(total: int, size: int, stop: str, always_next: bool, kind: str) -> None:
    """Some give a next on the last page too (Crossref), some do not; some give one more, empty page (OpenAlex)."""
    assume(not (stop == "no_next" and always_next))
    assume(not (stop != "no_next" and not always_next))

    def source(page: dict[str, Any]) -> tuple[list[int], Seen]:
        start = int((page["token"] or page["url"] or "at 0").split()[1])
        items = list(range(total))[start : start + size]
        more = start + size < total or always_next
        return items, seen(items, next_value=f"at {start + size}" if more else None)

    pagination = Pagination(kind=kind, size=size, stop=(stop,))  # type: ignore[arg-type]
    got, declared, _ = walk(pagination, source)
    assert (got, declared) == (list(range(total)), True)


@given(st.integers(1, 40), sizes, st.integers(1, 10))
def test_max_page_never_declares_an_end_it_did_not_see(total: int, size: int, most: int) -> None:
    def source(page: dict[str, Any]) -> tuple[list[int], Seen]:
        start = (page["number"] - 1) * page["size"]
        items = list(range(total))[start : start + page["size"]]
        return items, seen(items)

    pagination = Pagination(kind="PAGE", size=size, base=1, max_page=most, stop=("short_page",))
    got, declared, pages = walk(pagination, source)
    assert declared is (total < most * size)
    assert pages <= most
    assert declared is False or got == list(range(total))


@given(
    st.integers(1, 5),
    st.sampled_from(["PAGE", "OFFSET", "TOKEN", "URL"]),
    st.sampled_from(["short_page", "empty_page", "no_next"]),
)
def test_a_source_that_repeats_itself_never_ends_declared(after: int, kind: str, stop: str) -> None:
    asked = 0

    def source(_page: dict[str, Any]) -> tuple[list[int], Seen]:
        nonlocal asked
        asked += 1
        items = [min(asked, after)] * 3
        return items, seen(items, next_value=f"t{asked}")

    with pytest.raises(Unreadable):
        walk(Pagination(kind=kind, size=3, stop=(stop,) if kind in ("TOKEN", "URL") else ("empty_page",)), source)  # type: ignore[arg-type]
    assert asked == after + 1


@given(st.sampled_from(["PAGE", "OFFSET", "TOKEN", "URL"]), totals, st.data())
def test_no_answer_makes_a_walk_endless(kind: str, total: int, data: st.DataObject) -> None:
    """Whatever a source says, a walk ends, or fails loudly, or the source really gave something new each time."""
    rules = st.lists(
        st.sampled_from(["short_page", "empty_page", "no_next", "has_more_false", "total_reached"]), unique=True
    )
    pagination = Pagination(kind=kind, size=3, stop=tuple(data.draw(rules)))  # type: ignore[arg-type]
    state: State | None = first_state(pagination)
    empties = data.draw(st.booleans())
    for number in range(250):
        items = [] if empties and number > 3 else [number]
        next_value = data.draw(st.sampled_from([None, f"t{number}", "same"])) if number < 5 else f"t{number}"
        has_more = data.draw(st.none() | st.booleans()) if number < 5 else None
        try:
            answer = seen(items, next_value=next_value, total=total or None, has_more=has_more)
            state = next_step(pagination, state, answer).following
        except Unreadable:
            return
        if state is None:
            return
    assert not empties
