"""Bench pages: whole, even, and with a tenth of the records newer in the second phase."""

import json
from http.client import HTTPConnection
from typing import Any

import pytest

from simulator.bench import find_answer, make_bench_listener
from simulator.pages import RECORD_BYTES, BenchPages


@pytest.fixture(scope="module")
def pages() -> BenchPages:
    return BenchPages(pages=3, records=200)


def read_items(pages: BenchPages, phase: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    number: int | None = 1
    while number is not None:
        answer = find_answer(pages, f"GET /bench/{phase}/items?page={number} HTTP/1.1\r\n".encode())
        head, _, body = answer.partition(b"\r\n\r\n")
        assert f"Content-Length: {len(body)}".encode() in head
        page = json.loads(body)
        items += page["items"]
        number = page["next"]
    return items


def test_the_second_phase_has_the_same_keys_and_a_tenth_newer(pages: BenchPages) -> None:
    first, second = read_items(pages, "p1"), read_items(pages, "p2")
    assert [item["id"] for item in first] == [item["id"] for item in second]
    assert len({item["id"] for item in first}) == 600
    newer = [n for n, (a, b) in enumerate(zip(first, second, strict=True)) if a["updated_at"] < b["updated_at"]]
    assert newer == list(range(7, 600, 10))
    assert all(a == b for n, (a, b) in enumerate(zip(first, second, strict=True)) if n % 10 != 7)


def test_records_have_the_size_that_was_measured_with(pages: BenchPages) -> None:
    phase = pages.get_phase("p1")
    assert abs(phase.body_bytes / phase.records - RECORD_BYTES) < 5


def test_bench_serves_over_one_connection(pages: BenchPages) -> None:
    listener = make_bench_listener("127.0.0.1", 0, pages)
    listener.start()
    connection = HTTPConnection("127.0.0.1", listener.server_port)

    def get(path: str, **headers: str) -> tuple[int, bytes]:
        connection.request("GET", path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read()

    told = json.loads(get("/bench/p2/build")[1])
    assert (told["pages"], told["records"], told["newer"]) == (3, 600, 60)
    assert json.loads(get("/bench/p1/items")[1])["next"] == 2
    assert json.loads(get("/bench/p1/items?size=9&page=3")[1])["next"] is None
    assert get("/bench/p1/items?page=4") == (404, b"")
    assert get("/bench/p3/items") == (404, b"")
    assert get("/bench/p1/items", Connection="close")[0] == 200
    connection.close()
    listener.close()
