"""Stripe and Shopify: keys in headers, the place of the next page in the last id or in a link."""

import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import pytest

from simulator.instants import format_instant, parse_unit
from simulator.server import Simulator

EVENTS, ORDERS = "/stripe/v1/events", "/shopify/admin/api/2024-07/orders.json"
KEY, TOKEN = {"Authorization": "Bearer sk_test_1"}, {"X-Shopify-Access-Token": "shpat_1"}


def tell(sim: Simulator, api: str, *window: str) -> dict[str, str]:
    return {id_: r["updated_at"] for id_, r in sim.truth(api, *window, full=True)["records"].items()}


def walk_events(client: Any, **params: object) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    more = True
    while more:
        after = {"starting_after": events[-1]["id"]} if events else {}
        page = client.get(EVENTS, KEY, limit=40, **params, **after).json
        events += page["data"]
        more = page["has_more"]
    return events


def walk_orders(client: Any, **params: str) -> dict[str, str]:
    reply, copy = client.get(ORDERS, TOKEN, limit="40", **params), {}
    while True:
        for order in reply.json["orders"]:
            assert order["updated_at"].endswith("-05:00")
            at = datetime.fromisoformat(order["updated_at"]).astimezone(UTC)
            copy[str(order["id"])] = at.strftime("%Y-%m-%dT%H:%M:%SZ")
        found = re.fullmatch(r'<([^>]+)>; rel="next"', reply.headers["Link"] or "")
        if found is None:
            return copy
        link = urlsplit(found[1])
        reply = client.send("GET", f"{link.path}?{link.query}", headers=TOKEN)


def test_stripe_walk_is_newest_first_and_gives_the_truth(sim: Simulator, client: Any) -> None:
    events = walk_events(client)
    assert [e["created"] for e in events] == sorted((e["created"] for e in events), reverse=True)
    assert len(events) == 130
    assert {e["id"]: format_instant(e["created"]) for e in events} == tell(sim, "stripe")


def test_stripe_bounds_say_which_end_they_include(sim: Simulator, client: Any) -> None:
    times = sorted(parse_unit(at)[0] for at in tell(sim, "stripe").values())
    low, high = times[30], times[90]
    for names, wanted in (
        (("created[gte]", "created[lt]"), [t for t in times if low <= t < high]),
        (("created[gt]", "created[lte]"), [t for t in times if low < t <= high]),
    ):
        events = walk_events(client, **dict(zip(names, (low, high), strict=True)))
        assert sorted(e["created"] for e in events) == wanted


def test_stripe_wants_a_key_and_known_parameters(sim: Simulator, client: Any) -> None:
    reply = client.get(EVENTS)
    assert (reply.status, reply.json["error"]["type"]) == (401, "invalid_request_error")
    assert client.get(EVENTS, KEY, starting_after="evt_none").status == 400
    assert client.get(EVENTS, KEY, limit=101).status == 400
    assert client.get(EVENTS, KEY, page=2).status == 400
    sim.add_fault("stripe", "429")
    assert client.get(EVENTS, KEY).json["error"]["code"] == "rate_limit"


def test_stripe_pages_can_come_twice_and_events_keep_their_time(sim: Simulator, client: Any) -> None:
    sim.add_fault("stripe", "duplicate_page")
    first = client.get(EVENTS, KEY).json["data"]
    last = first[-1]["id"]
    assert client.get(EVENTS, KEY, starting_after=last).json["data"] == first
    assert client.get(EVENTS, KEY, starting_after=last).json["data"][0] not in first
    before = tell(sim, "stripe")
    sim.mutate("stripe", ids=[last], at="2024-06-01")
    assert tell(sim, "stripe") == before
    assert sim.truth("stripe", full=True)["records"][last]["version"] == 2


def test_shopify_walk_by_link_gives_the_truth(sim: Simulator, client: Any) -> None:
    assert walk_orders(client) == tell(sim, "shopify")


def test_shopify_seconds_are_inclusive_at_both_ends(sim: Simulator, client: Any) -> None:
    times = sorted(tell(sim, "shopify").values())
    seen = walk_orders(client, updated_at_min=times[10], updated_at_max=times[100])
    assert sorted(seen.values()) == [at for at in times if times[10] <= at <= times[100]]


@pytest.mark.parametrize("extra", ["updated_at_min=2024-01-01", "status=any"])
def test_shopify_takes_nothing_beside_page_info_but_limit(sim: Simulator, client: Any, extra: str) -> None:
    link = client.get(ORDERS, TOKEN, limit=5).headers["Link"]
    target = urlsplit(link.split(">")[0][1:])
    path = f"{target.path}?{target.query}"
    assert client.send("GET", path, headers=TOKEN).status == 200
    refused = client.send("GET", f"{path}&{extra}", headers=TOKEN)
    assert (refused.status, "page_info" in refused.json["errors"]) == (400, True)
    sim.add_fault("shopify", "lost_token")
    assert client.send("GET", path, headers=TOKEN).json == {"errors": "Invalid page_info"}


def test_shopify_wants_a_token_and_keeps_it_secret(sim: Simulator, client: Any) -> None:
    assert client.get(ORDERS).status == 401
    assert client.get(ORDERS, TOKEN).headers["X-Shopify-Shop-Api-Call-Limit"] == "1/40"
    assert "shpat_1" not in str(sim.requests("shopify")["last"])


def test_shopify_throttles_with_a_fraction(sim: Simulator, client: Any) -> None:
    sim.add_fault("shopify", "throttle")
    reply = client.get(ORDERS, TOKEN)
    assert (reply.status, reply.headers.get_all("Retry-After")) == (429, ["2.0"])
    sim.limit("shopify", (1, 60.0))
    client.get(ORDERS, TOKEN)
    reply = client.get(ORDERS, TOKEN)
    assert (reply.status, reply.headers.get_all("Retry-After")) == (429, ["2.0"])
    assert reply.headers.get_all("X-Shopify-Shop-Api-Call-Limit") == ["1/1"]
