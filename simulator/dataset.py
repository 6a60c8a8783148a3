"""Datasets: the records of one API, and the truth about them.

A record is a row (index, id, updated, version) from which its text (JSON, as a rule) is made on first use and then
kept, so a page is a join of bytes. `_order` always holds every row exactly once, sorted by
(updated, id); truth and pages are read under the same lock and can never disagree.
"""

import json
import random
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from threading import Event, Lock
from typing import Any, NamedTuple

from simulator.instants import BEGINNING, DAY, END, format_instant
from simulator.words import draw

Window = tuple[int, int]  # half-open, in seconds
encode_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


@dataclass(frozen=True, slots=True)
class Row:
    """What a record is made from, together with its draw."""

    index: int
    id: str
    updated: int
    version: int
    first_updated: int


class Mark(NamedTuple):
    """A place in the time order: just after the row with this time and id."""

    updated: int
    id: str


class Page(NamedTuple):
    """Some records of a window of `total`; `start` is the first one's place in that window."""

    total: int
    start: int
    indexes: list[int]
    bodies: list[bytes]
    end: Mark | None


@dataclass(frozen=True, slots=True)
class Shape:
    """How one API writes its records. `grain` is the precision of its timestamps in seconds."""

    name: str
    id_path: tuple[str, ...]
    updated_path: tuple[str, ...]
    make_id: Callable[[bytes, int], str]
    make_record: Callable[[bytes, Row], dict[str, Any]]
    grain: int = 1
    fold_id: Callable[[str], str] = str
    write: Callable[[dict[str, Any]], str] = encode_json
    spoil: Callable[[bytes, str], bytes] | None = None  # for records that are not JSON
    place: Callable[[int, int, Window], int] | None = None  # (seed, index, span): the first time, if not anywhere
    moves: bool = True  # False: times tell when a thing happened, and a change leaves them
    tell: Callable[[bytes, Row], dict[str, Any]] | None = None  # what else the truth says of a record
    name_at: Callable[[int, int], str] | None = None  # (index, updated): the id, where a time is part of it


class Dataset:
    def __init__(self, *, shape: Shape, seed: int, size: int, span: Window) -> None:
        self.shape = shape
        self._seed = seed
        self._span = span
        self._lock = Lock()
        self._ids: list[str] = []
        self._first: list[int] = []
        self._updated: list[int] = []
        self._versions: list[int] = []
        self._bodies: list[bytes | None] = []
        self._order: list[tuple[int, str, int]] = []
        self._index_of: dict[str, int] = {}
        self._mutations = 0
        for _ in range(size):
            self._append(None)
        self._order = sorted(zip(self._updated, map(shape.fold_id, self._ids), range(size), strict=True))

    def __len__(self) -> int:
        return len(self._ids)

    def page_after(self, window: Window, mark: Mark | None, size: int, *, back: bool = False) -> Page:
        """Return up to `size` records of the window that follow `mark` in time order.

        With `back`, return the page before that one instead (the first page has none and stays).
        """
        with self._lock:
            low, high = self._find_bounds(window)
            at = low if mark is None else max(low, bisect_right(self._order, (mark.updated, mark.id, END)))
            at = max(low, at - size) if back else at
            chosen = self._order[at : max(at, min(at + size, high))]
            end = Mark(*chosen[-1][:2]) if chosen else mark
            return self._make_page(high - low, at - low, [index for _, _, index in chosen], end)

    def page_by_time(self, window: Window, start: int, size: int, *, keep: Callable[[int], bool] | None = None) -> Page:
        """Return the records at `start` and on, in time order, of those whose index `keep` accepts."""
        with self._lock:
            low, high = self._find_bounds(window)
            if keep is None:
                chosen = self._order[low + start : min(low + start + size, high)]
                return self._make_page(high - low, start, [index for _, _, index in chosen], None)
            indexes = [index for _, _, index in self._order[low:high] if keep(index)]
            return self._make_page(len(indexes), start, indexes[start : start + size], None)

    def page_before(self, window: Window, id_: str | None, size: int, *, back: bool = False) -> Page:
        """Return up to `size` records of the window from the newest down, or from just before `id_`.

        With `back`, return the page before that one instead. Raises KeyError for an unknown id.
        """
        with self._lock:
            low, high = self._find_bounds(window)
            at = high
            if id_ is not None:
                at = min(high, bisect_left(self._order, self._key(self._index_of[self.shape.fold_id(id_)])))
            at = min(high, at + size) if back else at
            chosen = self._order[max(low, at - size) : max(low, at)][::-1]
            return self._make_page(high - low, high - at, [index for _, _, index in chosen], None)

    def page_by_id(self, window: Window, start: int, size: int) -> Page:
        """Return the records at `start` and on, in the order they were made, which no update changes."""
        with self._lock:
            if window == (BEGINNING, END):
                total = len(self._ids)
                return self._make_page(total, start, list(range(start, min(start + size, total))), None)
            low, high = self._find_bounds(window)
            indexes = sorted(index for _, _, index in self._order[low:high])
            return self._make_page(len(indexes), start, indexes[start : start + size], None)

    def mutate(
        self,
        *,
        count: int,
        add: int,
        at: int,
        window: Window = (BEGINNING, END),
        ids: Sequence[str] | None = None,
    ) -> tuple[list[str], list[str]]:
        """Change `count` records (or exactly `ids`) and add `add` new ones; return both lists of ids.

        A change raises the version, changes the title and sets updated to `at`, or leaves it if it is
        later already: no record's time ever moves back (and none moves where the shape says so). Which ones
        change depends on the seed and on how many mutations came before. Raises KeyError for an unknown id.
        """
        at -= at % self.shape.grain
        with self._lock:
            if ids is not None:
                changed = [self._index_of[self.shape.fold_id(id_)] for id_ in ids]
            else:
                self._mutations += 1
                low, high = self._find_bounds(window)
                eligible = sorted(index for _, _, index in self._order[low:high])
                chooser = random.Random(f"{self._seed}/{self.shape.name}/{self._mutations}")
                changed = sorted(chooser.sample(eligible, min(count, len(eligible))))
            for index in changed:
                self._touch(index, max(at, self._updated[index]) if self.shape.moves else self._updated[index])
            added = [self._append(at) for _ in range(add)]
            for index in added:
                insort(self._order, self._key(index))
            fold = self.shape.fold_id
            return [fold(self._ids[i]) for i in changed], [fold(self._ids[i]) for i in added]

    def tell_truth(
        self,
        window: Window = (BEGINNING, END),
        *,
        full: bool = False,
        payloads: bool = False,
        keep: Callable[[int], bool] | None = None,
    ) -> dict[str, Any]:
        """Say what a complete and current copy of the window holds: count, hash and, if `full`, every row.

        `ids_sha256` is over the lines `id updated_at\\n` sorted by id (bytewise); with `payloads`,
        `payloads_sha256` is over the lines `id sha256-of-the-record's-text\\n`.
        """
        with self._lock:
            low, high = self._find_bounds(window)
            rows = sorted((id_, at, index) for at, id_, index in self._order[low:high])
            if keep is not None:
                rows = [row for row in rows if keep(row[2])]
            times = [format_instant(at) for _, at, _ in rows]
            truth: dict[str, Any] = {
                "count": len(rows),
                "ids_sha256": _hash_lines([f"{row[0]} {at}\n" for row, at in zip(rows, times, strict=True)]),
            }
            hashes = [sha256(self._body(index)).hexdigest() for _, _, index in rows] if payloads else []
            if payloads:
                lines = [f"{row[0]} {digest}\n" for row, digest in zip(rows, hashes, strict=True)]
                truth["payloads_sha256"] = _hash_lines(lines)
            if full:
                truth["records"] = {
                    row[0]: {"updated_at": at, "version": self._versions[row[2]], **self._tell_more(row[2])}
                    for row, at in zip(rows, times, strict=True)
                }
                for row, digest in zip(rows, hashes, strict=False):
                    truth["records"][row[0]]["sha256"] = digest
            return truth

    def list_ids(self, indexes: Sequence[int]) -> list[str]:
        return [self._ids[index] for index in indexes]

    def find_body(self, id_: str) -> bytes | None:
        """Return the text of one record as it stands."""
        with self._lock:
            index = self._index_of.get(self.shape.fold_id(id_))
            return None if index is None else self._body(index)

    def warm(self, stop: Event) -> None:
        """Make every record's text now (about 50 µs each), unless `stop` is set first."""
        for first in range(0, len(self), 50):
            with self._lock:
                for index in range(first, min(first + 50, len(self._ids))):
                    self._body(index)
            if stop.is_set():
                return

    def _find_bounds(self, window: Window) -> Window:
        low = bisect_left(self._order, (window[0],))
        return low, max(low, bisect_left(self._order, (window[1],)))

    def _make_page(self, total: int, start: int, indexes: list[int], end: Mark | None) -> Page:
        return Page(total, start, indexes, [self._bodies[i] or self._body(i) for i in indexes], end)

    def _body(self, index: int) -> bytes:
        body = self._bodies[index]
        if body is None:
            body = self.shape.write(self.shape.make_record(*self._draw_row(index))).encode()
            self._bodies[index] = body
        return body

    def _draw_row(self, index: int) -> tuple[bytes, Row]:
        drawn = draw(self._seed, self.shape.name, index)
        updated, version, first = self._updated[index], self._versions[index], self._first[index]
        return drawn, Row(index=index, id=self._ids[index], updated=updated, version=version, first_updated=first)

    def _tell_more(self, index: int) -> dict[str, Any]:
        return self.shape.tell(*self._draw_row(index)) if self.shape.tell else {}

    def _key(self, index: int) -> tuple[int, str, int]:
        return self._updated[index], self.shape.fold_id(self._ids[index]), index

    def _touch(self, index: int, updated: int) -> None:
        del self._order[bisect_left(self._order, self._key(index))]
        self._updated[index] = updated
        self._versions[index] += 1
        self._bodies[index] = None
        insort(self._order, self._key(index))

    def _append(self, updated: int | None) -> int:
        index = len(self._ids)
        drawn = draw(self._seed, self.shape.name, index)
        at = self._place_in_span(drawn, index) if updated is None else updated
        id_ = self.shape.name_at(index, at) if self.shape.name_at else self.shape.make_id(drawn, index)
        self._ids.append(id_)
        self._first.append(at)
        self._updated.append(at)
        self._versions.append(1)
        self._bodies.append(None)
        self._index_of[self.shape.fold_id(id_)] = index
        return index

    def _place_in_span(self, drawn: bytes, index: int) -> int:
        """Spread times evenly, with some at the first and last second of a day, where windows go wrong."""
        start, end = self._span
        if self.shape.place is not None:
            return self.shape.place(self._seed, index, self._span) // self.shape.grain * self.shape.grain
        at = start + int.from_bytes(drawn[:8], "big") % (end - start)
        if index % 89 == 0:
            at -= at % DAY
        elif index % 97 == 0:
            at += DAY - 1 - at % DAY
        return min(max(at, start), end - 1) // self.shape.grain * self.shape.grain


def _hash_lines(lines: list[str]) -> str:
    return sha256("".join(lines).encode()).hexdigest()
