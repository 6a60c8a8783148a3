"""Checks of the request: where it goes, how long it may take, what may travel in it (B2, DESIGN rule 9)."""

import ipaddress
import re
from collections.abc import Iterator
from urllib.parse import SplitResult, urlsplit

from ingest.spec.snapshot import origin_of
from registry.checks.subject import Subject, error
from registry.fields import write_value
from registry.problems import Finding

_LONGEST_TIMEOUT_S = 120  # B2
_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OURS = {"host", "content-length", "transfer-encoding", "connection"}


def check_origin(subject: Subject) -> Iterator[Finding]:
    """The source lives at one plain address: https, public, no credentials in it, unless the installation opens it."""
    where, url = subject.where("base_url"), subject.get("base_url")
    if not url:
        yield error("missing", ("base_url",), "'base_url' is missing")
        return
    if "{{" in url:
        yield error("bad-url", where, "an address is fixed: templates belong in the path and the parameters")
        return
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError as problem:
        yield error("bad-url", where, f"not a URL: {problem}")
        return
    if parts.scheme not in ("http", "https") or not parts.hostname:
        yield error("bad-url", where, f"'{url}' is not a URL", "write https://host/path")
        return
    if parts.username or parts.password:
        finding = error("literal-secret", where, "an address must not hold a user or password", "use 'auth'")
        yield Finding(code=finding.code, where=where, message=finding.message, hint=finding.hint, sensitive=True)
    if parts.query or parts.fragment:
        yield error("bad-url", where, "an address has no '?' or '#'", "use 'query'")
    yield from _check_open(subject, url, parts)


def _check_open(subject: Subject, url: str, parts: SplitResult) -> Iterator[Finding]:
    if subject.open_origins is None or is_open(origin_of(url), subject.open_origins):
        return
    opening = f'add "{parts.scheme}://{parts.netloc}" to open_origins in ingest.toml or INGEST_OPEN_ORIGINS'
    if parts.scheme == "http":
        yield error("closed-origin", subject.where("base_url"), "plain http is closed", f"use https, or {opening}")
    elif _is_private(parts.hostname or ""):
        yield error("closed-origin", subject.where("base_url"), f"{parts.hostname} is a private address", opening)


def is_open(origin: str, opened: tuple[str, ...]) -> bool:
    """Say whether the installation opens an origin; `*` as the port opens every port of the host."""
    for text in opened:
        scheme_and_host, _, port = text.rpartition(":")
        if port == "*":
            if origin.rpartition(":")[0] == scheme_and_host.lower():
                return True
        elif origin_of(text) == origin:
            return True
    return False


def _is_private(host: str) -> bool:
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return False


def check_request(subject: Subject) -> Iterator[Finding]:
    """Path, timeouts, redirects, body and headers can be sent as they are."""
    method = str(subject.definition["method_code"])
    path, where = str(subject.definition["path"]), subject.own(method.lower())
    if not path.startswith("/"):
        yield error("bad-url", where, f"a path begins with '/', got '{path}'")
    if "?" in path or "#" in path:
        yield error("bad-url", where, "a path has no '?' or '#'", "use 'query'")
    for key in ("timeouts.connect", "timeouts.read", "timeouts.total"):
        seconds = subject.get(key)
        if seconds is not None and not 0 < seconds <= _LONGEST_TIMEOUT_S:
            written = write_value("seconds", seconds)
            yield error("above-limit", subject.where(key), f"a timeout is above 0s and at most 2m, got {written}")
    redirects = subject.get("http.redirects")
    if redirects and not 0 <= redirects <= 3:
        yield error("above-limit", subject.where("http.redirects"), "at most 3 redirects are followed")
    if redirects and method != "GET":
        yield error("rivals", subject.where("http.redirects"), "redirects are followed for GET only")
    if method == "GET" and subject.get("body") is not None:
        key = "form" if subject.get("body_kind") == "form" else "body"
        where = (*subject.where("body")[:-1], key)
        yield error("rivals", where, f"a GET has no {key}", "use 'query', or 'post: /path'")
    proxy = subject.get("http.proxy")
    if proxy is not None and (urlsplit(proxy).scheme not in ("http", "https") or "@" in proxy):
        where = subject.where("http.proxy")
        message = "a proxy is http://host:port, without a user or password"
        yield Finding(code="bad-url", where=where, message=message, sensitive="@" in proxy)
    yield from _check_headers(subject)


def _check_headers(subject: Subject) -> Iterator[Finding]:
    for name, value in subject.merged.get("headers", {}).items():
        where = (*(value.prefix or ()), "headers", value.name)
        if not _TOKEN.fullmatch(name):
            yield error("bad-header", where, f"'{name}' is not a header name")
        elif name in _OURS:
            yield error("bad-header", where, f"'{name}' is set by the client itself")
        if re.search(r"[\r\n\0]", str(value.value)):
            yield error("bad-header", where, "a header is one line")
