"""Decoding: only what the spec describes is an answer."""

from typing import Any

import pytest

from executor.decode import Decoded, JsonDecoder
from executor.secrets import REDACTOR
from executor.transport import Answer
from ingest.errors import Unreadable
from ingest.spec.snapshot import Auth, Pagination, Response
from tests.factories import make_snapshot

TOKEN = Pagination(kind="TOKEN", next_path="$.next", has_more_path="$.more", stop=("no_next",))
URL = Pagination(kind="URL", next_path="$.next", stop=("no_next",))
LINK = Pagination(kind="URL", next_in="link_header", stop=("no_next",))


def decode(
    body: bytes, *, status: int = 200, links: dict[str, str] | None = None, items: str = "$.data", **sections: Any
) -> Decoded:
    values: dict[str, Any] = {"pagination": TOKEN, "response": Response(items=items, total="$.total")}
    answer = Answer(status, {}, body, links or {}, len(body), 0.0, 0.0, "https://api.example.org/v1/works")
    return JsonDecoder(make_snapshot(**(values | sections))).decode(answer)


def test_an_answer_is_split_into_items_and_hints() -> None:
    decoded = decode(b'{"data":[{"a": 1},2],"next":"t2","total":7,"more":true}')
    assert [bytes(item) for item in decoded.items] == [b'{"a": 1}', b"2"]
    seen = decoded.seen
    assert (seen.items, seen.next_value, seen.total, seen.has_more) == (2, "t2", 7, True)


def test_an_empty_page_is_an_empty_list() -> None:
    assert decode(b'{"data":[]}').seen.items == 0
    assert decode(b"", status=204).seen.items == 0


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"  \n",
        b"<html>We will be back</html>",
        b'{"error":"no"}',
        b'{"data":null}',
        b'{"data":{"a":1}}',
        b'{"data":"x"}',
        b"[1,2]",
        b"null",
        b'{"data":[1,2],"next":',
        b'{"data":[1,2]} trailing',
        b'{"data":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
        b"\x1f\x8b\x00\xff\x00",
    ],
    ids=lambda body: repr(body[:20]),
)
def test_what_is_not_as_the_spec_says_is_not_an_empty_page(body: bytes) -> None:
    with pytest.raises(Unreadable) as caught:
        decode(body)
    assert "\x00" not in (caught.value.excerpt or "")


def test_a_list_at_the_root_is_found() -> None:
    decoded = decode(b"[1, {}]", pagination=LINK, response=Response(items="$"))
    assert [bytes(item) for item in decoded.items] == [b"1", b"{}"]


def test_a_byte_order_mark_is_not_part_of_the_answer() -> None:
    assert decode(b'\xef\xbb\xbf{"data":[1]}').seen.items == 1


@pytest.mark.parametrize("broken", [rb'{"t":"\ud800"}', rb'{"t":"\x"}', b'{"t":"a\nb"}'], ids=repr)
@pytest.mark.parametrize("items", ["$.data", "$.page[0].data"])
def test_one_record_that_is_no_json_does_not_take_the_page(broken: bytes, items: str) -> None:
    page = b'{"data":[{"t":"a"},' + broken + b',{"t":"\\u4f5c"}],"next":"t2"'
    body = page + b"}" if items == "$.data" else b'{"page":[' + page + b'}],"next":"t2"}'
    decoded = decode(body, items=items)
    assert [bytes(item) for item in decoded.items] == [b'{"t":"a"}', broken, b'{"t":"\\u4f5c"}']
    assert decoded.seen.next_value == "t2"


def test_what_cannot_be_salvaged_is_not_json() -> None:
    with pytest.raises(Unreadable, match="not JSON"):
        decode(rb'{"pages":[[{"t":"\x"}]]}', items="$.pages[-1]")
    with pytest.raises(Unreadable, match="not JSON"):
        decode(rb'{"data":[{"t":"\x"}]', items="$.data[*]")


@pytest.mark.parametrize("nothing", [b"null", b'""', b"false"])
def test_a_next_that_says_nothing_is_no_next(nothing: bytes) -> None:
    assert decode(b'{"data":[1],"next":' + nothing + b"}").seen.next_value is None


@pytest.mark.parametrize("odd", [b'{"a":1}', b"[1]", b"true", b'"a\\u0000"', b'"' + b"x" * 9000 + b'"'])
def test_a_next_that_cannot_be_sent_is_unreadable(odd: bytes) -> None:
    with pytest.raises(Unreadable, match="next"):
        decode(b'{"data":[1],"next":' + odd + b"}")


def test_a_token_may_be_a_number() -> None:
    assert decode(b'{"data":[1],"next":17}').seen.next_value == "17"


@pytest.mark.parametrize(
    ("written", "flag"),
    [(b"true", True), (b"false", False), (b'"false"', False), (b'"true"', True), (b"0", False), (b"null", None)],
)
def test_a_flag_is_read_as_it_is_meant(written: bytes, flag: bool | None) -> None:
    assert decode(b'{"data":[],"more":' + written + b"}").seen.has_more is flag


def test_a_flag_that_is_a_link_means_that_there_is_more() -> None:
    # going on after a word nobody understands loses nothing; stopping at it might
    assert decode(b'{"data":[],"more":"https://a.example/?page=2"}').seen.has_more is True
    assert decode(b'{"data":[],"more":""}').seen.has_more is False


@pytest.mark.parametrize(
    ("written", "total"),
    [(b"7", 7), (b'"870"', 870), (b"1e5", 100_000), (b"0", 0), (b"-1", None), (b'"many"', None), (b"true", None)],
)
def test_a_total_is_a_count_or_nothing(written: bytes, total: int | None) -> None:
    assert decode(b'{"data":[],"total":' + written + b"}").seen.total == total


@pytest.mark.parametrize(
    ("following", "url"),
    [
        ("https://api.example.org/v1/works?page=2", "https://api.example.org/v1/works?page=2"),
        ("?page=2", "https://api.example.org/v1/works?page=2"),
        ("works?page=2", "https://api.example.org/v1/works?page=2"),
        ("/v1/works?page=2", "https://api.example.org/v1/works?page=2"),
        ("//evil.example.org/x", "https://evil.example.org/x"),
    ],
)
def test_a_next_url_is_read_where_the_answer_came_from(following: str, url: str) -> None:
    assert decode(f'{{"data":[],"next":"{following}"}}'.encode(), pagination=URL).seen.next_value == url
    body = b'{"data":[],"next":"https://elsewhere"}'
    assert decode(body, links={"next": following}, pagination=LINK).seen.next_value == url


def test_a_next_url_that_is_none_is_unreadable() -> None:
    with pytest.raises(Unreadable):
        decode(b'{"data":[],"next":"http://[::1"}', pagination=URL)


def test_our_credential_is_taken_out_of_the_next_url() -> None:
    auth = Auth(type="API_KEY", location="QUERY", name="api_key", secret_ref="env:KEY")
    body = b'{"data":[],"next":"https://api.example.org/v1/works?a=1&api%5Fkey=s3cret&b=%2F#f"}'
    seen = decode(body, pagination=URL, auth=auth).seen
    assert seen.next_value == "https://api.example.org/v1/works?a=1&b=%2F#f"


def test_the_sample_of_an_unreadable_answer_holds_no_secret() -> None:
    REDACTOR.learn("tr1cky-secret")
    with pytest.raises(Unreadable) as caught:
        decode(b'{"error":"bad key tr1cky-secret"}' + b" " * 2000)
    assert "tr1cky" not in str(caught.value.excerpt)
    assert len(str(caught.value.excerpt)) <= 1024


def test_equal_pages_have_equal_fingerprints_and_others_have_not() -> None:
    bodies = [
        b'{"data":[1,2,3]}',
        b'{"data":[1,2,3],"next":"x"}',
        b'{"data":[1,3]}',
        b'{"data":[2,3,3]}',
        b'{"data":[]}',
    ]
    prints = [decode(body).seen.fingerprint for body in bodies]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 4
    assert prints[-1] == ""
