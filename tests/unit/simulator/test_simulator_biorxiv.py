"""bioRxiv: a position in the path, totals as strings, and versions that are rows of their own."""

from typing import Any

import pytest

from simulator.server import Simulator


def walk(client: Any, server: str, first: str, last: str) -> dict[str, str]:
    cursor = 0
    copy: dict[str, str] = {}
    while True:
        page = client.get(f"/biorxiv/details/{server}/{first}/{last}/{cursor}").json
        copy |= {f"{row['doi']}/{row['version']}": f"{row['date']}T00:00:00Z" for row in page["collection"]}
        (message,) = page["messages"]
        cursor += message["count"]
        if cursor >= int(message["total"]):
            assert len(copy) == cursor
            return copy


def tell(sim: Simulator, *window: str) -> dict[str, str]:
    return {id_: r["updated_at"] for id_, r in sim.truth("biorxiv", *window, full=True)["records"].items()}


def test_both_servers_together_give_the_truth(sim: Simulator, client: Any) -> None:
    copies = [walk(client, server, "2024-01-01", "2024-02-29") for server in ("biorxiv", "medrxiv")]
    assert not copies[0].keys() & copies[1].keys()
    assert copies[0] | copies[1] == tell(sim)
    both = [walk(client, server, "2024-01-10", "2024-01-31") for server in ("biorxiv", "medrxiv")]
    assert both[0] | both[1] == tell(sim, "2024-01-10", "2024-02-01")


def test_a_page_has_30_rows_and_totals_are_strings(client: Any) -> None:
    page = client.get("/biorxiv/details/biorxiv/2024-01-01/2024-02-29/0/json").json
    (message,) = page["messages"]
    assert (message["count"], message["cursor"], len(page["collection"])) == (30, 0, 30)
    assert isinstance(message["total"], str)
    assert 0 < int(message["count_new_papers"]) < int(message["total"])


def test_a_second_version_is_posted_no_earlier_than_the_first(sim: Simulator) -> None:
    records = tell(sim)
    seconds = [id_ for id_ in records if id_.endswith("/2")]
    assert len(seconds) == 43
    assert all(records[id_] >= records[id_[:-1] + "1"] for id_ in seconds)


@pytest.mark.parametrize("rest", ["2030-01-01/2030-01-02/0", "2024-01-01/2024-02-29/1e+05", "soon/later/0"])
def test_nothing_found_has_status_200(client: Any, rest: str) -> None:
    reply = client.get(f"/biorxiv/details/biorxiv/{rest}")
    assert (reply.status, reply.json) == (200, {"messages": [{"status": "no posts found"}], "collection": []})


def test_a_change_keeps_the_day_and_raises_the_version(sim: Simulator) -> None:
    before = tell(sim)
    (id_,) = sim.mutate("biorxiv", at="2024-06-01")["changed"]
    assert tell(sim) == before
    assert sim.truth("biorxiv", full=True)["records"][id_]["version"] == 2
