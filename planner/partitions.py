"""Partitions: which series an endpoint has, in an order in which a reader can go on where it stopped (D9).

Invariant: parents come by keyset and, for each, the listed values in the file's order, so a position is one partition.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import product

from ingest.db import Connection
from ingest.errors import SpecInvalid
from ingest.spec.dimensions import Dimension, Partition
from ingest.spec.partitions import encode_partition
from ingest.spec.snapshot import Snapshot
from ingest.store import parents


@dataclass(frozen=True, slots=True)
class Member:
    """One partition; `key` is None if its values could not be read back from one, `changed_at` its parent's."""

    values: dict[str, str]
    key: str | None
    changed_at: datetime | None


def check_parents(conn: Connection, snapshot: Snapshot) -> None:
    """Raise `SpecInvalid` if the dataset that gives the values, or a column of it, is not there."""
    bound = [each for each in snapshot.partition.dimensions if each.dataset]
    for each in bound:
        missing = parents.find_missing(conn, each.dataset, [each.field, *each.where])
        if missing:
            problem = f"data.{each.dataset} has no column {', '.join(missing)}: apply the parent's file first"
            raise SpecInvalid([f"{snapshot.name}: partition.{each.name}: {problem}"])


def list_members(conn: Connection, partition: Partition, *, start: Mapping[str, str] | None = None) -> Iterator[Member]:
    """Yield every partition, from `start` on; parents are read in pages as they are asked for."""
    listed = [each for each in partition.dimensions if not each.dataset]
    bound = [each for each in partition.dimensions if each.dataset]
    combinations = [dict(zip([d.name for d in listed], c, strict=True)) for c in product(*(d.values for d in listed))]
    for values, changed_at in _rows(conn, bound, start):
        skipping = start is not None and all(start.get(name) == value for name, value in values.items())
        for combination in combinations:
            if skipping and start is not None:
                if any(start[name] != value for name, value in combination.items()):
                    continue
                skipping = False
            found = values | combination
            member = {name: found[name] for name in partition.names}
            yield Member(member, _key(member), changed_at)


def _key(values: Mapping[str, str]) -> str | None:
    try:
        return encode_partition(values)
    except ValueError:
        return None


def _rows(
    conn: Connection, bound: list[Dimension], start: Mapping[str, str] | None
) -> Iterator[tuple[dict[str, str], datetime | None]]:
    """Yield the values each parent row gives; one empty row where all dimensions are listed."""
    if not bound:
        yield {}, None
        return
    where = {column: value for each in bound for column, value in each.where.items()}
    after = [start[each.name] for each in bound] if start is not None else None
    inclusive = True
    while True:
        page = parents.list_parents(
            conn, bound[0].dataset, [each.field for each in bound], where=where, start=after, inclusive=inclusive
        )
        if not page:
            return
        for parent in page:
            yield dict(zip([each.name for each in bound], parent.values, strict=True)), parent.changed_at
        after, inclusive = list(page[-1].values), False
