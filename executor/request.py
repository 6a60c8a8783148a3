"""Requests: from a snapshot, a window and a page's state to exactly what is sent (pure; B2, B10).

Invariant: the digest holds the whole request without secrets, and its hash is equal for equal requests, so that a
replay can prove it asks the same thing. Credentials are placed after the digest is taken (`executor.auth`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote_plus, urldefrag, urlencode, urlsplit

import msgspec

from ingest.errors import RequestInvalid
from ingest.spec.canonical import hash_of, hash_text
from ingest.spec.snapshot import Snapshot, origin_of
from ingest.spec.templates import Render, compile_template

_LONGEST_VALUE = 8192
NO_PARTITION: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request; `query` keeps its order. Only a next URL the source gave has a query of its own in `url`."""

    method: str
    url: str
    query: tuple[tuple[str, str], ...]
    headers: tuple[tuple[str, str], ...]
    body: bytes | None = None

    def with_headers(self, *more: tuple[str, str]) -> "Request":
        """Return the request with headers added."""
        return replace(self, headers=(*self.headers, *more))

    def digest(self) -> dict[str, Any]:
        """Return the request as the ledger keeps it."""
        content = {
            "method": self.method,
            "url": self.url,
            "query": [list(pair) for pair in self.query],
            "headers": [f"{name}: {value}" for name, value in self.headers],
            "bodyHash": None if self.body is None else hash_text(self.body),
        }
        return content | {"hash": hash_of(content)}


class RequestBuilder:
    """The templates of one snapshot, compiled once."""

    def __init__(self, snapshot: Snapshot) -> None:
        http = snapshot.http
        self._method = http.method
        self._base_url = http.base_url
        self._origin = http.origin
        self._path = compile_template(http.path)
        self._query = [(name, compile_template(text)) for name, text in http.query.items()]
        self._headers = [(name, compile_template(text)) for name, text in http.headers.items()]
        self._body = None if http.body is None else _compile_body(http.body)
        self._body_kind = http.body_kind
        self._vars = snapshot.expr.vars

    def build(
        self, window: Mapping[str, Any], page: Mapping[str, Any], partition: Mapping[str, str] = NO_PARTITION
    ) -> Request:
        """Render the request for one page; raises `RequestInvalid` if a template fails or a value may not be sent."""
        context = {"vars": self._vars, "window": window, "page": page, "partition": partition}
        if page.get("url"):
            return self._follow(str(page["url"]), context)
        path = _text(self._path(context), "path")
        if any(mark in path for mark in "?#\\") or ".." in path.split("/"):
            raise RequestInvalid(f"path {path!r} holds '?', '#', '\\' or '..'; nothing was sent")
        url = self._base_url.rstrip("/") + "/" + path.lstrip("/") if path else self._base_url
        # null policy `omit`: a parameter that renders to nothing is left out
        query = tuple(
            (name, _text(value, name)) for name, render in self._query if (value := render(context)) is not None
        )
        headers = self._render_headers(context)
        body, content_type = self._render_body(context)
        if body is not None and not any(name.lower() == "content-type" for name, _ in headers):
            headers = (*headers, ("Content-Type", content_type))
        return Request(self._method, url, query, headers, body)

    def _follow(self, url: str, context: Mapping[str, Any]) -> Request:
        """Ask the URL the source gave, as it is; it may lead to no other origin and bring no user of its own."""
        try:
            origin, named = origin_of(url), "@" in urlsplit(url).netloc
        except ValueError as error:
            raise RequestInvalid(f"the next URL is not a URL: {error}") from error
        if origin != self._origin or named:
            raise RequestInvalid(f"the next URL leads from {self._origin} to {origin}, or as a user; not followed")
        return Request("GET", _text(urldefrag(url).url, "next URL"), (), self._render_headers(context))

    def _render_headers(self, context: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
        headers = []
        for name, render in self._headers:
            value = render(context)
            if value is None:
                continue
            text = _text(value, name).strip()
            if not text.isascii():
                raise RequestInvalid(f"header {name} rendered a character that is not ASCII; nothing was sent")
            headers.append((name, text))
        return tuple(headers)

    def _render_body(self, context: Mapping[str, Any]) -> tuple[bytes | None, str]:
        if self._body is None:
            return None, ""
        value = self._body(context)
        try:
            if self._body_kind == "json":
                return msgspec.json.encode(value, order="sorted"), "application/json"
            pairs = [(name, _text(item, name)) for name, item in value.items()]
            return urlencode(pairs).encode(), "application/x-www-form-urlencoded"
        except (AttributeError, TypeError, ValueError) as error:
            raise RequestInvalid(f"the body cannot be written as {self._body_kind}: {error}") from error


def _compile_body(value: Any) -> Render:
    """Compile every string in the body's tree; keys are literal, None leaves the key out."""
    if isinstance(value, str):
        return compile_template(value)
    if isinstance(value, dict):
        parts = {key: _compile_body(item) for key, item in value.items()}
        return lambda context: {key: out for key, part in parts.items() if (out := part(context)) is not None}
    if isinstance(value, list):
        items = [_compile_body(item) for item in value]
        return lambda context: [item(context) for item in items]
    return lambda _: value


def _text(value: Any, name: str) -> str:
    """Return a rendered value as text that is safe to send: one value, no control characters, not endless."""
    if not isinstance(value, str | int | float):
        raise RequestInvalid(f"{name} rendered a {type(value).__name__}; nothing was sent")
    text = str(value).lower() if isinstance(value, bool) else str(value)
    # lone surrogates cannot be encoded, control characters could end a header or a line of a log
    if any(ord(character) < 32 or ord(character) == 127 or "\ud800" <= character <= "\udfff" for character in text):
        raise RequestInvalid(f"{name} rendered a character that cannot be sent; nothing was sent")
    if len(text) > _LONGEST_VALUE:
        raise RequestInvalid(f"{name} rendered {len(text)} characters; at most {_LONGEST_VALUE} are sent")
    return text


def drop_parameter(url: str, name: str) -> str:
    """Return the URL without one parameter of its query, everything else as it was written."""
    head, mark, rest = url.partition("?")
    query, hash_mark, fragment = rest.partition("#")
    kept = [pair for pair in query.split("&") if unquote_plus(pair.partition("=")[0]) != name]
    return head + (mark if kept else "") + "&".join(kept) + hash_mark + fragment
