"""Mapping: from a page's raw items to typed rows and rejects (pure; B9, B11, E7).

Invariant: items = records + duplicates + filtered + rejects. One bad record never stops the page.
"""

from collections.abc import Callable, Sequence
from collections.abc import Mapping as Values
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec

from executor.request import NO_PARTITION
from executor.shapes import Shape
from executor.values import Convert, check_jsonb, column_converter, moment_reader, to_text
from ingest.errors import RecordRejected
from ingest.spec.canonical import hash_of_json
from ingest.spec.paths import parse_path
from ingest.spec.snapshot import Column, IdPart, Mapping, Snapshot
from ingest.store.pages import Reject
from ingest.store.rows import Key, Record

_LONGEST_KEY = 1000  # bytes of all its parts; a btree entry ends at 2,704
_HASH_LENGTH = 35


@dataclass(frozen=True, slots=True)
class Mapped:
    """What a page's items became."""

    records: list[Record]
    rejects: list[Reject]
    duplicate: int
    filtered: int
    observed_max: datetime | None


class RecordMapper:
    """The mapping of one snapshot, compiled once."""

    def __init__(self, snapshot: Snapshot) -> None:
        mapping = snapshot.mapping
        paths = {f"id{n}": parse_path(part.path) for n, part in enumerate(mapping.identity) if not part.partition}
        if mapping.updated_at is not None:
            paths["updated_at"] = parse_path(mapping.updated_at.path)
        paths |= {f"c{n}": parse_path(column.path) for n, column in enumerate(mapping.columns) if not column.partition}
        names = list(paths)
        self._read = Shape(paths).rows(names)
        self._bound = _bound_places(mapping)
        self._key = _key_reader(mapping.identity)
        self._width = len(mapping.identity)
        self._moment = None if mapping.updated_at is None else moment_reader(mapping.updated_at)
        self._moment_path = "" if mapping.updated_at is None else mapping.updated_at.path
        self._columns = [_column_reader(column) for column in mapping.columns]
        self._columns_at = self._width + (self._moment is not None)
        self._keep_payload = mapping.payload != "none"
        self._check_jsonb = mapping.payload == "jsonb"
        window = snapshot.window
        self._trim = window.filter == "server" and window.ends == "inclusive" and window.bound == "instant"

    def map_items(
        self,
        items: Sequence[msgspec.Raw],
        *,
        until: datetime | None,
        partition: Values[str, str] = NO_PARTITION,
    ) -> Mapped:
        """Map every item; fold records that share a key into the newest (ON CONFLICT cannot touch a row twice)."""
        records: dict[Key, Record] = {}
        rejects: list[Reject] = []
        duplicate = filtered = 0
        newest: datetime | None = None
        map_one, trim = self._map, until if self._trim else None
        for number, raw in enumerate(items):
            try:
                record = map_one(raw, partition)
            except RecordRejected as error:
                rejects.append(_reject(number, raw, error))
                continue
            moment = record.updated_at
            if moment is not None:
                # A record at `to` belongs to the next window. A later one should not have come; it is kept, for where
                # the window is not over updated_at no other window brings it again.
                if moment == trim:
                    filtered += 1
                    continue
                if newest is None or moment > newest:
                    newest = moment
            earlier = records.get(record.key)
            if earlier is not None:
                duplicate += 1
                if moment is not None and earlier.updated_at is not None and moment < earlier.updated_at:
                    continue
            records[record.key] = record
        return Mapped(list(records.values()), rejects, duplicate, filtered, newest)

    def _map(self, raw: msgspec.Raw, partition: Values[str, str]) -> Record:
        try:
            values = self._read(raw)
            if self._bound:
                values = _bind(values, self._bound, partition)
            payload = bytes(raw) if self._keep_payload else None
            if payload is not None and not payload.isascii():
                payload.decode()  # only to know that it is UTF-8: what is stored is the source's own bytes
            if payload is not None and self._check_jsonb:
                check_jsonb(payload.decode())
            # without an update time the content itself is the version (B11)
            content = None if self._moment is not None else hash_of_json(msgspec.json.decode(raw))[:_HASH_LENGTH]
        except (ValueError, RecursionError) as error:  # no JSON, no UTF-8, or nothing jsonb can hold
            raise RecordRejected(f"not readable: {error}", path="$") from error
        key = self._key(values)
        moment = None
        if self._moment is not None:
            value = values[self._width]
            if value is None:
                raise RecordRejected("the update time is missing", path=self._moment_path)
            try:
                moment = self._moment(value)
                if moment.tzinfo is not UTC:
                    moment = moment.astimezone(UTC)
            except (ValueError, OverflowError) as error:
                raise RecordRejected(str(error), path=self._moment_path) from error
        columns: tuple[Any, ...] = ()
        if self._columns:
            found = values[self._columns_at :]
            columns = tuple([read(value) for read, value in zip(self._columns, found, strict=True)])
        return Record(key, moment, content, columns, payload)


def _bound_places(mapping: Mapping) -> list[tuple[int, str]]:
    """Return where in a record's values its partition's go: position and dimension, in order."""
    columns_at = len(mapping.identity) + (mapping.updated_at is not None)
    parts = [(n, part.partition) for n, part in enumerate(mapping.identity)]
    parts += [(columns_at + n, column.partition) for n, column in enumerate(mapping.columns)]
    return [(place, dimension) for place, dimension in parts if dimension]


def _bind(values: tuple[Any, ...], bound: list[tuple[int, str]], partition: Values[str, str]) -> tuple[Any, ...]:
    whole = list(values)
    for place, dimension in bound:
        whole.insert(place, partition.get(dimension))
    return tuple(whole)


def _key_converter(part: IdPart) -> Convert:
    if part.type == "text":
        return to_text
    return column_converter(Column(name=part.column, path=part.path, type=part.type))  # type: ignore[arg-type]


def _key_reader(identity: tuple[IdPart, ...]) -> Callable[[tuple[Any, ...]], Key]:
    """Return the function from a record's values, which begin with its id, to its key."""
    parts = [(part, _key_converter(part)) for part in identity]

    def read_parts(values: tuple[Any, ...]) -> Key:
        key = tuple([_key(part, convert, value) for (part, convert), value in zip(parts, values, strict=False)])
        if len(key) > 1:
            _check_length(key)
        return key

    if len(parts) > 1 or identity[0].type != "text":
        return read_parts
    lower, short = identity[0].lower, _LONGEST_KEY // 4

    def read_text(values: tuple[Any, ...]) -> Key:
        value = values[0]
        if type(value) is str and 0 < len(value) <= short and "\x00" not in value:
            return (value.lower() if lower else value,)
        return read_parts(values)

    return read_text


def _key(part: IdPart, convert: Convert, value: Any) -> Any:
    if value is None or value == "" or isinstance(value, bool | float):
        raise RecordRejected("the id is missing or is not an id", path=part.path)
    try:
        key = convert(value)
    except ValueError as error:
        raise RecordRejected(str(error), path=part.path) from error
    if part.type == "text":
        if part.lower:
            key = key.lower()
        if len(key) > _LONGEST_KEY // 4 and len(key.encode()) > _LONGEST_KEY:
            raise RecordRejected(f"the id is longer than {_LONGEST_KEY} bytes", path=part.path)
    return key


def _check_length(key: Key) -> None:
    if sum(len(part.encode()) for part in key if isinstance(part, str)) > _LONGEST_KEY:
        raise RecordRejected(f"the id is longer than {_LONGEST_KEY} bytes", path="$")


def _column_reader(column: Column) -> Convert:
    """Return the function from what the column's path finds to what the column holds."""
    convert, enum, required, path = column_converter(column), frozenset(column.enum), column.required, column.path

    def read(value: Any) -> Any:
        if value is None:
            if required:
                raise RecordRejected("required, but missing", path=path)
            return None
        try:
            converted = convert(value)
        except (ValueError, OverflowError) as error:
            raise RecordRejected(str(error), path=path) from error
        if enum and converted not in enum:
            raise RecordRejected(f"{converted!r} is not one of {', '.join(sorted(enum))}", path=path)
        return converted

    return read if enum else _shorten(column.type, read)


def _shorten(kind: str, read: Convert) -> Convert:
    """Return `read` with a short way for values that are already what the column holds, as most are."""
    if kind == "text":
        return lambda value: value if type(value) is str and "\x00" not in value else read(value)
    if kind == "int":
        return lambda value: value if type(value) is int and -(2**63) <= value < 2**63 else read(value)
    same = {"float": float, "bool": bool}.get(kind)
    return read if same is None else lambda value: value if type(value) is same else read(value)


def _reject(number: int, raw: msgspec.Raw, error: RecordRejected) -> Reject:
    # PostgreSQL stores no NUL and no broken UTF-8; the evidence keeps everything else
    text = bytes(raw).decode("utf-8", "replace").replace("\x00", "\ufffd")
    return Reject(item_no=number, key=None, record=text, path=error.path, reason=error.reason)
