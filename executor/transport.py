"""Transport: the one module that imports httpx. Sends a request, with a total deadline and a body cap (B2, E10).

httpx's timeouts are per chunk, so a server that drips a byte a second never times out: every read here is cut at the
request's own deadline. Bodies are inflated in small pieces, so a bomb never grows past the cap. Every address is
checked when it is dialled, not when its name was written: plain HTTP and addresses that are not public are closed
unless the installation opened the origin (DESIGN rule 9). Redirects are never followed, proxies of the environment
never used, cookies never kept.
"""

import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpcore
import httpx

from executor.addresses import is_open_origin, is_public
from executor.inflate import ACCEPTED, inflate
from executor.request import Request
from ingest.errors import Refused, Retryable, Unreadable
from ingest.spec.snapshot import origin_of

_CHUNK = 1 << 18  # httpcore asks for 64 KB; each read costs it and h11 about 0.15 ms whatever came
_EVIDENCE = 1 << 16  # of an error's body only the beginning is of use
_LINK = re.compile(r"<([^>]*)>([^<]*)")
_REL = re.compile(r";\s*rel\s*=\s*(?:\"([^\"]*)\"|([^\";,\s]+))", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Answer:
    """A complete answer: its body arrived whole and within the cap."""

    status: int
    headers: dict[str, str]
    body: bytes
    links: dict[str, str]  # rel -> URL as the Link header has it
    wire_bytes: int
    latency_s: float
    arrived: float  # monotonic
    url: str = ""  # what was asked, without credential: relative links begin there


class _Deadline(threading.local):
    """The deadline of the request this thread is sending; httpx runs in the caller's thread."""

    remaining: Callable[[], float] | None = None


_deadline = _Deadline()


def _cut(timeout: float | None) -> float:
    remaining = _deadline.remaining() if _deadline.remaining else 30.0
    if remaining <= 0:
        raise httpcore.ReadTimeout("total deadline passed")
    return min(timeout or 30.0, remaining)


class _Stream(httpcore.NetworkStream):
    """A connection whose every read and write ends at the request's deadline."""

    def __init__(self, inner: httpcore.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max(max_bytes, _CHUNK), _cut(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _cut(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _cut(timeout)))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore.NetworkBackend):
    """Dials only addresses that may be dialled, the very address that was checked."""

    def __init__(self, is_open: Callable[[str, int], bool]) -> None:
        self._inner = httpcore.SyncBackend()
        self._is_open = is_open

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.NetworkStream:
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"cannot resolve {host}: {error}") from error
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if not self._is_open(host, port):
            for address in addresses:
                if not is_public(address):
                    raise _AddressClosed(f"{host} is {address}, which is not a public address")
        failed: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                stream = self._inner.connect_tcp(address, port, _cut(timeout), local_address, socket_options)
                return _Stream(stream)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failed = error  # a host with IPv6 addresses and no way there has others
        raise failed


class _AddressClosed(Exception):
    """The address may not be dialled."""


class _Transport(httpx.HTTPTransport):
    """httpx's transport over our backend; it takes none in its constructor, hence the private attribute."""

    def __init__(self, backend: httpcore.NetworkBackend, connections: int) -> None:
        super().__init__(retries=0)
        self._pool = httpcore.ConnectionPool(
            ssl_context=httpx.create_ssl_context(trust_env=False),
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=30.0,
            network_backend=backend,
        )


class Transport:
    """The process' HTTP client, shared by its threads."""

    def __init__(self, *, open_origins: Iterable[str], connections: int) -> None:
        self._open = frozenset(origin.lower().rstrip("/") for origin in open_origins)
        self._client = httpx.Client(
            transport=_Transport(_Backend(self._is_open_address), connections),
            headers={"User-Agent": "patra-ingest", "Accept-Encoding": ACCEPTED},
            # a jar would grow with every answer and carry one source's session into another's requests
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),
            follow_redirects=False,
            trust_env=False,
        )

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def _is_open_address(self, host: str, port: int) -> bool:
        name = f"[{host}]" if ":" in host else host
        return any(self._is_open(f"{scheme}://{name}:{port}") for scheme in ("http", "https"))

    def _is_open(self, origin: str) -> bool:
        return is_open_origin(origin, self._open)

    def send(
        self,
        request: Request,
        *,
        connect_s: float,
        read_s: float,
        remaining: Callable[[], float],
        max_body_bytes: int,
        whole_errors: bool = False,
    ) -> Answer:
        """Send and read the answer, whatever its status; raise `Retryable`, `Refused` or `Unreadable`.

        Of an error's body only the beginning is read, unless `whole_errors`.
        """
        if urlsplit(request.url).scheme != "https" and not self._is_open(origin_of(request.url)):
            raise Refused(f"plain HTTP to {origin_of(request.url)} is closed; open it with INGEST_OPEN_ORIGINS")
        started = time.monotonic()
        _deadline.remaining = remaining
        try:
            timeout = httpx.Timeout(read_s, connect=connect_s)
            prepared = self._client.build_request(
                request.method,
                target_of(request),
                headers=list(request.headers),
                content=request.body,
                timeout=timeout,
            )
            response = self._client.send(prepared, stream=True)
            try:
                body = _read(response, max_body_bytes, remaining, whole_errors=whole_errors)
            finally:
                response.close()
        except _AddressClosed as error:
            raise Refused(f"{error}; open {origin_of(request.url)} with INGEST_OPEN_ORIGINS if it is yours") from error
        except httpx.TimeoutException as error:
            raise Retryable(f"timeout after {time.monotonic() - started:.1f} s") from error
        except httpx.TransportError as error:
            raise Retryable(f"{type(error).__name__}: {error}") from error
        except httpx.InvalidURL as error:
            raise Refused(f"not a URL: {error}") from error
        finally:
            _deadline.remaining = None
        arrived = time.monotonic()
        return Answer(
            status=response.status_code,
            headers={name.lower(): value for name, value in response.headers.items()},
            body=body,
            links=read_links(response.headers.get("link", "")),
            wire_bytes=response.num_bytes_downloaded,
            latency_s=arrived - started,
            arrived=arrived,
            url=request.url,
        )


def target_of(request: Request) -> str:
    """Return the URL with its query, as it is sent."""
    if not request.query:
        return request.url
    return f"{request.url}{'&' if '?' in request.url else '?'}{urlencode(request.query)}"


def read_links(header: str) -> dict[str, str]:
    """Return the URLs of a Link header by their relation, the first one where a relation comes twice."""
    links: dict[str, str] = {}
    for url, parameters in _LINK.findall(header):
        rel = _REL.search(parameters)
        for name in (rel[1] or rel[2] or "").lower().split() if rel else ():
            links.setdefault(name, url)
    return links


def _read(response: httpx.Response, limit: int, remaining: Callable[[], float], *, whole_errors: bool) -> bytes:
    """Read the inflated body up to the limit; a body that is larger is refused, not cut, unless it is an error's."""
    chunks: list[bytes] = []
    size = 0
    for chunk in inflate(response.iter_raw(), response.headers.get("content-encoding", "")):
        size += len(chunk)
        chunks.append(chunk)
        if not (response.is_success or whole_errors):
            if size >= _EVIDENCE:
                break
        elif size > limit or response.num_bytes_downloaded > limit:
            raise Unreadable(f"the body is larger than {limit} bytes; raise max_body or ask for smaller pages")
        if remaining() <= 0:
            raise Retryable("the total deadline passed while the body was still coming")
    return b"".join(chunks)
