"""The selection: coverage is kept or lost exactly when it should be (DESIGN rule 6)."""

from typing import Any

import pytest

from ingest.spec.selection import selection_hash
from ingest.spec.snapshot import (
    Auth,
    Column,
    Expressions,
    Http,
    IdPart,
    Mapping,
    Pagination,
    Rate,
    Response,
    Retry,
    Snapshot,
    Window,
)
from tests.factories import START, make_snapshot


def snapshot(**changes: Any) -> Snapshot:
    query = {
        "q": "{{ vars.term }}",
        "type": "{{ vars['kind'] }}",
        "rows": "{{ page.size }}",
        "mailto": "{{ vars.email }}",
    }
    http = {
        "method": "POST",
        "base_url": "https://api.example.org",
        "path": "/works",
        "query": query,
        "headers": {"User-Agent": "ingest {{ vars.email }}", "X-Tenant": "{{ vars.tenant }}"},
        "body": {"filter": ["{{ vars.field }}"]},
        "inert": ("mailto",),
    }
    values = {"term": "a", "kind": "b", "email": "c", "tenant": "d", "field": "e", "unused": "f"}
    sections: dict[str, Any] = {
        "http": Http(**(http | changes.pop("http", {}))),
        "expr": Expressions(vars=values | changes.pop("vars", {})),
    }
    return make_snapshot(**(sections | changes))


BASE = selection_hash(snapshot())
MAPPING = make_snapshot().mapping


@pytest.mark.parametrize(
    "change",
    [
        {"vars": {"term": "other"}},
        {"vars": {"kind": "other"}},
        {"vars": {"tenant": "other"}},
        {"vars": {"field": "other"}},
        {"http": {"path": "/members"}},
        {"http": {"method": "GET"}},
        {"http": {"base_url": "https://other.example.org"}},
        {"http": {"query": {"q": "{{ vars.term }} AND x"}}},
        {"http": {"headers": {"X-Tenant": "{{ vars.term }}"}}},
        {"http": {"body": {"filter": ["x"]}}},
        {"window": Window(filter="server", field="created", start=START)},
        {"window": Window(filter="none")},
        {"response": Response(items="$.other")},
        {"mapping": MAPPING.model_copy(update={"identity": (IdPart(column="provider_id", path="$.uid"),)})},
        {"auth": Auth(type="BEARER", credential_code="b", secret_ref="env:B", scope_data=True)},
    ],
    ids=lambda change: repr(change)[:60],
)
def test_what_decides_which_records_come_changes_the_selection(change: dict[str, Any]) -> None:
    assert selection_hash(snapshot(**change)) != BASE


@pytest.mark.parametrize(
    "change",
    [
        {"vars": {"email": "other"}},
        {"vars": {"unused": "other"}},
        {"http": {"headers": {"User-Agent": "other", "x-tenant": "{{ vars.tenant }}"}}},
        {"http": {"read_timeout_s": 60.0}},
        {"pagination": Pagination(kind="PAGE", size=7, stop=("short_page",))},
        {"rate": Rate(rate_per_s=3.0)},
        {"retry": Retry(max_attempts=9)},
        {"window": Window(filter="server", field="updated_at", start=None, max_s=60.0, safety_lag_s=1.0)},
        {"mapping": Mapping(dataset="other", identity=MAPPING.identity, columns=(Column(name="x", path="$.x"),))},
        {"auth": Auth(type="BEARER", credential_code="b", secret_ref="env:B")},
        {"response": Response(items="$.data", total=None)},
    ],
    ids=lambda change: repr(change)[:60],
)
def test_what_decides_only_how_they_come_keeps_it(change: dict[str, Any]) -> None:
    assert selection_hash(snapshot(**change)) == BASE


def test_each_partition_is_a_selection_of_its_own() -> None:
    assert len({selection_hash(snapshot(), partition) for partition in ("", "a", "b")}) == 3
