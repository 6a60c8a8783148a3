"""Lints: declarations that are valid one by one and are still hardly what their author means (research/peers.md §5)."""

from collections.abc import Iterator

from registry.checks.subject import Subject, error, warning
from registry.problems import Finding

_LARGEST_PAGE = 100_000  # no public API serves more in one answer; above it a digit is too many


def check_lints(subject: Subject) -> Iterator[Finding]:
    """No cursor without a filter, no page of an absurd size."""
    if subject.is_declared("window.field") and subject.get("window.filter") == "none":
        yield warning(
            "cursor-unfiltered",
            subject.where("window.field"),
            "a window field, but window.filter is none: every fire walks the whole source",
            "write 'filter: server' and use window.from in a parameter, or leave the field out",
        )
    for key in ("pagination.size", "pagination.max_size"):
        size = subject.get(key)
        if subject.is_declared(key) and size is not None and size > _LARGEST_PAGE:
            yield error("above-limit", subject.where(key), f"a page of {size} records is above {_LARGEST_PAGE}")
