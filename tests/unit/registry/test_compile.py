"""Rows become snapshots: short forms, derived values, degradations, and refusal of what rows should never hold."""

# ruff: noqa: E501 -- one mistake, one line

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import JsonValue

from ingest.errors import NotFound, SpecInvalid
from ingest.spec.canonical import canonical_json
from ingest.spec.selection import selection_hash
from ingest.spec.snapshot import Snapshot
from registry.builtin import BUILTIN
from registry.compile import compile_rows
from tests.unit.registry.writing import PLAIN, compiled_of, draft_of

_PAGES = "pagination: {kind: page, base: 1, size: 100}"
_PAGE = 'page: "{{ page.number }}"'
_NO_WINDOW = [
    (
        "window: {filter: server, field: updated, start: 2024-01-01, precision: second, max: 1d}",
        "window: {filter: none}",
    ),
    ('from: "{{ window.from }}"', "a: b"),
    ('to: "{{ window.to }}"', "c: d"),
]


def _page(pagination: str, page: str) -> list[tuple[str, str]]:
    return [(_PAGES, f"pagination: {{{pagination}}}"), (_PAGE, page)]


@pytest.mark.parametrize(
    ("pagination", "page", "stop"),
    [
        ("kind: page, base: 0, size: 10", _PAGE, ("short_page",)),
        ("kind: offset, size: 10", 'o: "{{ page.offset }}"', ("short_page",)),
        ("kind: cursor, next: $.next, size: 10", 't: "{{ page.token }}"', ("no_next",)),
        ("kind: url, next: $.next, size: 10", "x: y", ("no_next",)),
        ("kind: link, size: 10", "x: y", ("no_next",)),
        ("kind: token, next: $.next, has_more: $.more, size: 10", 't: "{{ page.token }}"', ("has_more_false",)),
        ("kind: offset, size: 10, stop: [total_reached, empty_page]", 'o: "{{ page.offset }}"', ("total_reached", "empty_page")),
    ],
)  # fmt: skip
def test_stop_rules_follow_from_the_kind_unless_declared(pagination: str, page: str, stop: tuple[str, ...]) -> None:
    compiled = compiled_of(*_page(pagination, page))
    assert compiled.snapshot.pagination.stop == stop


def test_no_pagination_is_one_page() -> None:
    compiled = compiled_of((f"    {_PAGES}\n", ""), (_PAGE, "x: y"), ('size: "{{ page.size }}"', "z: y"))
    assert compiled.snapshot.pagination.kind == "NONE"
    assert compiled.snapshot.pagination.stop == ("single",)


def test_link_is_short_for_a_url_in_the_link_header() -> None:
    pagination = compiled_of(*_page("kind: link, size: 10", "x: y")).snapshot.pagination
    assert (pagination.kind, pagination.next_in) == ("URL", "link_header")


def test_no_size_declared_asks_for_80_percent_of_the_vendors_maximum() -> None:
    compiled = compiled_of((_PAGES, "pagination: {kind: page, base: 1, max_size: 250}"))
    assert compiled.snapshot.pagination.size == 200
    assert compiled.origins["pagination.size"] == "derived: 80 % of max_size"


@pytest.mark.parametrize(
    ("written", "windows", "rate_per_s"),
    [
        ("rate: 3/1s", [(3, 1.0)], None),
        ("rate: [3/1s, 200/min]", [(3, 1.0), (200, 60.0)], None),
        ("rate: {windows: 3/1s, per_second: 2}", [(3, 1.0)], 2.0),
        ("rate: {per_second: 2}", [], 2.0),
        ("rate: {burst: 1}", [], 1.0),
    ],
)
def test_windows_alone_leave_no_other_rate(
    written: str, windows: list[tuple[int, float]], rate_per_s: float | None
) -> None:
    rate = compiled_of(("rate: 10/s", written)).snapshot.rate
    assert [(window.limit, window.seconds) for window in rate.windows] == windows
    assert rate.rate_per_s == rate_per_s


def test_an_alias_becomes_its_code_in_rows_and_snapshot() -> None:
    draft = draft_of(PLAIN.replace("title: text", "title: string").replace("kind: page", "kind: Page"))
    assert [row["pagination_type_code"] for row in draft.rows["reg_prov_pagination_cfg"]] == ["PAGE"]
    assert draft.compiled["items"].snapshot.mapping.columns[0].type == "text"


def test_an_alias_that_got_into_a_row_is_resolved_at_compile_too() -> None:
    rows = draft_of(PLAIN).rows
    rows["reg_prov_pagination_cfg"][0]["pagination_type_code"] = "page"
    assert compile_rows(rows, BUILTIN, "items").snapshot.pagination.kind == "PAGE"


def test_short_forms_of_columns() -> None:
    columns = compiled_of(
        (
            "title: text",
            'title: $.t.x\n      year: int\n      kind: {path: "$.k[0]", type: string, required: true, enum: [a, b]}',
        )
    ).snapshot.mapping.columns
    assert [(c.name, c.path, c.type, c.required, c.enum) for c in columns] == [
        ("title", "$.t.x", "text", False, ()),
        ("year", "$.year", "int", False, ()),
        ("kind", "$.k[0]", "text", True, ("a", "b")),
    ]


def test_short_forms_of_identity() -> None:
    assert [part.model_dump() for part in compiled_of().snapshot.mapping.identity] == [
        {"column": "provider_id", "path": "$.id", "type": "text", "lower": False, "partition": ""}
    ]
    composite = "id: [{column: series_id, path: $.s}, {column: open_time, path: $.t, type: timestamp}]"
    parts = compiled_of(("id: $.id", composite)).snapshot.mapping.identity
    assert [(part.column, part.type) for part in parts] == [("series_id", "text"), ("open_time", "timestamp")]
    assert compiled_of(("id: $.id", "id: {path: $.id, lower: true}")).snapshot.mapping.identity[0].lower


def test_a_time_of_change_has_a_format_and_a_zone() -> None:
    written = "updated_at: {path: $.u, format: epoch_ms, zone: Asia/Shanghai}"
    moment = compiled_of(("updated_at: $.updated", written)).snapshot.mapping.updated_at
    assert moment is not None
    assert (moment.path, moment.format, moment.zone) == ("$.u", "epoch_ms", "Asia/Shanghai")


def test_a_start_without_a_zone_is_read_in_the_windows_zone() -> None:
    written = "start: 2024-07-01, zone: America/New_York"
    start = compiled_of(("start: 2024-01-01", written), ("precision: second", "precision: day")).snapshot.window.start
    assert start == datetime(2024, 7, 1, 4, tzinfo=UTC)


def test_a_form_is_a_body_of_kind_form() -> None:
    http = compiled_of(("get: /items", 'post: /items\n    form: {a: "{{ vars.term }}", n: 5}')).snapshot.http
    assert (http.method, http.body_kind, http.body) == ("POST", "form", {"a": "{{ vars.term }}", "n": "5"})


def test_the_endpoints_own_credential_comes_before_the_sources_and_priority_decides() -> None:
    auth = compiled_of(
        ("source: plain", "source: plain\nauth: {type: bearer, secret: env:SOURCE}"),
        (
            "get: /items",
            "get: /items\n    auth: [{type: bearer, secret: env:A}, {type: bearer, secret: env:B, priority: 1}]",
        ),
    ).snapshot.auth
    assert (auth.secret_ref, auth.credential_code) == ("env:B", "items2")
    source = compiled_of(("source: plain", "source: plain\nauth: {type: bearer, secret: env:SOURCE}")).snapshot.auth
    assert (source.secret_ref, source.credential_code, source.name) == ("env:SOURCE", "main", "Authorization")


def test_auth_none_on_an_endpoint_switches_the_sources_credential_off() -> None:
    auth = compiled_of(
        ("source: plain", "source: plain\nauth: {type: bearer, secret: env:SOURCE}"),
        ("get: /items", "get: /items\n    auth: none"),
    ).snapshot.auth
    assert (auth.type, auth.secret_ref) == ("NONE", "")


@pytest.mark.parametrize(
    ("replacements", "degradations"),
    [
        ([], ["hasNextByPageSize"]),
        ([(", total: $.total", "")], ["noCount", "hasNextByPageSize"]),
        ([("size: 100}", "size: 100, stop: total_reached}")], []),
        ([("size: 100}", "size: 100, has_more: $.more}")], []),
        ([("updated_at: $.updated", "version: content_hash")], ["hasNextByPageSize", "contentHash"]),
        (_NO_WINDOW, ["hasNextByPageSize", "fullWalk"]),
    ],
)
def test_what_the_source_cannot_do_is_recorded(replacements: list[tuple[str, str]], degradations: list[str]) -> None:
    assert compiled_of(*replacements).degradations == degradations


def test_warnings_are_carried_by_the_compiled_spec() -> None:
    warnings = compiled_of(("items: $.data", "items: $..data")).warnings
    assert warnings == [
        "endpoints.items.records.items.path: '..' searches the whole value for every record (write the explicit path)"
    ]


def test_a_changed_term_is_another_selection_and_a_changed_column_is_not() -> None:
    before = selection_hash(compiled_of().snapshot)
    assert selection_hash(compiled_of(("term: cats", "term: dogs")).snapshot) != before
    assert selection_hash(compiled_of(("title: text", "title: $.t")).snapshot) == before
    assert selection_hash(compiled_of(("rate: 10/s", "rate: 1/s")).snapshot) == before


@pytest.mark.parametrize(("inert", "same"), [("inert: [mailto]", True), ("inert: []", False)])
def test_an_inert_parameter_is_no_part_of_the_selection(inert: str, same: bool) -> None:
    def hash_with(address: str) -> str:
        parameter = ('q: "{{ vars.term }}"', f'q: "{{{{ vars.term }}}}"\n      mailto: {address}')
        return selection_hash(compiled_of(("get: /items", f"get: /items\n    {inert}"), parameter).snapshot)

    assert (hash_with("ana") == hash_with("bob")) is same


def test_compiling_twice_gives_the_same_fingerprint_and_the_snapshot_survives_storage() -> None:
    snapshot = compiled_of().snapshot
    assert compiled_of().snapshot.spec_fingerprint == snapshot.spec_fingerprint
    stored = Snapshot.model_validate(json.loads(canonical_json(snapshot.as_data())))
    assert stored.spec_fingerprint == snapshot.spec_fingerprint


def test_the_fingerprint_ignores_the_revision() -> None:
    rows = draft_of(PLAIN).rows
    before = compile_rows(rows, BUILTIN, "items").snapshot
    rows["reg_provenance"][0]["revision"] = 7
    after = compile_rows(rows, BUILTIN, "items").snapshot
    assert (after.revision, after.spec_fingerprint) == (7, before.spec_fingerprint)


def test_every_origin_is_told() -> None:
    compiled = compiled_of()
    assert compiled.origins["rate.windows"] == "source rate_limit_cfg"
    assert compiled.origins["http.base_url"] == "source http_cfg"
    assert compiled.origins["pagination.size"] == "endpoint pagination_cfg"
    assert compiled.origins["retry.policy"] == "platform"
    assert compiled.origins["mapping.columns.title"] == "endpoint expr_field_dict"


_BROKEN: list[tuple[str, dict[str, JsonValue], str]] = [
    ("reg_prov_rate_limit_cfg", {"windows": "soon"}, "rate.windows"),
    ("reg_prov_rate_limit_cfg", {"windows": [{"limit": "x"}]}, "rate.windows"),
    ("reg_prov_window_offset_cfg", {"ends": "maybe"}, "endpoints.items.window.ends"),
    ("reg_prov_window_offset_cfg", {"start_at": "soon"}, "endpoints.items.window.start"),
    ("reg_prov_pagination_cfg", {"pagination_type_code": "SPIRAL"}, "endpoints.items.pagination.kind"),
    ("reg_prov_pagination_cfg", {"next_in": "nowhere"}, "endpoints.items.pagination.next_in"),
    ("reg_prov_http_cfg", {"base_url": "http://api.example.org"}, "base_url"),
    ("reg_prov_api_param_map", {"template": "{{ secret.x }}"}, "endpoints.items.query"),
]


@pytest.mark.parametrize(("table", "values", "path"), _BROKEN)
def test_the_same_checks_refuse_rows_that_no_file_stands_behind(
    table: str, values: dict[str, JsonValue], path: str
) -> None:
    rows: Any = draft_of(PLAIN).rows
    rows[table][0].update(values)
    with pytest.raises(SpecInvalid) as refused:
        compile_rows(rows, BUILTIN, "items", open_origins=())
    assert any(problem.startswith(path) for problem in refused.value.problems), refused.value.problems


def test_all_problems_of_rows_are_raised_together() -> None:
    rows: Any = draft_of(PLAIN).rows
    rows["reg_prov_pagination_cfg"][0]["pagination_type_code"] = "SPIRAL"
    rows["reg_expr_field_dict"][0]["path"] = "data"
    rows["reg_prov_window_offset_cfg"][0].pop("start_at")
    with pytest.raises(SpecInvalid) as refused:
        compile_rows(rows, BUILTIN, "items")
    assert len(refused.value.problems) >= 3


def test_an_endpoint_that_is_not_there_is_not_found() -> None:
    with pytest.raises(NotFound):
        compile_rows(draft_of(PLAIN).rows, BUILTIN, "nope")


def test_a_snapshot_holds_the_reference_and_never_the_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "hunter2")
    snapshot = compiled_of(("source: plain", "source: plain\nauth: {type: bearer, secret: env:TOKEN}")).snapshot
    assert snapshot.auth.secret_ref == "env:TOKEN"
    assert b"hunter2" not in canonical_json(snapshot.as_data())
