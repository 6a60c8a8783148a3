"""Transport, over real sockets: whatever a server does, an answer is whole, in time, within the cap, or no answer."""

import gzip
import socket
import time
from collections.abc import Iterator

import pytest

from executor.request import Request
from executor.transport import Answer, Transport, read_links
from ingest.errors import Refused, Retryable, Unreadable
from tests.unit.executor.servers import answer, drip, hang_up, serve, silence, zipped

MIB = 1 << 20


@pytest.fixture(scope="module")
def transport() -> Iterator[Transport]:
    """A transport that may go to loopback."""
    made = Transport(open_origins=("http://127.0.0.1:*", "http://[::1]:*"), connections=4)
    yield made
    made.close()


def send(
    transport: Transport,
    url: str,
    *,
    deadline: float = 5.0,
    limit: int = MIB,
    query: tuple[tuple[str, str], ...] = (),
    headers: tuple[tuple[str, str], ...] = (),
) -> Answer:
    until = time.monotonic() + deadline
    return transport.send(
        Request("GET", url, query, headers),
        connect_s=2.0,
        read_s=2.0,
        remaining=lambda: until - time.monotonic(),
        max_body_bytes=limit,
    )


def test_an_answer_is_whole(transport: Transport) -> None:
    with serve(answer(b'{"a":1}', headers={"X-Thing": "Seen", "Link": "</p2>; rel=next"})) as server:
        got = send(transport, server.url + "/items", query=(("b", "2"), ("a", "x y&z"), ("b", "3")))
    assert (got.status, got.body, got.headers["x-thing"]) == (200, b'{"a":1}', "Seen")
    assert got.links == {"next": "/p2"}
    assert got.url == server.url + "/items"
    assert got.wire_bytes == 7
    assert server.requests[0].startswith(b"GET /items?b=2&a=x+y%26z&b=3 HTTP/1.1\r\n")


def test_a_url_that_brings_its_own_query_keeps_it_as_it_was_written(transport: Transport) -> None:
    with serve(answer()) as server:
        send(transport, server.url + "/items?flag&cursor=%E9%2F%2B&x=a,b", query=(("key", "k"),))
    assert server.requests[0].startswith(b"GET /items?flag&cursor=%E9%2F%2B&x=a,b&key=k HTTP/1.1\r\n")


def test_a_connection_is_used_again(transport: Transport) -> None:
    with serve(answer()) as server:
        for _ in range(3):
            send(transport, server.url)
        assert len(server.requests) == 3
        assert len(server._connections) == 1


@pytest.mark.parametrize("at_once", [0, 60], ids=["headers", "body"])
def test_a_dripping_server_is_cut_at_the_total_deadline(transport: Transport, at_once: int) -> None:
    with serve(drip(answer(b"x" * 1000), at_once)) as server:
        started = time.monotonic()
        with pytest.raises(Retryable):
            send(transport, server.url, deadline=0.3)
        assert time.monotonic() - started < 1.0


def test_a_silent_server_is_cut_at_the_total_deadline(transport: Transport) -> None:
    with serve(silence) as server:
        started = time.monotonic()
        with pytest.raises(Retryable, match="timeout"):
            send(transport, server.url, deadline=0.2)
        assert time.monotonic() - started < 1.0


def test_a_deadline_that_has_passed_sends_nothing(transport: Transport) -> None:
    with serve(answer()) as server:
        with pytest.raises(Retryable):
            send(transport, server.url, deadline=-1.0)
        assert server.requests == []


@pytest.mark.parametrize(
    "part",
    [
        b"",
        b"HTTP/1.1 200",
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n",
        b'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{"items":',
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nConnection: close\r\n\r\n" + gzip.compress(b"x" * 999)[:-9],
        b"not http at all\r\n\r\n",
    ],
    ids=["nothing", "status", "no body", "half a body", "no last chunk", "half a gzip", "no http"],
)
def test_an_answer_cut_short_is_asked_for_again_and_never_a_short_page(transport: Transport, part: bytes) -> None:
    with serve(hang_up(part)) as server, pytest.raises(Retryable):
        send(transport, server.url)


def test_a_refused_connection_is_asked_for_again(transport: Transport) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Retryable, match="ConnectError"):
        send(transport, f"http://127.0.0.1:{port}")


def test_endless_headers_are_refused_and_bounded(transport: Transport) -> None:
    with serve(b"HTTP/1.1 200 OK\r\n" + b"X-Junk: y\r\n" * 100_000) as server, pytest.raises(Retryable):
        send(transport, server.url)


def test_a_body_over_the_cap_is_refused_not_cut(transport: Transport) -> None:
    with serve(answer(b"x" * 1001)) as server:
        with pytest.raises(Unreadable, match="larger than 1000 bytes"):
            send(transport, server.url, limit=1000)
        assert len(send(transport, server.url, limit=1001).body) == 1001


def test_a_bomb_is_refused_at_the_cap(transport: Transport) -> None:
    bomb = zipped(bytes(32 * MIB))
    assert len(bomb) < 40_000
    with serve(bomb) as server, pytest.raises(Unreadable, match="larger"):
        send(transport, server.url, limit=MIB)


def test_what_was_asked_for_compressed_is_inflated(transport: Transport) -> None:
    with serve(zipped(b"body" * 50_000)) as server:
        got = send(transport, server.url)
    assert got.body == b"body" * 50_000
    assert got.wire_bytes < 1000
    assert b"accept-encoding: gzip, deflate\r\n" in server.requests[0].lower()


def test_an_empty_body_may_call_itself_compressed(transport: Transport) -> None:
    with serve(answer(b"", status=204, headers={"Content-Encoding": "gzip"})) as server:
        assert send(transport, server.url).body == b""


def test_a_wrong_label_is_asked_for_again(transport: Transport) -> None:
    with (
        serve(answer(b"plain text", headers={"Content-Encoding": "gzip"})) as server,
        pytest.raises(Retryable, match="compression is broken"),
    ):
        send(transport, server.url)


def test_of_an_error_only_the_beginning_is_read(transport: Transport) -> None:
    with serve(answer(b"e" * MIB, status=500)) as server:
        got = send(transport, server.url, limit=1000)
    assert got.status == 500
    assert 1000 < len(got.body) < MIB


def test_a_redirect_is_an_answer_and_not_followed(transport: Transport) -> None:
    with serve(answer()) as other:
        with serve(answer(b"", status=302, headers={"Location": other.url + "/login"})) as server:
            got = send(transport, server.url, headers=(("X-Api-Key", "k"),))
        assert (got.status, got.headers["location"]) == (302, other.url + "/login")
        assert other.requests == []


def test_no_cookie_is_kept(transport: Transport) -> None:
    with serve(answer(headers={"Set-Cookie": "session=1; Path=/"})) as server:
        send(transport, server.url)
        send(transport, server.url)
    assert not any(b"cookie" in head.lower() for head in server.requests)


def test_proxies_and_netrc_of_the_environment_are_not_used(
    transport: Transport, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("machine 127.0.0.1 login me password secret\n")
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with serve(answer()) as server:
        made = Transport(open_origins=("http://127.0.0.1:*",), connections=1)
        assert send(made, server.url).status == 200
        made.close()
    assert b"authorization" not in server.requests[0].lower()


def test_a_header_that_cannot_be_encoded_is_not_sent(transport: Transport) -> None:
    with serve(answer()) as server:
        with pytest.raises(Retryable):
            send(transport, server.url, headers=(("X-A", "a\r\nX-B: b"),))
        assert server.requests == []


CLOSED_HOSTS = [
    "127.0.0.1", "[::1]", "localhost", "localhost.", "2130706433", "0x7f.1", "0177.0.0.1", "127.1",
    "[::ffff:127.0.0.1]", "0",
]  # fmt: skip


@pytest.mark.parametrize("host", CLOSED_HOSTS)
def test_loopback_is_closed_by_every_name_it_has(host: str) -> None:
    closed = Transport(open_origins=(), connections=1)
    with serve(answer()) as server:
        # TLS would fail later; the address is refused before anything is dialled
        with pytest.raises((Refused, Retryable)) as caught:
            send(closed, f"https://{host}:{server.port}/", deadline=2.0)
        assert server._connections == []
    closed.close()
    assert isinstance(caught.value, Refused) or "cannot resolve" in str(caught.value)


def test_plain_http_is_closed_even_to_a_public_host() -> None:
    closed = Transport(open_origins=(), connections=1)
    with pytest.raises(Refused, match=r"plain HTTP to http://api\.example\.org:80 is closed"):
        send(closed, "http://api.example.org/x")
    closed.close()


def test_opening_one_origin_opens_no_other() -> None:
    with serve(answer()) as server:
        one = Transport(open_origins=(server.url,), connections=1)
        assert send(one, server.url).status == 200
        for url in (f"http://localhost:{server.port}", f"http://127.0.0.1:{server.port + 1}"):
            with pytest.raises(Refused):
                send(one, url)
        one.close()


def test_a_name_that_resolves_to_a_private_address_is_closed_when_dialled(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second look-up of a name may say something else than the first: the address dialled is the one checked."""
    monkeypatch.setattr(socket, "getaddrinfo", _resolver({"api.example.org": ["169.254.169.254"]}))
    closed = Transport(open_origins=(), connections=1)
    with pytest.raises(Refused, match=r"api\.example\.org is 169\.254\.169\.254, which is not a public address"):
        send(closed, "https://api.example.org/latest")
    closed.close()


def test_one_private_address_among_public_ones_closes_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", _resolver({"api.example.org": ["8.8.8.8", "10.0.0.1"]}))
    closed = Transport(open_origins=(), connections=1)
    with pytest.raises(Refused, match=r"10\.0\.0\.1"):
        send(closed, "https://api.example.org/")
    closed.close()


def test_the_next_address_is_tried_when_the_first_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(answer()) as server:
        monkeypatch.setattr(socket, "getaddrinfo", _resolver({"two.test": ["::1", "127.0.0.1"]}))
        opened = Transport(open_origins=("http://two.test:*",), connections=1)
        assert send(opened, f"http://two.test:{server.port}").status == 200
        opened.close()


def test_a_host_that_does_not_exist_is_asked_for_again(transport: Transport, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", _resolver({}))
    with pytest.raises(Retryable, match="cannot resolve"):
        send(transport, "https://nowhere.example.org/")


def test_a_name_no_resolver_takes_is_asked_for_again(transport: Transport) -> None:
    with pytest.raises((Retryable, Refused)):
        send(transport, "https://" + "a" * 64 + ".example.org/")


def test_an_ipv6_origin_can_be_opened(transport: Transport) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with serve(answer(), host="::1") as server:
        assert send(transport, server.url).status == 200


def _resolver(names: dict[str, list[str]]):  # type: ignore[no-untyped-def]
    real = socket.getaddrinfo

    def resolve(host, port, *args, **kwargs):  # type: ignore[no-untyped-def]
        if host in names:
            return [(0, 0, 0, "", (address, port)) for address in names[host]]
        if str(host).replace(".", "").isdigit() or ":" in str(host):
            return real(host, port, *args, **kwargs)
        raise socket.gaierror("no such name")

    return resolve


@pytest.mark.parametrize(
    ("header", "links"),
    [
        ("", {}),
        ('<https://a/2>; rel="next", <https://a/9>; rel="last"', {"next": "https://a/2", "last": "https://a/9"}),
        ("<?page=2>;rel=next", {"next": "?page=2"}),
        ('<https://a/2?x=1,2&y=;z>; title="a, b"; rel="NEXT last"', {"next": "https://a/2?x=1,2&y=;z", "last": "https://a/2?x=1,2&y=;z"}),
        ("<https://a/1>; rel=next, <https://a/2>; rel=next", {"next": "https://a/1"}),
        ("<https://a/1>; rev=next", {}),
        ("garbage; rel=next", {}),
        ("<>; rel=next", {"next": ""}),
    ],
)  # fmt: skip
def test_links_are_read_by_their_relation(header: str, links: dict[str, str]) -> None:
    assert read_links(header) == links
