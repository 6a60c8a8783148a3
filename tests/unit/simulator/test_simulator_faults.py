"""Every kind of fault does what it says, to the requests it was meant for and to no other."""

import time
from http.client import HTTPConnection, IncompleteRead, RemoteDisconnected
from threading import Thread
from typing import Any

import pytest

from simulator.faults import BadRule, FaultBook, Rule
from simulator.server import Simulator

ITEMS = "/plain/items"


def statuses(client: Any, count: int, path: str = ITEMS) -> list[int]:
    return [client.get(path).status for _ in range(count)]


@pytest.mark.parametrize("status", [401, 403, 429, 500, 502, 503])
def test_a_status_is_answered_once_by_default(sim: Simulator, client: Any, status: int) -> None:
    sim.add_fault("plain", status)
    assert statuses(client, 3) == [status, 200, 200]


def test_429_carries_retry_after_only_if_told(sim: Simulator, client: Any) -> None:
    sim.add_fault("crossref", "429", retry_after=7)
    sim.add_fault("crossref", "429")
    first, second = client.get("/crossref/works"), client.get("/crossref/works")
    assert (first.status, first.headers["Retry-After"], first.body) == (429, "7", b"")
    assert (second.status, second.headers["Retry-After"]) == (429, None)


def test_each_api_throttles_in_its_own_words(sim: Simulator, client: Any) -> None:
    sim.add_fault("*", "429", times=4)
    assert client.get("/pubmed/esearch").json["error"] == "API rate limit exceeded"
    assert "secondary rate limit" in client.get("/github/repos/acme/widgets/issues").json["message"]
    assert client.get("/plain/items").json["error"]["status"] == 429
    assert client.get("/crossref/works").body == b""


def test_status_may_say_anything(sim: Simulator, client: Any) -> None:
    sim.add_fault("plain", "status", status=200, body={"code": 40203}, headers={"X-Left": "0"})
    sim.add_fault("plain", "status", status=418, body="short and stout")
    reply = client.get(ITEMS)
    assert (reply.status, reply.json, reply.headers["X-Left"]) == (200, {"code": 40203}, "0")
    assert (client.get(ITEMS).body) == b"short and stout"


def test_slow_answers_late_and_whole(sim: Simulator, client: Any) -> None:
    sim.add_fault("plain", "slow", delay_s=0.08)
    started = time.monotonic()
    assert len(client.get(ITEMS, size=5).json["data"]) == 5
    assert time.monotonic() - started >= 0.08


def test_drip_sends_a_byte_at_a_time(sim: Simulator) -> None:
    sim.add_fault("plain", "drip", delay_s=0.0001)
    connection = HTTPConnection("127.0.0.1", sim.port)
    connection.request("GET", f"{ITEMS}?size=1&updated_from=2030-01-01")
    response = connection.getresponse()
    assert response.read() == b'{"data":[],"total":0,"has_more":false}'
    connection.close()


def test_close_interrupts_slow_and_dripping_answers() -> None:
    sim = Simulator(sizes={"plain": 3})
    sim.add_fault("plain", "drip", delay_s=60)
    connection = HTTPConnection("127.0.0.1", sim.port)
    connection.request("GET", ITEMS)
    response = connection.getresponse()
    started = time.monotonic()
    closer = Thread(target=sim.close)
    closer.start()
    with pytest.raises(IncompleteRead):
        response.read()
    closer.join()
    assert time.monotonic() - started < 5
    connection.close()


def test_truncate_sends_less_than_it_promised(sim: Simulator, client: Any) -> None:
    whole = client.get(ITEMS, size=10).body
    sim.add_fault("plain", "truncate")
    sim.add_fault("plain", "truncate", cut=5)
    with pytest.raises(IncompleteRead) as half:
        client.get(ITEMS, size=10)
    assert half.value.partial == whole[: len(whole) // 2]
    with pytest.raises(IncompleteRead) as five:
        client.get(ITEMS, size=10)
    assert five.value.partial == whole[:5]
    assert client.get(ITEMS, size=10).body == whole


def test_disconnect_sends_nothing(sim: Simulator, client: Any) -> None:
    sim.add_fault("plain", "disconnect")
    with pytest.raises(RemoteDisconnected):
        client.get(ITEMS)
    assert client.get(ITEMS).status == 200


@pytest.mark.parametrize(
    ("api", "path", "items", "id_name"),
    [
        ("crossref", "/crossref/works?rows=6", lambda body: body["message"]["items"], "DOI"),
        ("pubmed", "/pubmed/esearch?retmax=6", lambda body: body["esearchresult"]["items"], "uid"),
        ("github", "/github/repos/acme/widgets/issues?per_page=6", lambda body: body, "id"),
        ("plain", "/plain/items?size=6", lambda body: body["data"], "id"),
    ],
)
def test_bad_record_loses_its_id_or_its_date(
    sim: Simulator, client: Any, api: str, path: str, items: Any, id_name: str
) -> None:
    sim.add_fault(api, "bad_record", record=3)
    sim.add_fault(api, "bad_record", record_every=2, spoil="updated_at")
    first = items(client.send("GET", path).json)
    assert [place for place, item in enumerate(first, 1) if id_name not in item] == [3]
    second = client.send("GET", path)
    assert second.body.count(b"the day before yesterday") == 3
    assert all(id_name in item for item in items(second.json))
    assert "yesterday" not in client.send("GET", path).body.decode()


def test_duplicate_page_serves_the_page_before_again(sim: Simulator, client: Any) -> None:
    for api in ("crossref", "pubmed", "github", "plain"):
        sim.add_fault(api, "duplicate_page")

    first = client.get("/crossref/works", rows=10, cursor="*").json["message"]
    again = client.get("/crossref/works", rows=10, cursor=first["next-cursor"]).json["message"]
    assert again == first
    second = client.get("/crossref/works", rows=10, cursor=again["next-cursor"]).json["message"]
    assert second["items"][0] not in first["items"]

    assert_second_is_first(client, "/pubmed/esearch", {"retmax": 10}, {"retmax": 10, "retstart": 10})
    assert_second_is_first(client, "/plain/items", {"size": 10}, {"size": 10, "page": 2})
    issues = "/github/repos/acme/widgets/issues"
    assert_second_is_first(client, issues, {"per_page": 10}, {"per_page": 10, "page": 2})


def assert_second_is_first(client: Any, path: str, one: dict[str, int], two: dict[str, int]) -> None:
    first = client.get(path, **one).body
    assert client.get(path, **two).body == first
    assert client.get(path, **two).body != first


def test_empty_page_has_no_records_but_is_well_formed(sim: Simulator, client: Any) -> None:
    sim.add_fault("crossref", "empty_page", after=1)
    first = client.get("/crossref/works", rows=10, cursor="*").json["message"]
    empty = client.get("/crossref/works", rows=10, cursor=first["next-cursor"]).json["message"]
    assert (empty["items"], empty["total-results"]) == ([], 260)
    assert empty["next-cursor"] == first["next-cursor"]


def test_invalid_json_html_and_nothing_come_with_status_200(sim: Simulator, client: Any) -> None:
    for kind in ("invalid_json", "html_200", "empty"):
        sim.add_fault("plain", kind)
    broken, html, empty = (client.get(ITEMS) for _ in range(3))
    assert [broken.status, html.status, empty.status] == [200, 200, 200]
    with pytest.raises(ValueError, match=r"delimiter|Expecting|Unterminated"):
        assert broken.json
    assert html.headers["Content-Type"].startswith("text/html")
    assert b"<html>" in html.body
    assert empty.body == b""
    assert client.get(ITEMS).json["total"] == 130


def test_rules_are_consumed_in_order(sim: Simulator, client: Any) -> None:
    sim.add_fault("plain", "429", times=2)
    sim.add_fault("plain", "503", times=1, after=1)
    assert statuses(client, 5) == [429, 429, 200, 503, 200]


def test_every_and_after_and_times_count_matching_requests(sim: Simulator, client: Any) -> None:
    sim.add_fault("plain", "500", every=2, after=1, times=2, match="page=1")
    seen = [client.get(ITEMS, page=page).status for page in (1, 2, 1, 2, 1, 1, 1, 1, 1)]
    assert seen == [200, 200, 200, 200, 500, 200, 500, 200, 200]


def test_probability_depends_on_the_seed_alone() -> None:
    def draw(seed: int) -> list[bool]:
        book = FaultBook(seed)
        book.add(Rule("plain", "500", probability=0.3))
        return [book.take("plain", "/x", first_page=True) is not None for _ in range(200)]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)
    assert 30 < sum(draw(1)) < 90


def test_faults_are_posted_listed_and_deleted_over_http(client: Any) -> None:
    rules = [{"api": "plain", "kind": 502}, {"api": "*", "kind": "slow", "delay_s": 0, "times": 2}]
    assert len(client.post("/_sim/faults", rules).json["rules"]) == 2
    assert statuses(client, 2) == [502, 200]
    listed = client.get("/_sim/faults").json["rules"]
    assert [(rule["kind"], rule["seen"], rule["fired"]) for rule in listed] == [("502", 2, 1), ("slow", 1, 1)]
    assert client.send("DELETE", "/_sim/faults").json == {"rules": []}


@pytest.mark.parametrize(
    "rule",
    [
        {"api": "plain"},
        {"api": "plain", "kind": "gremlin"},
        {"api": "plain", "kind": "200"},
        {"api": "plain", "kind": "status"},
        {"api": "plain", "kind": "500", "oops": 1},
        {"api": "plain", "kind": "500", "times": "two"},
        {"api": "plain", "kind": "500", "every": 0},
        {"api": "plain", "kind": "500", "probability": 2},
        {"api": "plain", "kind": "bad_record", "spoil": "everything"},
        {"api": "nobody", "kind": "500"},
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused(sim: Simulator, client: Any, rule: dict[str, Any]) -> None:
    reply = client.post("/_sim/faults", [{"api": "plain", "kind": "500"}, rule])
    assert reply.status == 400
    assert reply.json["error"]
    assert sim.list_faults() == []


def test_a_bad_rule_says_what_would_be_right() -> None:
    with pytest.raises(BadRule, match="unknown kind 'gremlin'; known: status, slow"):
        Rule("plain", "gremlin")
