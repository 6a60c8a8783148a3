"""The benchmark's source serves both phases under one address, and its parts cover every page once."""

import json
import os
from typing import Any

import pytest

from benchmarks.__main__ import choose_variants, parse
from benchmarks.meter import process_tree, tree_cpu
from benchmarks.source import PARTS, Answers, first_page


def ask(answers: Answers, path: str) -> Any:
    answer = answers.find(f"GET /bench/{path} HTTP/1.1\r\n".encode())
    head, _, body = answer.partition(b"\r\n\r\n")
    assert f"Content-Length: {len(body)}".encode() in head
    return json.loads(body) if body.startswith(b"{") else body


def walk(answers: Answers, prefix: str, page: int | None) -> list[str]:
    found: list[str] = []
    while page is not None:
        body = ask(answers, f"{prefix}items?page={page}")
        found += [item["id"] for item in body["items"]]
        page = body["next"]
    return found


def test_parts_together_are_the_whole_and_share_nothing() -> None:
    answers = Answers(pages=5, records=3)
    whole = walk(answers, "", 1)
    parts = [walk(answers, f"part/{n}/", first_page(n, 5)) for n in range(1, PARTS + 1)]
    assert len(whole) == len(set(whole)) == 15
    assert [key for part in parts for key in part] == whole
    assert all(parts)


def test_the_second_phase_has_the_same_keys_a_tenth_of_them_newer() -> None:
    answers = Answers(pages=2, records=10)
    first = ask(answers, "items?page=1")["items"]
    assert ask(answers, "serve/p2") == b"ok"
    second = ask(answers, "items?page=1")["items"]
    assert [item["id"] for item in first] == [item["id"] for item in second]
    assert sum(a["updated_at"] < b["updated_at"] for a, b in zip(first, second, strict=True)) == 1


def test_a_page_that_is_not_there_is_not_found() -> None:
    assert Answers(pages=1, records=1).find(b"GET /bench/items?page=2 HTTP/1.1\r\n").startswith(b"HTTP/1.1 404")


def test_only_takes_kinds_and_names() -> None:
    assert [v.name for v in choose_variants("floor")] == ["F", "F-typed"]
    assert [v.name for v in choose_variants("ours-2,leases")] == ["ours-2"]
    with pytest.raises(SystemExit, match="unknown 'dtl'"):
        choose_variants("dtl")
    assert parse([]).repeats == 3


def test_the_cpu_of_a_tree_is_at_least_our_own() -> None:
    assert os.getpid() in process_tree(os.getpid())
    assert tree_cpu(os.getpid()) > 0
