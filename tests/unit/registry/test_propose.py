"""Proposals: what an answer looks like becomes a file that validates, with the reason behind each guess."""

from typing import Any

import pytest

from registry.infer import column_name, infer_type
from registry.propose import TEMPLATES, propose, propose_template
from tests.unit.registry.writing import draft_of

_RECORDS = [
    {"id": n, "status": "new", "updated_at": f"2024-01-0{n}T00:00:00Z", "price": f"{n}.50", "owner": {"name": "a"}}
    for n in (1, 2, 3)
]
_URL = "https://api.example.org/v1/orders"


def snapshot_of(text: str) -> Any:
    draft = draft_of(text)
    assert [str(problem) for problem in draft.problems if problem.severity == "error"] == [], text
    (compiled,) = draft.compiled.values()
    return compiled.snapshot


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_template_validates(template: str) -> None:
    snapshot = snapshot_of(propose_template("shop", template).text())
    assert (snapshot.window.filter == "server") is (template == "windowed")


@pytest.mark.parametrize(
    ("query", "answer", "links", "kind", "stop"),
    [
        ("?page=1&size=3", {"data": _RECORDS}, {}, "PAGE", "short_page"),
        ("?offset=0&limit=3", {"data": _RECORDS}, {}, "OFFSET", "short_page"),
        ("", {"data": _RECORDS, "meta": {"next_cursor": "abc"}}, {}, "TOKEN", "no_next"),
        ("", {"data": _RECORDS, "next": "https://api.example.org/v1/orders?p=2"}, {}, "URL", "no_next"),
        ("", _RECORDS, {"next": "https://api.example.org/v1/orders?p=2"}, "URL", "no_next"),
        ("", {"data": _RECORDS, "has_more": True, "next_cursor": "abc"}, {}, "TOKEN", "has_more_false"),
        ("", {"data": _RECORDS}, {}, "NONE", "single"),
    ],
    ids=["page", "offset", "token", "url", "link", "has-more", "none"],
)
def test_pagination_is_told_from_the_url_the_answer_and_its_links(
    query: str, answer: Any, links: dict[str, str], kind: str, stop: str
) -> None:
    snapshot = snapshot_of(propose("shop", _URL + query, answer, links).text())
    assert (snapshot.pagination.kind, snapshot.pagination.stop) == (kind, (stop,))
    assert snapshot.response.items == ("$" if isinstance(answer, list) else "$.data")
    assert snapshot.mapping.identity[0].path == "$.id"
    assert snapshot.mapping.updated_at.path == "$.updated_at"
    types = {column.name: column.type for column in snapshot.mapping.columns}
    assert types == {"status": "text", "price": "numeric", "owner_name": "text"}


def test_a_credential_in_the_url_is_never_written_down() -> None:
    text = propose("shop", f"{_URL}?api_key=hunter2&page=1", {"data": _RECORDS}, {}).text()
    assert "hunter2" not in text
    assert snapshot_of(text).auth.secret_ref == "env:SHOP_API_KEY"


def test_what_was_not_found_is_said() -> None:
    text = propose("shop", _URL, {"error": "no"}, {}).text()
    assert text.count("NOT FOUND") == 2
    assert "version: content_hash" in text


@pytest.mark.parametrize(
    ("values", "kind"),
    [([1, 2], "int"), ([1, 2.5], "float"), ([2**70], "numeric"), (["1.50"], "numeric"), (["007"], "text"),
     ([True], "bool"), ([True, 1], "text"), (["2024-01-31"], "date"), (["2024-01-31", "2024-01-31T00:00:00Z"],
     "timestamp"), ([[1]], "json"), (["a", [1]], "json")],
)  # fmt: skip
def test_a_type_is_the_narrowest_that_holds_every_value(values: list[Any], kind: str) -> None:
    assert infer_type(values) == kind


def test_column_names_are_words_a_table_can_hold() -> None:
    assert [column_name(text) for text in ("updatedAt", "DOI", "is-referenced-by", "_id", "3d")] == [
        "updated_at", "doi", "is_referenced_by", "id", "d",
    ]  # fmt: skip
