"""OAI-PMH: tokens that stand alone, tombstones, and errors with HTTP 200."""

from typing import Any
from xml.etree import ElementTree

import pytest

from simulator.server import Simulator

OAI = "{http://www.openarchives.org/OAI/2.0/}"
LIST = {"verb": "ListRecords", "metadataPrefix": "oai_dc"}


def ask(client: Any, **params: str) -> ElementTree.Element:
    reply = client.get("/oai", **params)
    assert reply.status == 200
    return ElementTree.fromstring(reply.body)  # noqa: S314  # our own simulator


def find_error(client: Any, **params: str) -> str | None:
    error = ask(client, **params).find(f"{OAI}error")
    return None if error is None else error.get("code")


def walk(client: Any, **params: str) -> tuple[list[int], dict[str, dict[str, Any]]]:
    lengths, copy = [], {}
    asked = LIST | params
    while True:
        root = ask(client, **asked)
        records = root.findall(f"{OAI}ListRecords/{OAI}record")
        lengths.append(len(records))
        for record in records:
            header = record.find(f"{OAI}header")
            assert header is not None
            deleted = header.get("status") == "deleted"
            assert (record.find(f"{OAI}metadata") is None) == deleted
            at = header.findtext(f"{OAI}datestamp")
            copy[header.findtext(f"{OAI}identifier", "")] = {"updated_at": at, "deleted": deleted}
        token = root.findtext(f"{OAI}ListRecords/{OAI}resumptionToken")
        if not token:
            return lengths, copy
        asked = {"verb": "ListRecords", "resumptionToken": token}


def tell(sim: Simulator, *window: str) -> dict[str, dict[str, Any]]:
    records = sim.truth("oai", *window, full=True)["records"]
    return {id_: {name: r[name] for name in ("updated_at", "deleted")} for id_, r in records.items()}


def test_the_walk_gives_the_truth_with_its_tombstones(sim: Simulator, client: Any) -> None:
    lengths, copy = walk(client)
    assert lengths == [50, 50, 30]
    assert copy == tell(sim)
    assert 0 < sum(r["deleted"] for r in copy.values()) < 40


def test_both_ends_are_inclusive_in_days_and_in_seconds(sim: Simulator, client: Any) -> None:
    days = {"from": "2024-01-10", "until": "2024-01-19"}
    assert walk(client, **days)[1] == tell(sim, "2024-01-10", "2024-01-20")
    times = sorted(r["updated_at"] for r in tell(sim).values())
    seen = walk(client, **{"from": times[20], "until": times[90]})[1]
    assert sorted(r["updated_at"] for r in seen.values()) == [at for at in times if times[20] <= at <= times[90]]


def test_the_last_token_is_an_empty_element_and_one_page_has_none(client: Any) -> None:
    root = ask(client, **LIST)
    for _ in range(2):
        token = root.findtext(f"{OAI}ListRecords/{OAI}resumptionToken", "")
        root = ask(client, verb="ListRecords", resumptionToken=token)
    last = root.find(f"{OAI}ListRecords/{OAI}resumptionToken")
    assert last is not None
    assert (last.text, last.get("cursor"), last.get("completeListSize")) == (None, "100", "130")
    one = ask(client, **LIST, **{"from": "2024-01-10", "until": "2024-01-12"})
    assert one.find(f"{OAI}ListRecords/{OAI}resumptionToken") is None


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"verb": "Dance"}, "badVerb"),
        ({"verb": "ListRecords"}, "badArgument"),
        (LIST | {"colour": "red"}, "badArgument"),
        (LIST | {"metadataPrefix": "marc"}, "cannotDisseminateFormat"),
        (LIST | {"from": "2024-01-10", "until": "2024-01-10T00:00:00Z"}, "badArgument"),
        (LIST | {"from": "2024-01-10", "until": "2024-01-09"}, "badArgument"),
        (LIST | {"from": "2030-01-10"}, "noRecordsMatch"),
        ({"verb": "ListRecords", "resumptionToken": "x"}, "badResumptionToken"),
        (LIST | {"resumptionToken": "x"}, "badArgument"),
    ],
)
def test_errors_have_status_200(client: Any, params: dict[str, str], code: str) -> None:
    assert find_error(client, **params) == code


def test_a_token_expires_on_request(sim: Simulator, client: Any) -> None:
    sim.add_fault("oai", "lost_token")
    token = ask(client, **LIST).findtext(f"{OAI}ListRecords/{OAI}resumptionToken", "")
    assert find_error(client, verb="ListRecords", resumptionToken=token) == "badResumptionToken"
    assert find_error(client, verb="ListRecords", resumptionToken=token) is None


def test_a_busy_repository_says_503_with_retry_after(sim: Simulator, client: Any) -> None:
    sim.add_fault("oai", "503", retry_after=120)
    sim.add_fault("oai", "throttle")
    reply = client.get("/oai", **LIST)
    assert (reply.status, reply.headers["Retry-After"]) == (503, "120")
    assert client.get("/oai", **LIST).status == 503


def test_bad_records_lose_their_identifier_or_their_date(sim: Simulator, client: Any) -> None:
    sim.add_fault("oai", "bad_record", record=1)
    sim.add_fault("oai", "bad_record", record=1, spoil="updated_at")
    path = f"{OAI}ListRecords/{OAI}record/{OAI}header"
    first, second = ask(client, **LIST).find(path), ask(client, **LIST).find(path)
    assert first is not None
    assert second is not None
    assert first.find(f"{OAI}identifier") is None
    assert second.findtext(f"{OAI}datestamp") == "the day before yesterday"
