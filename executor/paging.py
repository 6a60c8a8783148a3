"""Paging: from (how the source pages, where we are, what came back) to where to go next (pure; B3, B4).

No clock, no I/O, no memory: a state is plain JSON, is committed with each page, and any worker can resume from it.
A walk ends `declared` when a stop rule ended it; only then may its window be covered.
"""

from dataclasses import dataclass
from typing import Any

from ingest.errors import Unreadable
from ingest.spec.snapshot import Pagination

State = dict[str, Any]
_MOST_EMPTY = 100  # pages in a row: some sources serve empty ones before the end, some for ever


@dataclass(frozen=True, slots=True)
class Seen:
    """What a pager needs to know of an answer."""

    items: int
    next_value: str | None = None  # token or url, as the answer gave it
    has_more: bool | None = None
    total: int | None = None
    fingerprint: str = ""  # hash of the items, for the repeated-page guard


@dataclass(frozen=True, slots=True)
class Step:
    """Where to go: the next state, or an end and why."""

    following: State | None
    declared: bool = False
    reason: str = ""


def first_state(pagination: Pagination) -> State:
    """Return the state that asks for the first page."""
    state: State = {"number": 1, "received": 0}
    match pagination.kind:
        case "OFFSET":
            state["offset"] = int(pagination.initial or 0)
        case "PAGE":
            state["page"] = int(pagination.initial) if pagination.initial is not None else pagination.base
        case "TOKEN":
            state["token"] = pagination.initial
        case "URL" | "NONE":
            pass
    return state


def template_values(pagination: Pagination, state: State) -> dict[str, Any]:
    """Return what templates see as `page`; None where a kind has no such thing, so the parameter is left out."""
    return {
        "size": pagination.size,
        "offset": state.get("offset"),
        "number": state.get("page"),
        "token": state.get("token"),
        "url": state.get("url"),
    }


def next_step(pagination: Pagination, state: State, seen: Seen) -> Step:
    """Return where to go after this answer.

    Raises `Unreadable` if the source repeats itself: the same items again, or a next that is where we are.
    """
    if seen.items and seen.fingerprint == state.get("fingerprint"):
        raise Unreadable(f"page {state['number']} repeats the page before it: the source is not advancing")
    received = state["received"] + seen.items
    reason = _stopped(pagination, state, seen)
    if reason is not None:
        return Step(None, declared=True, reason=reason)
    _check_progress(pagination, state, seen)
    if pagination.max_page is not None and state["number"] >= pagination.max_page:
        return Step(None, declared=False, reason=f"max_page {pagination.max_page}: there may be more")
    following = {"number": state["number"] + 1, "received": received, "fingerprint": seen.fingerprint}
    if not seen.items:
        following["empty"] = state.get("empty", 0) + 1
    match pagination.kind:
        case "OFFSET":
            following["offset"] = _next_offset(pagination, state, seen)
        case "PAGE":
            following["page"] = state["page"] + 1
        case "TOKEN":
            following["token"] = seen.next_value
        case "URL":
            following["url"] = seen.next_value
        case "NONE":
            return Step(None, declared=True, reason="single")
    return Step(following)


def _next_offset(pagination: Pagination, state: State, seen: Seen) -> int:
    asked = pagination.size if pagination.advance_by == "asked" else None
    return int(state["offset"]) + (asked or seen.items)


def _stopped(pagination: Pagination, state: State, seen: Seen) -> str | None:
    """Return the declared rule that ended the walk, asked in their order."""
    # an offset counts positions of the source's list, and by `asked` some of them may hold nothing
    offset = pagination.kind == "OFFSET"
    reached = _next_offset(pagination, state, seen) if offset else state["received"] + seen.items
    for rule in pagination.stop:
        match rule:
            case "single":
                return rule
            case "empty_page" if seen.items == 0:
                return rule
            case "short_page" if pagination.size is not None and seen.items < pagination.size:
                return rule
            case "no_next" if seen.next_value is None:
                return rule
            case "has_more_false" if seen.has_more is False:
                return rule
            case "total_reached" if seen.total is not None and reached >= seen.total:
                return rule
            case _:
                continue
    return None


def _check_progress(pagination: Pagination, state: State, seen: Seen) -> None:
    """Raise `Unreadable` where going on leads nowhere or in a circle, although no rule said that this is the end."""
    page, kind = state["number"], pagination.kind
    if kind in ("TOKEN", "URL"):
        if seen.next_value is None:
            raise Unreadable(f"no next {kind.lower()} in the answer, and no stop rule ({_names(pagination)}) holds")
        if seen.next_value == state.get(kind.lower()):
            raise Unreadable(f"page {page}: the source's next is the page it has just served")
    # behind the last page every page is empty, unless the source says that there is more
    ended = kind == "OFFSET" or (kind == "PAGE" and seen.has_more is not True)
    if seen.items == 0 and (ended or state.get("empty", 0) + 1 >= _MOST_EMPTY):
        raise Unreadable(f"an empty page before the end: none of the stop rules ({_names(pagination)}) holds")


def _names(pagination: Pagination) -> str:
    return ", ".join(pagination.stop) or "none declared"
