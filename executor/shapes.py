"""Shapes: JSONPaths compiled to msgspec structs, so that decoding reads only the fields a mapping names.

Decoding to dicts costs 10.7 us a record, `Raw` items plus a struct of the named fields 3.2 us (measured). Paths that
are not plain, and values of another shape than the paths expect, take the general way: each plain path is walked
through the text, so that items stay the source's own text; for the others the whole is decoded.
"""

from collections.abc import Callable
from operator import attrgetter
from typing import Any

import msgspec

from ingest.spec.paths import Getter, Path, plain_getter

_Tree = dict[str, Any]
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])


class Shape:
    """The fields of a JSON value that a set of named paths finds, decoded in one go."""

    def __init__(self, paths: dict[str, Path], raw_list: str | None = None) -> None:
        """`raw_list` names the path whose value is a list to be kept as raw, undecoded items."""
        self._paths = paths
        self._general = {name: path.getter() for name, path in paths.items()}
        self._raw_list = raw_list
        self._decoder: msgspec.json.Decoder[Any] | None = None
        self._getters: dict[str, Getter] = {}
        self._fields: dict[str, str] = {}  # of paths that are one field of the struct
        if all(path.plain is not None for path in paths.values()):
            self._compile({name: path.plain or () for name, path in paths.items()})

    def _compile(self, plain: dict[str, tuple[str | int, ...]]) -> None:
        tree: _Tree = {}
        places: dict[str, tuple[tuple[str, ...], tuple[str | int, ...]]] = {}
        raw = None if self._raw_list is None else tuple(str(key) for key in plain[self._raw_list])
        # shortest first: a path below another's leaf walks on from that leaf's decoded value
        for name, keys in sorted(plain.items(), key=lambda item: len(item[1])):
            depth = next((n for n, key in enumerate(keys) if isinstance(key, int)), len(keys))
            head, tail = tuple(str(key) for key in keys[:depth]), keys[depth:]
            if not head:
                return  # the value itself, or an index into it: decode whole
            node, taken = tree, 0
            for key in head[:-1]:
                child = node.setdefault(key, {})
                if child is None:
                    break
                node, taken = child, taken + 1
            else:
                if isinstance(node.get(head[-1]), dict):
                    return
                node[head[-1]] = None
                places[name] = (head, tail)
                continue
            places[name] = (head[: taken + 1], (*head[taken + 1 :], *tail))
        if self._raw_list is not None:
            # the list must be a leaf of its own, or it would be decoded with what is around it
            sharing = [name for name, (head, _) in places.items() if head == raw]
            if sharing != [self._raw_list] or places[self._raw_list][1]:
                return
        fields: dict[tuple[str, ...], str] = {}
        kind = _struct(tree, (), fields, raw)
        self._decoder = msgspec.json.Decoder(kind)
        self._getters = {name: _getter(head, tail, fields) for name, (head, tail) in places.items()}
        self._fields = {name: fields[head] for name, (head, tail) in places.items() if len(head) == 1 and not tail}

    def read(self, body: bytes | msgspec.Raw) -> Callable[[str], Any]:
        """Decode and return a function from a path's name to what it finds, None where it is missing.

        It or the function raises `msgspec.DecodeError` if the body is not JSON.
        """
        if self._decoder is not None:
            try:
                value = self._decoder.decode(body)
            except msgspec.ValidationError:
                pass  # valid JSON of another shape: the general way finds what there is
            else:
                getters = self._getters
                return lambda name: getters[name](value)
        return self._read_general(body)

    def _read_general(self, body: bytes | msgspec.Raw) -> Callable[[str], Any]:
        paths, raw_list = self._paths, self._raw_list
        whole = None
        if not all(path.plain is not None for path in paths.values()):
            whole = msgspec.json.decode(body)

        def find(name: str) -> Any:
            path = paths[name]
            if path.plain is not None:
                found = _walk_text(body, path.plain)
                if found is None:
                    return None
                return _split(found) if name == raw_list else msgspec.json.decode(found)
            if name != raw_list:
                return self._general[name](whole)
            items = path.list_getter()(whole)
            return items if items is None else [msgspec.Raw(msgspec.json.encode(item)) for item in items]

        return find

    def rows(self, names: list[str]) -> Callable[[bytes | msgspec.Raw], tuple[Any, ...]]:
        """Return a function from a record's text to the values of these paths, in order; the hot loop's reader."""
        general = [self._general[name] for name in names]

        def read_whole(body: bytes | msgspec.Raw) -> tuple[Any, ...]:
            whole = msgspec.json.decode(body)
            return tuple([get(whole) for get in general])

        if self._decoder is None:
            return read_whole
        decode, getters = self._decoder.decode, [self._getters[name] for name in names]

        take: Callable[[Any], tuple[Any, ...]] = lambda value: tuple([get(value) for get in getters])  # noqa: E731
        if len(names) > 1 and all(name in self._fields for name in names):
            take = attrgetter(*[self._fields[name] for name in names])  # 0.1 us for all of them

        def read(body: bytes | msgspec.Raw) -> tuple[Any, ...]:
            try:
                value = decode(body)
            except msgspec.ValidationError:
                return read_whole(body)
            return take(value)

        return read


def _walk_text(text: bytes | msgspec.Raw, keys: tuple[str | int, ...]) -> bytes | msgspec.Raw | None:
    """Return the text of the value the keys lead to, None where one is missing."""
    for key in keys:
        try:
            if isinstance(key, str):
                found = _OBJECT.decode(text).get(key)
            else:
                items = _LIST.decode(text)
                found = items[key] if -len(items) <= key < len(items) else None
        except msgspec.ValidationError:
            return None  # neither an object nor a list
        if found is None:
            return None
        text = found
    return text


def _split(text: bytes | msgspec.Raw) -> Any:
    """Return a list's items as raw text, or what there is instead of a list."""
    try:
        return _LIST.decode(text)
    except msgspec.ValidationError:
        return msgspec.json.decode(text)


def _struct(
    tree: _Tree, prefix: tuple[str, ...], names: dict[tuple[str, ...], str], raw: tuple[str, ...] | None
) -> type[msgspec.Struct]:
    fields: list[tuple[str, Any, Any]] = []
    rename: dict[str, str] = {}
    for number, (key, child) in enumerate(tree.items()):
        here, field = (*prefix, key), f"f{number}"
        kind: Any = Any
        if child is not None:
            kind = _struct(child, here, names, raw) | None
        elif here == raw:
            kind = list[msgspec.Raw] | None
        fields.append((field, kind, None))
        names[here], rename[field] = field, key
    return msgspec.defstruct("Shape", fields, rename=rename, frozen=True, gc=False)


def _getter(head: tuple[str, ...], tail: tuple[str | int, ...], fields: dict[tuple[str, ...], str]) -> Getter:
    names = [fields[head[: depth + 1]] for depth in range(len(head))]
    first = attrgetter(names[0])
    walk_on = plain_getter(tail) if tail else None
    if len(names) == 1:
        return first if walk_on is None else lambda value: walk_on(first(value))

    def get(value: Any) -> Any:
        for name in names:
            value = getattr(value, name)
            if value is None:
                return None
        return value if walk_on is None else walk_on(value)

    return get
