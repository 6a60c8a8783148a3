"""Checks of the walk: each kind has what it needs, its rivals are excluded, its end is certain (B3, B4)."""

import re
from collections.abc import Iterator

from registry.checks.subject import Subject, error, warning
from registry.problems import Finding

# What a template may use of `page` under each kind.
PAGE_NAMES = {
    "NONE": (),
    "OFFSET": ("offset", "size"),
    "PAGE": ("number", "size"),
    "TOKEN": ("token", "size"),
    "URL": ("size",),
}
_POSITION = {"OFFSET": "offset", "PAGE": "number", "TOKEN": "token"}
_STOPS = {
    "NONE": {"single"},
    "OFFSET": {"short_page", "empty_page", "has_more_false", "total_reached"},
    "PAGE": {"short_page", "empty_page", "has_more_false", "total_reached"},
    "TOKEN": {"short_page", "empty_page", "no_next", "has_more_false", "total_reached"},
    "URL": {"short_page", "empty_page", "no_next", "has_more_false", "total_reached"},
}
_ONLY_FOR = {
    "pagination.base": ("PAGE",),
    "pagination.start": ("TOKEN", "OFFSET", "PAGE"),
    "pagination.next": ("TOKEN", "URL"),
    "pagination.next_in": ("TOKEN", "URL"),
    "pagination.token": ("TOKEN",),
    "pagination.advance_by": ("OFFSET",),
    "pagination.has_more": ("OFFSET", "PAGE", "TOKEN", "URL"),
    "pagination.size": ("OFFSET", "PAGE", "TOKEN", "URL"),
    "pagination.max_page": ("OFFSET", "PAGE", "TOKEN", "URL"),
}


def check_pagination(subject: Subject) -> Iterator[Finding]:
    """The kind has its paths and numbers and nothing of another kind."""
    kind = str(subject.get("pagination.kind"))
    if kind not in PAGE_NAMES:
        if subject.dictionary.find_code("pagination_type", kind):
            where = subject.where("pagination.kind")
            yield error("not-supported", where, f"pagination by {kind.lower()} is not supported yet")
        return
    for key, kinds in _ONLY_FOR.items():
        if subject.is_declared(key) and kind not in kinds:
            words = " or ".join(word.lower() for word in kinds)
            yield error("rivals", subject.where(key), f"'{key.split('.')[1]}' is for kind {words}, not {kind.lower()}")
    yield from _check_needs(subject, kind)
    yield from _check_sizes(subject, kind)
    yield from _check_position(subject, kind)
    yield from _check_stop(subject, kind)


def _check_needs(subject: Subject, kind: str) -> Iterator[Finding]:
    place = subject.where("pagination.next")
    in_header = subject.get("pagination.next_in") == "link_header"
    if kind == "TOKEN" and subject.get("pagination.next") is None:
        yield error("missing", place, "kind token needs 'next': the path of the next token")
    if kind == "TOKEN" and in_header:
        yield error("rivals", subject.where("pagination.next_in"), "a Link header holds a URL: use kind url")
    if kind == "URL" and not in_header and subject.get("pagination.next") is None:
        yield error("missing", place, "kind url needs 'next': the path of the next URL, or 'next_in: link_header'")
    if kind == "URL" and in_header and subject.get("pagination.next") is not None:
        yield error("rivals", place, "'next' and 'next_in: link_header' exclude each other")
    if kind == "PAGE":
        if not subject.is_declared("pagination.base"):
            # a wrong guess skips the first page without a word, so there is no default
            where = subject.where("pagination.base")
            yield error("missing", where, "kind page needs 'base': 0 or 1, the number of the first page")
        elif subject.get("pagination.base") not in (0, 1):
            yield error("wrong-value", subject.where("pagination.base"), "'base' is 0 or 1")
    start = subject.get("pagination.start")
    if kind in ("OFFSET", "PAGE") and start is not None and not re.fullmatch(r"[0-9]+", str(start)):
        yield error("wrong-value", subject.where("pagination.start"), f"a {kind.lower()} is a number, not '{start}'")


def _check_sizes(subject: Subject, kind: str) -> Iterator[Finding]:
    size, most = subject.get("pagination.size"), subject.get("pagination.max_size")
    if kind in ("OFFSET", "PAGE") and size is None:
        yield error(
            "missing",
            subject.where("pagination.size"),
            f"kind {kind.lower()} needs 'size', or 'max_size' (80 % of the vendor's largest page is asked for)",
        )
    if size is not None and most is not None and size > most:
        yield error("above-limit", subject.where("pagination.size"), f"{size} is above the vendor's {most} (max_size)")


def _uses_page(subject: Subject, name: str) -> bool:
    return any(re.search(rf"\{{\{{[^}}]*\bpage\.{name}\b", text.text) for text in subject.texts())


def _check_position(subject: Subject, kind: str) -> Iterator[Finding]:
    position = _POSITION.get(kind)
    if position is not None and not _uses_page(subject, position):
        yield error(
            "position-unused",
            subject.where("pagination.kind"),
            f"no template uses page.{position}: every request would ask for the first page",
            f'add a parameter such as {position}: "{{{{ page.{position} }}}}"',
        )
    size = subject.get("pagination.size")
    literal = any(text.text == str(size) for text in subject.texts())
    # by what came and until the count is reached, a walk may leave the size to the vendor
    by_count = subject.get("pagination.advance_by") == "received" and _ends_by_count(subject)
    left = kind == "OFFSET" and by_count
    if size is not None and kind != "NONE" and not left and not literal and not _uses_page(subject, "size"):
        yield warning(
            "size-unused",
            subject.where("pagination.size"),
            "no template sends page.size: a vendor that pages by another size ends the walk early",
        )


def _ends_by_count(subject: Subject) -> bool:
    rules = subject.get("pagination.stop") or []
    return "total_reached" in rules and "short_page" not in rules


def _check_stop(subject: Subject, kind: str) -> Iterator[Finding]:
    where = subject.where("pagination.stop")
    for rule in subject.get("pagination.stop") or []:
        if subject.dictionary.find_code("stop_rule", rule) is None:
            continue  # check_codes names it
        if rule not in _STOPS[kind]:
            known = ", ".join(sorted(_STOPS[kind]))
            yield error("rivals", where, f"'{rule}' cannot end a walk of kind {kind.lower()}", f"there is: {known}")
        elif rule == "has_more_false" and subject.get("pagination.has_more") is None:
            yield error("missing", where, "'has_more_false' needs 'has_more': the path of the flag")
        elif rule == "total_reached" and not subject.list_fields("TOTAL"):
            yield error("missing", where, "'total_reached' needs records.total: the path of the count")
        elif rule == "short_page" and subject.get("pagination.size") is None:
            yield error("missing", where, "'short_page' needs 'size': what a full page holds")
