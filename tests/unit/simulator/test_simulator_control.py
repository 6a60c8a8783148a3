"""The control surface answers in JSON, and a wrong order changes nothing."""

from typing import Any

import pytest

from simulator.server import Simulator
from simulator.world import APIS


def test_health_says_what_is_served(client: Any) -> None:
    told = client.get("/_sim/health").json
    assert told == {
        "status": "ok",
        "seed": 7,
        "span": ["2024-01-01T00:00:00Z", "2024-03-01T00:00:00Z"],
        "records": {"crossref": 260, "pubmed": 120, "github": 95, "tushare_stock_basic": 20}
        | dict.fromkeys(set(APIS) - {"crossref", "pubmed", "github", "tushare_stock_basic"}, 130),
        "github_repos": ["acme/widgets"],
    }


def test_control_requests_are_not_journalled(sim: Simulator, client: Any) -> None:
    client.get("/_sim/health")
    client.get("/_sim/truth/plain")
    assert all(told["count"] == 0 for told in sim.requests().values())


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/_sim/truth/nobody", None),
        ("GET", "/_sim/truth", None),
        ("GET", "/_sim/truth/plain?from=soon", None),
        ("GET", "/_sim/truth/plain?repo=a/b", None),
        ("GET", "/_sim/requests?api=nobody", None),
        ("GET", "/_sim/requests?last=x", None),
        ("POST", "/_sim/faults", b"not json"),
        ("POST", "/_sim/mutate", b"[]"),
        ("POST", "/_sim/mutate", b"{}"),
        ("POST", "/_sim/mutate", b'{"api": "plain", "oops": 1}'),
        ("POST", "/_sim/mutate", b'{"api": "plain", "ids": ["nobody"]}'),
        ("POST", "/_sim/mutate", b'{"api": "plain", "at": "soon"}'),
        ("POST", "/_sim/limit", b'{"api": "plain"}'),
        ("POST", "/_sim/limit", b'{"api": "nobody", "limit": 1, "window_s": 1}'),
        ("POST", "/_sim/limit", b'{"api": "plain", "limit": 1, "window_s": 0}'),
        ("POST", "/_sim/reset", b'{"only": ["everything"]}'),
    ],
)
def test_a_wrong_order_is_refused_with_a_reason(
    sim: Simulator, client: Any, method: str, path: str, body: bytes | None
) -> None:
    before = sim.truth("plain")
    reply = client.send(method, path, body)
    assert reply.status == 400
    assert reply.json["error"]
    assert sim.truth("plain") == before


@pytest.mark.parametrize("path", ["/_sim/", "/_sim/nothing", "/_sim/health/x"])
def test_unknown_controls_list_the_known_ones(client: Any, path: str) -> None:
    reply = client.get(path)
    assert reply.status == 404
    assert "GET /_sim/health" in reply.json["error"]


def test_a_body_without_a_length_is_refused(client: Any) -> None:
    reply = client.send("POST", "/plain/items", b"2\r\n{}\r\n0\r\n\r\n", {"Transfer-Encoding": "chunked"})
    assert reply.status == 411


def test_one_connection_serves_many_requests(sim: Simulator, client: Any) -> None:
    client.get("/plain/items")
    socket = client.connection.sock
    client.get("/crossref/works")
    client.get("/_sim/health")
    assert client.connection.sock is socket


def test_close_hangs_up_on_idle_clients_and_may_be_repeated(client: Any, sim: Simulator) -> None:
    client.get("/plain/items")
    sim.close()
    sim.close()
    assert client.connection.sock.recv(1) == b""


def test_two_simulators_cannot_share_a_port(sim: Simulator) -> None:
    with pytest.raises(OSError, match="in use"):
        Simulator(sizes={}, port=sim.port)
