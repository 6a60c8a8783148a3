"""Requests: exactly what is sent, provably, to one origin."""

from typing import Any

import pytest

from executor.request import Request, RequestBuilder, drop_parameter
from ingest.errors import RequestInvalid
from ingest.spec.snapshot import Expressions, Http
from tests.factories import make_snapshot

WINDOW = {"from": "2024-01-01", "to": "2024-01-02"}
PAGE: dict[str, Any] = {"size": 100, "offset": 0, "number": 1, "token": None, "url": None}


def build(page: dict[str, Any] | None = None, vars: dict[str, Any] | None = None, **http: Any) -> Request:
    values = {"method": "GET", "base_url": "https://api.example.org/v1", "path": "/works"}
    snapshot = make_snapshot(http=Http(**(values | http)), expr=Expressions(vars=vars or {}))
    return RequestBuilder(snapshot).build(WINDOW, PAGE | (page or {}))


def test_a_request_is_rendered_in_the_order_it_was_written() -> None:
    query = {"until": "{{ window.to }}", "from": "{{ window.from }}", "rows": "{{ page.size }}", "on": "{{ vars.on }}"}
    request = build(query=query, headers={"X-Q": " {{ vars.q }} "}, vars={"q": "x", "on": True})
    assert request.url == "https://api.example.org/v1/works"
    assert request.query == (("until", "2024-01-02"), ("from", "2024-01-01"), ("rows", "100"), ("on", "true"))
    assert request.headers == (("X-Q", "x"),)


def test_a_parameter_that_is_null_is_left_out() -> None:
    request = build(query={"cursor": "{{ page.token }}", "a": "1"}, headers={"X-Cursor": "{{ page.token }}"})
    assert request.query == (("a", "1"),)
    assert request.headers == ()


@pytest.mark.parametrize(
    ("base", "path", "url"),
    [
        ("https://h.org", "/a", "https://h.org/a"),
        ("https://h.org/", "a/b", "https://h.org/a/b"),
        ("https://h.org/v1/", "/", "https://h.org/v1/"),
        ("https://h.org", "//evil.org/x", "https://h.org/evil.org/x"),
        ("https://h.org", "@evil.org", "https://h.org/@evil.org"),
    ],
)
def test_a_path_stays_below_the_base(base: str, path: str, url: str) -> None:
    assert build(base_url=base, path=path).url == url


@pytest.mark.parametrize("value", ["a?b=c", "a#b", "..", "x/../../admin", "a\\b", "a\nb", "\x00", "\ud800", "x" * 9000])
def test_a_path_that_would_ask_for_something_else_is_not_sent(value: str) -> None:
    with pytest.raises(RequestInvalid):
        build(path="/works/{{ vars.id }}", vars={"id": value})


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "\x7f", "\ud800", "x" * 9000, [1], {"a": 1}])
@pytest.mark.parametrize("place", ["query", "headers"])
def test_a_value_that_must_not_be_sent_is_not(place: str, value: Any) -> None:
    with pytest.raises(RequestInvalid):
        build(**{place: {"X-A": "{{ vars.v }}"}}, vars={"v": value})


def test_a_header_is_ascii() -> None:
    with pytest.raises(RequestInvalid, match="not ASCII"):
        build(headers={"X-Name": "{{ vars.name }}"}, vars={"name": "Zoë"})
    assert build(query={"name": "{{ vars.name }}"}, vars={"name": "Zoë"}).query == (("name", "Zoë"),)


def test_a_json_body_keeps_types_and_leaves_out_nulls() -> None:
    body = {"b": "{{ page.size }}", "a": ["{{ window.from }}", 1], "c": "{{ page.token }}", "d": {"e": "x{{ vars.q }}"}}
    request = build(method="POST", body=body, vars={"q": "é"})
    assert request.body == '{"a":["2024-01-01",1],"b":100,"d":{"e":"xé"}}'.encode()
    assert request.headers == (("Content-Type", "application/json"),)


def test_a_form_body_is_written_as_a_form() -> None:
    request = build(method="POST", body_kind="form", body={"q": "a b&c", "n": 1, "on": True, "t": "{{ page.token }}"})
    assert request.body == b"q=a+b%26c&n=1&on=true"
    assert request.headers == (("Content-Type", "application/x-www-form-urlencoded"),)


@pytest.mark.parametrize(
    ("kind", "body"), [("form", ["a"]), ("form", {"a": {"b": 1}}), ("json", {"a": "{{ vars.bad }}"})]
)
def test_a_body_that_cannot_be_written_is_not_sent(kind: str, body: Any) -> None:
    with pytest.raises(RequestInvalid):
        build(method="POST", body_kind=kind, body=body, vars={"bad": "\ud800"})


def test_a_declared_content_type_is_the_only_one() -> None:
    request = build(method="POST", body={"a": 1}, headers={"content-type": "application/vnd.api+json"})
    assert request.headers == (("content-type", "application/vnd.api+json"),)


def test_equal_requests_have_equal_hashes_and_others_have_not() -> None:
    query = {"rows": "{{ page.size }}", "cursor": "{{ page.token }}"}
    hashes = [build(page, query=query).digest()["hash"] for page in ({}, {}, {"token": "x"}, {"size": 5})]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3
    assert build(method="POST", body={"a": 1}).digest()["hash"] != build(method="POST", body={"a": 2}).digest()["hash"]


def test_headers_added_later_are_not_in_the_digest_taken_before() -> None:
    request = build()
    digest = request.digest()
    assert request.with_headers(("X-Ingest-Correlation-Id", "ing-1-1")).digest() != digest
    assert request.digest() == digest


NEXT = "https://api.example.org/v1/works?cursor=%E9%2F&flag&x=a,b"


def test_a_next_url_of_the_same_origin_is_asked_for_as_it_is() -> None:
    request = build({"url": NEXT + "#part"}, query={"rows": "{{ page.size }}"}, headers={"X-Size": "{{ page.size }}"})
    assert request == Request("GET", NEXT, (), (("X-Size", "100"),))


@pytest.mark.parametrize(
    "url",
    [
        "https://evil.example.org/v1/works",
        "https://api.example.org.evil.org/",
        "https://api.example.org:444/v1",
        "http://api.example.org/v1",
        "//evil.example.org/",
        "https://user:pw@api.example.org/v1",
        "https://@api.example.org/v1",
        "https://api.example.org@evil.org/",
        "https://evil.org\\@api.example.org/",
        "https://api.example.org\\.evil.org/",
        "https://api.example.org./v1",
        "https://169.254.169.254/latest",
        "http://[::1]/",
        "http://[::1",
        "https://api.example.org:99999/",
        "https://api.example.org:x/",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "ftp://api.example.org/",
        "works?page=2",
        "",
        "https://api.example.org/v1/\x00",
        "https://api.example.org/v1/\tx",
        "https://api.example.org/v1?x=" + "y" * 9000,
    ],
)
def test_a_next_url_that_leads_away_is_not_followed(url: str) -> None:
    with pytest.raises(RequestInvalid):
        build({"url": url or " "})


@pytest.mark.parametrize("url", ["HTTPS://API.EXAMPLE.ORG/v1/works", "https://api.example.org:443/v1/works"])
def test_one_origin_has_several_spellings(url: str) -> None:
    assert build({"url": url}).url == url


@pytest.mark.parametrize(
    ("url", "without"),
    [
        ("https://h/x?key=1", "https://h/x"),
        ("https://h/x?a=%2F&key=1&b", "https://h/x?a=%2F&b"),
        ("https://h/x?k%65y=1&key=2&keys=3", "https://h/x?keys=3"),
        ("https://h/x", "https://h/x"),
        ("https://h/x?a=1#key=2", "https://h/x?a=1#key=2"),
    ],
)
def test_one_parameter_is_dropped_and_the_rest_stays_as_written(url: str, without: str) -> None:
    assert drop_parameter(url, "key") == without


def test_a_partition_fills_any_slot_of_the_request() -> None:
    http = Http(
        method="GET",
        base_url="https://api.example.org/v1",
        path="/klines/{{ partition.symbol }}",
        query={"interval": "{{ partition.interval }}"},
    )
    builder = RequestBuilder(make_snapshot(http=http))
    request = builder.build(WINDOW, PAGE, {"symbol": "BTCUSDT", "interval": "1h"})
    assert request.url == "https://api.example.org/v1/klines/BTCUSDT"
    assert request.query == (("interval", "1h"),)
    with pytest.raises(RequestInvalid):
        builder.build(WINDOW, PAGE)
