"""What the seed decides, what mutation changes, and that the truth follows."""

import json
from hashlib import sha256
from typing import Any

import pytest

from simulator.server import Simulator
from simulator.world import APIS

SIZES = dict.fromkeys(APIS, 60)


def test_the_same_seed_gives_the_same_truth_to_the_byte() -> None:
    with Simulator(seed=3, sizes=SIZES) as one, Simulator(seed=3, sizes=SIZES) as two:
        for api in APIS:
            assert one.truth(api, full=True, payloads=True) == two.truth(api, full=True, payloads=True)


def test_another_seed_gives_another_truth() -> None:
    with Simulator(seed=3, sizes=SIZES) as one, Simulator(seed=4, sizes=SIZES) as two:
        for api in APIS:
            # by text, as the times and names of a market's bars are not drawn
            assert one.truth(api, payloads=True)["payloads_sha256"] != two.truth(api, payloads=True)["payloads_sha256"]


def test_a_larger_world_begins_with_the_smaller_one() -> None:
    with Simulator(sizes={"plain": 20}) as small, Simulator(sizes={"plain": 40}) as large:
        records = large.truth("plain", full=True)["records"]
        assert small.truth("plain", full=True)["records"].items() <= records.items()


def test_ids_sha256_is_over_sorted_lines(sim: Simulator, client: Any) -> None:
    truth = client.get("/_sim/truth/crossref", full=1, payloads=1).json
    records = truth["records"]
    lines = "".join(f"{id_} {records[id_]['updated_at']}\n" for id_ in sorted(records))
    assert truth["ids_sha256"] == sha256(lines.encode()).hexdigest()
    assert truth["count"] == len(records) == 260
    bodies = {id_: sim.find_body("crossref", id_) or b"" for id_ in records}
    assert {id_: records[id_]["sha256"] for id_ in records} == {i: sha256(b).hexdigest() for i, b in bodies.items()}
    lines = "".join(f"{id_} {records[id_]['sha256']}\n" for id_ in sorted(records))
    assert truth["payloads_sha256"] == sha256(lines.encode()).hexdigest()


def test_truth_has_one_case_of_each_doi_while_pages_mix_them(sim: Simulator, client: Any) -> None:
    items = client.get("/crossref/works", rows=1000).json["message"]["items"]
    dois = {item["DOI"] for item in items}
    assert any(doi != doi.lower() for doi in dois)
    assert {doi.lower() for doi in dois} == sim.truth("crossref", full=True)["records"].keys()


def test_the_span_holds_every_record_and_both_edges_of_days(sim: Simulator) -> None:
    times = [r["updated_at"] for r in sim.truth("crossref", full=True)["records"].values()]
    assert min(times) >= "2024-01-01T00:00:00Z"
    assert max(times) < "2024-03-01T00:00:00Z"
    assert any(at.endswith("T00:00:00Z") for at in times)
    assert any(at.endswith("T23:59:59Z") for at in times)


def test_mutation_changes_version_title_and_time(sim: Simulator) -> None:
    before = sim.truth("crossref", full=True)
    changed = sim.mutate("crossref", 3, at="2024-06-01T00:00:00Z")["changed"]
    after = sim.truth("crossref", full=True)
    assert len(changed) == 3
    assert after["ids_sha256"] != before["ids_sha256"]
    differing = {id_ for id_ in before["records"] if before["records"][id_] != after["records"][id_]}
    assert differing == set(changed)
    assert after["records"][changed[0]] == {"updated_at": "2024-06-01T00:00:00Z", "version": 2}
    body = sim.find_body("crossref", changed[0])
    assert body is not None
    assert json.loads(body)["title"][0].endswith("(revision 2)")


def test_mutation_adds_records_that_are_served(sim: Simulator, client: Any) -> None:
    reply = client.post("/_sim/mutate", {"api": "plain", "add": 2, "at": "2024-02-29T12:00:00Z"}).json
    assert len(reply["added"]) == 2
    assert reply["changed"] == []
    assert reply["truth"]["count"] == 132
    served = client.get("/plain/items", offset=130, limit=10).json["data"]
    assert [item["id"] for item in served] == reply["added"]


def test_mutation_never_moves_a_time_back(sim: Simulator) -> None:
    before = sim.truth("plain", full=True)["records"]
    changed = sim.mutate("plain", 5, at="2020-01-01")["changed"]
    after = sim.truth("plain", full=True)["records"]
    assert [after[id_]["updated_at"] for id_ in changed] == [before[id_]["updated_at"] for id_ in changed]
    assert {after[id_]["version"] for id_ in changed} == {2}


def test_mutation_can_be_aimed_at_a_window_or_at_ids(sim: Simulator) -> None:
    inside = sim.truth("github", "2024-01-01", "2024-01-15", full=True)["records"]
    changed = sim.mutate("github", 1000, at="2024-07-01", start="2024-01-01", end="2024-01-15")["changed"]
    assert sorted(changed) == sorted(inside)
    assert sim.truth("github", "2024-01-01", "2024-01-15")["count"] == 0
    assert sim.mutate("github", ids=changed[:2])["changed"] == changed[:2]
    with pytest.raises(KeyError):
        sim.mutate("github", ids=["nobody"])


def test_the_choice_of_mutated_records_depends_on_the_seed_alone() -> None:
    with Simulator(sizes=SIZES) as one, Simulator(sizes=SIZES) as two:
        assert [one.mutate("plain", 4) for _ in range(3)] == [two.mutate("plain", 4) for _ in range(3)]


def test_pubmed_keeps_mutated_times_to_the_minute(sim: Simulator) -> None:
    (id_,) = sim.mutate("pubmed", at="2024-06-01T10:11:59Z")["changed"]
    assert sim.truth("pubmed", full=True)["records"][id_]["updated_at"] == "2024-06-01T10:11:00Z"


def test_records_change_by_themselves_every_k_requests(client: Any) -> None:
    client.post("/_sim/mutate", {"api": "plain", "every": 3, "count": 2, "at": "2024-06-01"})
    for _ in range(7):
        client.get("/plain/items", size=1)
    assert client.get("/_sim/truth/plain", **{"from": "2024-06-01"}).json["count"] == 4
    client.post("/_sim/mutate", {"api": "plain", "every": 0})
    for _ in range(7):
        client.get("/plain/items", size=1)
    assert client.get("/_sim/truth/plain", **{"from": "2024-06-01"}).json["count"] == 4


def test_a_cursor_walk_over_a_changing_set_ends_with_the_truth(sim: Simulator, client: Any) -> None:
    copy: dict[str, str] = {}
    cursor, pages = "*", 0
    while True:
        message = client.get("/crossref/works", rows=40, cursor=cursor).json["message"]
        if not message["items"]:
            break
        for item in message["items"]:
            copy[item["DOI"].lower()] = item["indexed"]["date-time"]
        cursor, pages = message["next-cursor"], pages + 1
        if pages <= 10:
            sim.mutate("crossref", 5, add=1, at=f"2024-03-05T00:00:{pages:02d}Z")
    truth = sim.truth("crossref", full=True)["records"]
    assert copy == {id_: record["updated_at"] for id_, record in truth.items()}
    assert len(copy) == 270


def test_reset_brings_back_the_first_state(sim: Simulator, client: Any) -> None:
    before = sim.truth("plain")
    sim.mutate("plain", 10, add=3)
    sim.add_fault("plain", "500")
    sim.limit("plain", (0, 60.0))
    client.get("/plain/items")
    sim.reset(["data", "requests"])
    assert sim.truth("plain") == before
    assert sim.requests("plain")["count"] == 0
    assert len(sim.list_faults()) == 1
    assert client.post("/_sim/reset", {}).status == 200
    assert sim.list_faults() == []
    assert client.get("/plain/items").status == 200


def test_a_warmed_simulator_tells_the_same_truth() -> None:
    with Simulator(sizes=SIZES, warm=True) as warm, Simulator(sizes=SIZES) as cold:
        assert warm.truth("pubmed", payloads=True) == cold.truth("pubmed", payloads=True)


@pytest.mark.parametrize(
    "wrong",
    [{"sizes": {"nobody": 1}}, {"span": ("2024-03-01", "2024-01-01")}, {"span": ("soon", "")}, {"github_repos": ()}],
)
def test_an_impossible_world_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"unknown API|span must end|not a date|at least one"):
        Simulator(**wrong)
