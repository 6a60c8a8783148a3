"""What the server counts: arrivals, statuses, violations of a limit, silence kept or broken."""

from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from typing import Any

from simulator.answers import Request
from simulator.journal import Journal
from simulator.limits import Limits
from simulator.server import Simulator

ITEMS = "/plain/items"


def test_arrivals_are_counted_per_api_with_their_times(sim: Simulator, client: Any) -> None:
    for _ in range(3):
        client.get(ITEMS)
    client.get("/crossref/works")
    client.get("/nowhere")
    summary = client.get("/_sim/requests").json
    assert {api: told["count"] for api, told in summary.items()} == {
        "crossref": 1, "pubmed": 0, "github": 0, "plain": 3, "none": 1,
        "europepmc": 0, "oai": 0, "biorxiv": 0, "stripe": 0, "shopify": 0,
        "tushare_stock_basic": 0, "tushare_daily": 0, "tushare_adj_factor": 0, "tushare_daily_basic": 0,
        "binance_klines": 0, "binance_funding": 0,
    }  # fmt: skip
    plain = client.get("/_sim/requests", api="plain").json
    assert plain["statuses"] == {"200": 3}
    assert len(plain["arrivals"]["wall"]) == 3
    times = plain["arrivals"]["monotonic"]
    assert times == sorted(times)
    assert "arrivals" not in client.get("/_sim/requests", api="plain", arrivals=0).json


def test_the_last_requests_are_kept_with_secrets_hashed(sim: Simulator, client: Any) -> None:
    client.get(f"{ITEMS}?page=2&api_key=sesame", headers={"Authorization": "Bearer sesame", "Accept": "x/y"})
    client.get(f"{ITEMS}?page=3")
    last = sim.requests("plain", last=2)["last"]
    assert [entry["target"].split("&")[0] for entry in last] == [f"{ITEMS}?page=2", f"{ITEMS}?page=3"]
    assert last[0]["headers"]["Authorization"].startswith("redacted-")
    assert last[0]["headers"]["Accept"] == "x/y"
    assert "sesame" not in str(last)
    assert sim.requests("plain", last=1)["last"] == last[1:]


def test_bytes_and_faults_are_counted(sim: Simulator, client: Any) -> None:
    sim.add_fault("plain", "503")
    sizes = [len(client.get(ITEMS).body) for _ in range(2)]
    client.get("/_sim/health")  # on the same connection: the answers before it are finished
    told = sim.requests("plain")
    assert told["faults"] == {"503": 1}
    assert told["bytes_sent"] == sum(sizes)
    assert told["in_flight"] == 0


def test_a_limit_refuses_with_retry_after_and_counts_violations(sim: Simulator, client: Any) -> None:
    assert client.post("/_sim/limit", {"api": "plain", "limit": 3, "window_s": 60}).json["windows"] == [
        {"limit": 3, "window_s": 60.0}
    ]
    replies = [client.get(ITEMS) for _ in range(5)]
    assert [reply.status for reply in replies] == [200, 200, 200, 429, 429]
    assert [reply.headers["x-ratelimit-remaining"] for reply in replies[:3]] == ["2", "1", "0"]
    assert 58 <= int(replies[3].headers["Retry-After"]) <= 60
    told = client.get("/_sim/requests", api="plain", window_s=60).json
    assert (told["violations"], told["worst_window"], told["early"]) == (2, 5, 1)
    assert client.get("/crossref/works").status == 200
    client.post("/_sim/limit", {"api": "plain", "limit": None})
    assert client.get(ITEMS).status == 200


def test_a_limit_lets_exactly_so_many_in_at_once(sim: Simulator) -> None:
    sim.limit("plain", (10, 60.0))

    def ask(_: int) -> int:
        connection = HTTPConnection("127.0.0.1", sim.port)
        connection.request("GET", f"{ITEMS}?size=1")
        response = connection.getresponse()
        response.read()
        connection.close()
        return response.status

    with ThreadPoolExecutor(8) as pool:
        seen = list(pool.map(ask, range(24)))
    assert (seen.count(200), seen.count(429)) == (10, 14)
    assert sim.requests("plain")["violations"] == 14


def test_a_window_slides() -> None:
    limits = Limits()
    limits.set("plain", [(2, 10.0)])

    def wait(now: float) -> float:
        allowance = limits.admit("plain", now)
        assert allowance is not None
        return allowance.wait_s

    assert [wait(100.0), wait(104.0), wait(105.0), wait(109.9)] == [0, 0, 5, 100.0 + 10 - 109.9]
    assert wait(110.0) == 0  # the first has left; refused ones took no place
    assert wait(111.0) == 3
    assert limits.count_violations("plain") == 3


def test_the_tightest_of_several_windows_decides() -> None:
    limits = Limits()
    limits.set("plain", [(2, 1.0), (3, 100.0)])
    waits = [limits.admit("plain", now) for now in (10.0, 10.1, 10.5, 11.1, 12.0)]
    assert [round(allowance.wait_s, 3) for allowance in waits if allowance] == [0, 0, 0.5, 0, 98.0]


def test_crossref_tells_its_limit_in_headers(sim: Simulator, client: Any) -> None:
    assert client.get("/crossref/works").headers["x-rate-limit-limit"] is None
    sim.limit("crossref", (3, 1.0))
    headers = client.get("/crossref/works").headers
    assert (headers["x-rate-limit-limit"], headers["x-rate-limit-interval"]) == ("3", "1s")


def test_requests_inside_a_retry_after_are_early(sim: Simulator, client: Any) -> None:
    sim.add_fault("plain", "429", retry_after=30)
    for _ in range(3):
        client.get(ITEMS)
    client.get("/crossref/works")
    told = sim.requests("plain")
    assert told["early"] == 2
    ((start, end),) = told["silences"]
    assert end - start == 30
    assert [entry["early"] for entry in told["last"]] == [False, True, True]
    assert sim.requests("crossref")["early"] == 0


def test_the_worst_window_is_counted_half_open() -> None:
    journal = Journal()
    assert journal.count_worst_window("plain", 1.0) == 0
    for at in (10.0, 10.2, 10.9, 11.0, 11.1, 13.0):
        journal.arrive("plain", Request("GET", "/", "/", {}), at)
    assert journal.count_worst_window("plain", 1.0) == 4


def test_requests_in_flight_are_counted(sim: Simulator) -> None:
    sim.add_fault("plain", "drip", delay_s=60, times=3)
    connections = [HTTPConnection("127.0.0.1", sim.port) for _ in range(3)]
    for connection in connections:
        connection.request("GET", ITEMS)
    responses = [connection.getresponse() for connection in connections]  # heads only; bodies are on their way
    told = sim.requests("plain")
    assert (told["in_flight"], told["in_flight_max"]) == (3, 3)
    for connection, response in zip(connections, responses, strict=True):
        response.close()
        connection.close()
