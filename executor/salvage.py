r"""Salvage: find a page's records although one of them is not JSON, so that it alone goes to quarantine (pure; E7).

A lone surrogate (\ud800, half an emoji), an escape that is none (\x) or a raw control character makes a parser refuse
the whole page. Here such bytes are blanked for the envelope's sake, and the records are cut out of the original text by
its brackets alone; the mapping then refuses the broken ones and takes the rest.
"""

import re
from collections.abc import Sequence

import msgspec

_ESCAPE = re.compile(
    rb"(?P<good>\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair
    rb"|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}"
    rb'|\\["\\/bfnrt])'
    rb"|\\u[0-9a-fA-F]{4}|\\.|[\x00-\x1f]",
    re.DOTALL,
)
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[\]{},:]', re.DOTALL)


def blank_broken(body: bytes) -> bytes:
    """Return the body with everything no JSON string may hold replaced by blanks; what is well stays where it was."""
    return _ESCAPE.sub(lambda found: found["good"] or b" " * len(found[0]), body)


def cut_items(body: bytes, keys: Sequence[str | int]) -> list[msgspec.Raw] | None:
    """Return the items of the list that the keys lead to, each as its own text; None if there is no such list.

    An index from the end finds none: where that is, is known only when everything has been read.
    """
    spans = _spans(body, list(keys))
    return None if spans is None else [msgspec.Raw(body[start:end].strip()) for start, end in spans]


def _spans(body: bytes, wanted: list[str | int]) -> list[tuple[int, int]] | None:
    here: list[str | int | None] = []  # the key or index we are at in each open bracket
    found: list[tuple[int, int]] | None = None
    depth = start = 0
    text = b""
    for token in _TOKEN.finditer(body):
        mark = token[0]
        if mark in (b"[", b"{"):
            if found is None and mark == b"[" and here == wanted:
                found, depth, start = [], len(here), token.end()
            here.append(0 if mark == b"[" else None)
        elif mark in (b"]", b"}"):
            here.pop()
            if found is not None and len(here) == depth:
                rest = body[start : token.start()].strip()
                return [*found, (start, token.start())] if rest else found
        elif mark == b":":
            here[-1] = _key(text)
        elif mark == b",":
            if found is not None and len(here) == depth + 1:
                found.append((start, token.start()))
                start = token.end()
            if isinstance(here[-1], int):
                here[-1] += 1
        else:
            text = mark
    return None


def _key(text: bytes) -> str | None:
    try:
        return msgspec.json.decode(text, type=str)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
