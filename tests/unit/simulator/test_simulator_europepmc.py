"""Europe PMC: the token that never goes away, inclusive days, and errors that look like answers."""

from typing import Any

import pytest

from simulator.server import Simulator

SEARCH = "/europepmc/search"


def walk(client: Any, query: str, size: int) -> tuple[list[int], dict[str, str]]:
    cursor, lengths = "*", []
    copy: dict[str, str] = {}
    while True:
        page = client.get(SEARCH, query=query, cursorMark=cursor, pageSize=size).json
        results = page["resultList"]["result"]
        lengths.append(len(results))
        copy |= {f"{r['source']}/{r['id']}": f"{r['dateOfRevision']}T00:00:00Z" for r in results}
        if page["nextCursorMark"] == cursor:
            return lengths, copy
        cursor = page["nextCursorMark"]


def tell(sim: Simulator, *window: str) -> dict[str, str]:
    return {id_: r["updated_at"] for id_, r in sim.truth("europepmc", *window, full=True)["records"].items()}


def test_the_walk_ends_with_the_same_token_and_gives_the_truth(sim: Simulator, client: Any) -> None:
    lengths, copy = walk(client, "cancer", 50)
    assert lengths == [50, 50, 30, 0]
    assert copy == tell(sim)


def test_days_are_inclusive_and_ends_may_be_open(sim: Simulator, client: Any) -> None:
    assert walk(client, "UPDATE_DATE:[2024-01-10 TO 2024-01-19]", 9)[1] == tell(sim, "2024-01-10", "2024-01-20")
    assert walk(client, "x AND UPDATE_DATE:[2024-02-01 TO *]", 90)[1] == tell(sim, "2024-02-01")
    empty = client.get(SEARCH, query="UPDATE_DATE:[2030-01-01 TO 2030-01-02]").json
    assert (empty["hitCount"], empty["nextCursorMark"], empty["resultList"]) == (0, "*", {"result": []})


def test_an_id_alone_is_not_unique(client: Any) -> None:
    results = client.get(SEARCH, query="x", pageSize=1000).json["resultList"]["result"]
    assert len({r["id"] for r in results}) == 117
    assert len({(r["source"], r["id"]) for r in results}) == 130


@pytest.mark.parametrize("size", [0, 1001])
def test_a_wrong_page_size_is_an_error_with_status_200(client: Any, size: int) -> None:
    reply = client.get(SEARCH, query="x", pageSize=size)
    text = "Invalid page size provided. Valid size is between 1 and 1000"
    assert (reply.status, reply.json) == (200, {"errCode": 404, "errMsg": text})


@pytest.mark.parametrize("query", ["", "UPDATE_DATE:[soon TO later]", "UPDATE_DATE:[2024-01-01", "(a"])
def test_bad_syntax_is_a_version_and_nothing_else(client: Any, query: str) -> None:
    reply = client.get(SEARCH, query=query)
    assert (reply.status, reply.json) == (200, {"version": "6.9"})


def test_a_token_can_be_lost_and_belongs_to_its_query(sim: Simulator, client: Any) -> None:
    sim.add_fault("europepmc", "lost_token")
    cursor = client.get(SEARCH, query="x", pageSize=5).json["nextCursorMark"]
    assert client.get(SEARCH, query="x", pageSize=5, cursorMark=cursor).json["errMsg"] == "Invalid cursorMark"
    assert client.get(SEARCH, query="x", pageSize=5, cursorMark=cursor).json["hitCount"] == 130
    assert client.get(SEARCH, query="y", pageSize=5, cursorMark=cursor).json["errCode"] == 404


def test_a_bad_record_has_no_id(sim: Simulator, client: Any) -> None:
    sim.add_fault("europepmc", "bad_record", record=2)
    results = client.get(SEARCH, query="x", pageSize=3).json["resultList"]["result"]
    assert ["id" in r for r in results] == [True, False, True]
