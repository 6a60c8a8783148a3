"""Decoding: from an answer's bytes to its items, its next hint and its total (B9).

Items stay raw text; the mapping decodes only the fields it names and stores the text the source sent. Only what the
spec describes is taken for an answer: an empty 200 or an error message is not an empty page, or it would end a walk.
"""

import hashlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import urljoin

import msgspec

from executor.paging import Seen
from executor.request import drop_parameter
from executor.salvage import blank_broken, cut_items
from executor.secrets import REDACTOR
from executor.shapes import Shape
from executor.transport import Answer
from executor.values import FALSE_WORDS
from ingest.errors import Unreadable
from ingest.spec.paths import parse_path
from ingest.spec.snapshot import Snapshot

_BOM = b"\xef\xbb\xbf"
_LONGEST_NEXT = 8192


@dataclass(frozen=True, slots=True)
class Decoded:
    """The parts of an answer the page loop needs."""

    items: list[msgspec.Raw]
    seen: Seen


class JsonDecoder:
    """The envelope of one snapshot's answers, compiled once."""

    def __init__(self, snapshot: Snapshot) -> None:
        pagination = snapshot.pagination
        self._follows_urls = pagination.kind == "URL"
        self._link_header = self._follows_urls and pagination.next_in == "link_header"
        self._secret_parameter = snapshot.auth.name if snapshot.auth.location == "QUERY" else None
        wanted = {"items": snapshot.response.items}
        if pagination.next_path and not self._link_header:
            wanted["next"] = pagination.next_path
        if pagination.has_more_path:
            wanted["has_more"] = pagination.has_more_path
        if snapshot.response.total:
            wanted["total"] = snapshot.response.total
        self._paths = {name: parse_path(text) for name, text in wanted.items()}
        self._shape = Shape(self._paths, raw_list="items")

    def decode(self, answer: Answer) -> Decoded:
        """Split the answer; raises `Unreadable` if it is not what the spec says."""
        if answer.status == 204:
            return Decoded([], Seen(items=0))
        try:
            found = self._read(answer.body.removeprefix(_BOM))
        except msgspec.ValidationError as error:
            raise _unreadable(answer, f"a value no JSON reader takes: {error}") from error
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _unreadable(answer, f"not JSON: {error}; {what_came(answer)}") from error
        items = found["items"]
        if not isinstance(items, list):
            kind = "nothing" if items is None else type(items).__name__
            raise _unreadable(answer, f"expected a list at {self._paths['items'].text}, found {kind}")
        try:
            seen = Seen(
                items=len(items),
                next_value=self._following(answer, found),
                has_more=_flag(found.get("has_more")),
                total=_count(found.get("total")),
                fingerprint=_fingerprint(items),
            )
        except ValueError as error:
            raise _unreadable(answer, str(error)) from error
        return Decoded(items, seen)

    def _read(self, body: bytes) -> dict[str, Any]:
        try:
            find = self._shape.read(body)
            return {name: find(name) for name in self._paths}
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            keys, blanked = self._paths["items"].plain, blank_broken(body)
            if keys is None or blanked == body:
                raise
            find = self._shape.read(blanked)
            envelope = {name: find(name) for name in self._paths}
            items = cut_items(body, keys)
            if items is None:
                raise
            return envelope | {"items": items}

    def _following(self, answer: Answer, found: dict[str, Any]) -> str | None:
        """Return the next token or URL; URLs absolute and without our credential, which some sources send back."""
        value = answer.links.get("next") if self._link_header else found.get("next")
        if value in (None, "", False):
            return None
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            raise ValueError(f"the next token or URL is a {type(value).__name__}")
        text = str(value)
        if "\x00" in text or len(text) > _LONGEST_NEXT:
            raise ValueError(f"the next token or URL holds a NUL or more than {_LONGEST_NEXT} characters")
        if not self._follows_urls:
            return text
        url = urljoin(answer.url, text)  # a bad one raises ValueError
        return drop_parameter(url, self._secret_parameter) if self._secret_parameter else url


def _unreadable(answer: Answer, what: str) -> Unreadable:
    return Unreadable(what, status=answer.status, excerpt=REDACTOR.sample(answer.body))


def what_came(answer: Answer) -> str:
    """Say what an unreadable answer is, as far as its beginning tells: most are a login page or half a body."""
    kind = answer.headers.get("content-type", "no Content-Type").partition(";")[0].strip().lower()
    beginning = answer.body.removeprefix(_BOM).lstrip()[:512].lower()
    if not beginning:
        return f"an empty body came ({kind})"
    if beginning.startswith((b"<!doctype html", b"<html")) or kind == "text/html":
        return f"an HTML page came ({kind}): a login, an error or a maintenance page?"
    if beginning.startswith(b"<"):
        return f"XML came ({kind})"
    if beginning.startswith((b"{", b"[")):
        return f"a broken or cut JSON text of {len(answer.body)} bytes came ({kind})"
    return f"text came ({kind}): {REDACTOR.sample(answer.body)[:80]!r}"


def _flag(value: Any) -> bool | None:
    """Some write "false"; any other text (such as a next link), a list or an object is there or not."""
    if value is None or not isinstance(value, str):
        return None if value is None else bool(value)
    return value.strip().lower() not in FALSE_WORDS


def _count(value: Any) -> int | None:
    """PubMed writes its counts as strings; a negative one means that nobody counted."""
    try:
        total = -1 if value is None or isinstance(value, bool) else int(value)
    except (TypeError, ValueError):
        return None
    return total if total >= 0 else None


def _fingerprint(items: list[msgspec.Raw]) -> str:
    """Hash the first and last item and the count: enough to tell a page that comes twice, cheap on a large one."""
    if not items:
        return ""
    digest = hashlib.sha256(items[0])
    digest.update(items[-1])
    digest.update(str(len(items)).encode())
    return digest.hexdigest()[:32]
