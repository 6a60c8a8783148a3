"""JSONPaths: parsed once per snapshot; plain ones become tuples of keys and indexes.

jsonpath-ng costs 34 us per record for six fields, a plain getter 2 us (measured), so only paths that are not plain
(wildcards, filters, slices, `..`) go through it. A path finds None where a key is missing, never raises on data, and
holds no regular expression: one evil pattern on a source's text takes a thread for ever.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from jsonpath_ng import Child, Fields, Index, JSONPath, Root
from jsonpath_ng.ext.parser import parse as parse_extended

Getter = Callable[[Any], Any]


class PathInvalid(ValueError):
    """The text is not a JSONPath; `offset` is where, when known."""

    def __init__(self, message: str, offset: int | None) -> None:
        super().__init__(message)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class Path:
    """A parsed path: `plain` is its keys and indexes, or None when it needs the general engine."""

    text: str
    plain: tuple[str | int, ...] | None
    parsed: JSONPath = field(repr=False, compare=False)

    def getter(self) -> Getter:
        """Return a function from a decoded value to what the path finds there, or None."""
        parsed = self.parsed
        if self.plain is None:
            return lambda value: _first_or_list(_find_all(parsed, value))
        return plain_getter(self.plain)

    def list_getter(self) -> Getter:
        """Return a function to the list the path finds: the list there, or all matches of a path that is not plain.

        None where the last plain step on the way finds nothing: `$.data[*]` of an error message is not an empty list.
        """
        parsed = self.parsed
        if self.plain is not None:
            return plain_getter(self.plain)
        beginning = plain_getter(_plain_beginning(parsed))
        return lambda value: None if beginning(value) is None else _find_all(parsed, value)


def plain_getter(keys: tuple[str | int, ...]) -> Getter:
    """Return a getter that walks keys and indexes, None as soon as one is missing."""
    if not keys:
        return lambda value: value
    if len(keys) == 1 and isinstance(keys[0], str):
        key = keys[0]
        return lambda value: value.get(key) if isinstance(value, dict) else None

    def walk(value: Any) -> Any:
        for key in keys:
            if isinstance(key, str):
                if not isinstance(value, dict):
                    return None
                value = value.get(key)
            else:
                if not isinstance(value, list) or not -len(value) <= key < len(value):
                    return None
                value = value[key]
        return value

    return walk


def _find_all(parsed: JSONPath, value: Any) -> list[Any]:
    try:
        return [match.value for match in parsed.find(value)]
    except Exception:  # jsonpath-ng trips over data of another type than its operators expect
        return []


def _first_or_list(found: list[Any]) -> Any:
    """One match is a value, several are a list, none is None."""
    if not found:
        return None
    return found[0] if len(found) == 1 else found


# People write $.indexed.date-time and $.作者; jsonpath-ng wants such keys quoted. What is quoted already is let be.
_KEY = re.compile(r"""("[^"]*"|'[^']*')|\.([^\W\d]\w*(?:-+\w+)*)""")
_REGEX = re.compile(r"=~|`sub\b")


@lru_cache(maxsize=4096)
def parse_path(text: str) -> Path:
    """Parse a JSONPath such as $.message.items; `$` alone is the value itself."""
    if not text.startswith("$"):
        raise PathInvalid("a path begins with '$', for example $.items", 0)
    opened = _unclosed_bracket(text)
    if opened is not None:
        raise PathInvalid("input ends inside '['", opened)
    regex = _REGEX.search(text)
    if regex is not None:
        raise PathInvalid("regular expressions are not allowed in a path", regex.start())
    try:
        parsed = parse_extended(_KEY.sub(_quote_key, text))
    except Exception as error:
        message = str(error) or type(error).__name__
        found = re.search(r"at (?:position|char) (\d+)|:(\d+)", message)
        offset = int(next(group for group in found.groups() if group)) if found else None
        raise PathInvalid(f"not a JSONPath: {message.splitlines()[0]}", offset) from error
    return Path(text, _plain_keys(parsed), parsed)


def _quote_key(found: re.Match[str]) -> str:
    key = found[2]
    return found[0] if key is None or (key.isascii() and "-" not in key) else f'."{key}"'


def _unclosed_bracket(text: str) -> int | None:
    depth, opened, quote = 0, None, ""
    for offset, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character == "[":
            depth, opened = depth + 1, offset
        elif character == "]":
            depth -= 1
    return opened if depth > 0 else None


def _plain_keys(parsed: JSONPath) -> tuple[str | int, ...] | None:
    match parsed:
        case Root():
            return ()
        case Child():
            # `$` within a path begins again at the root
            left, right = _plain_keys(parsed.left), None if parsed.right == Root() else _plain_keys(parsed.right)
            return None if left is None or right is None else left + right
        case Fields():
            if len(parsed.fields) != 1 or parsed.fields[0] == "*":
                return None
            return (parsed.fields[0],)
        case Index():
            # jsonpath-ng allows [0,1]; only a single index is plain
            return tuple(parsed.indices) if len(parsed.indices) == 1 else None
        case _:
            return None


def _plain_beginning(parsed: JSONPath) -> tuple[str | int, ...]:
    """Return the keys before the first step that is not plain."""
    plain = _plain_keys(parsed)
    if plain is not None:
        return plain
    return _plain_beginning(parsed.left) if isinstance(parsed, Child) else ()
