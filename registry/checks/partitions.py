"""Checks of partitions: keys that read back, parents that can be read, values that reach the request (D9)."""

import re
from collections.abc import Iterator
from math import prod
from typing import Any

from registry.checks.subject import Subject, error
from registry.problems import Finding

_NAME = re.compile(r"[a-z][a-z0-9_]{0,29}")
_COLUMN = re.compile(r"_?[a-z][a-z0-9_]{0,62}")
_MOST_DIMENSIONS = 4
_MOST_LISTED = 10_000  # combinations; more belong in a dataset of their own


def dimensions_of(subject: Subject) -> list[dict[str, Any]]:
    """Return the endpoint's dimensions in the order of the key."""
    found = subject.merged.get("partition", {}).get("dimensions")
    return list(found.value) if found is not None else []


def check_partition(subject: Subject) -> Iterator[Finding]:
    """A partition's keys read back, its parents are one dataset, and every dimension decides what is asked."""
    dimensions = dimensions_of(subject)
    names = [str(each["name"]) for each in dimensions]
    yield from _check_bound(subject, names)
    if not dimensions:
        return
    where = subject.own("partition")
    if len(dimensions) > _MOST_DIMENSIONS:
        yield error("bad-partition", where, f"{len(dimensions)} dimensions; at most {_MOST_DIMENSIONS}")
    combinations = prod(len(each["values"]) for each in dimensions if each.get("values"))
    if combinations > _MOST_LISTED:
        yield error(
            "bad-partition", where, f"{combinations} combinations are listed; at most {_MOST_LISTED}",
            "harvest the values as a dataset and read them from it",
        )  # fmt: skip
    parents = [each for each in dimensions if each.get("dataset")]
    if len({each["dataset"] for each in parents}) > 1:
        yield error(
            "bad-partition", where, "dimensions come from two datasets: which of their rows belong together?",
            "take all fields from one dataset; a child may carry its parent's key as a column",
        )  # fmt: skip
    changed = subject.merged.get("partition", {}).get("changed")
    if changed is not None and changed.value and not parents:
        yield error("bad-partition", (*where, "changed"), "'changed' is about parents, and no dimension has any")
    texts = " ".join(text.text for text in subject.texts())
    for position, each in enumerate(dimensions):
        name = names[position]
        place = (*where, name)
        if not _NAME.fullmatch(name):
            yield error("bad-name", place, f"'{name}' must match ^[a-z][a-z0-9_]{{0,29}}$")
        elif not re.search(rf"partition(\.{name}\b|\[)", texts):
            yield error(
                "partition-unused", place, "no template uses it: every partition would ask for the same",
                f'write "{{{{ partition.{name} }}}}" in the path, the query, a header or the body',
            )  # fmt: skip
        yield from _check_values(each, place, first=position == 0)


def _check_values(each: dict[str, Any], place: tuple[str | int, ...], *, first: bool) -> Iterator[Finding]:
    for column in [each["field"], *each.get("where", {})] if each.get("dataset") else []:
        if not _COLUMN.fullmatch(str(column)):
            yield error("bad-partition", place, f"'{column}' cannot be a column of a dataset")
    values = list(each.get("values", []))
    for number, value in enumerate(values):
        if not value or value in values[:number]:
            yield error("bad-partition", (*place, number), f"'{value}' is empty or listed twice")
        if "/" in value and not first:
            yield error("bad-partition", (*place, number), "only the first dimension may hold a '/'", "list it first")


def _check_bound(subject: Subject, names: list[str]) -> Iterator[Finding]:
    """What is bound to a dimension names one, and a record is named by more than its partition."""
    identity = subject.list_fields("ID")
    bound = []
    for row in [*identity, *subject.list_fields("COLUMN")]:
        transform = row.get("transform")
        dimension = transform.get("partition") if isinstance(transform, dict) else None
        if dimension is None:
            continue
        bound.append(row)
        if dimension not in names:
            known = ", ".join(names) or "none is declared"
            place = (*subject.field_where(row), "partition")
            yield error("bad-partition", place, f"'{dimension}' is not a dimension ({known})")
    if identity and all(row in bound for row in identity):
        yield error("bad-identity", subject.own("records", "id"), "the partition alone names no record", "add a path")
