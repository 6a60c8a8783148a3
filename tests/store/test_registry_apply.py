"""Apply: one transaction, idempotent, audited; a changed selection is told, a changed column costs nothing."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import event, text

from ingest.db import Database
from ingest.errors import RefusedByState, SpecInvalid
from ingest.spec.selection import selection_hash
from ingest.store.series import ensure_series, list_series
from registry.apply import apply
from registry.describe import declared
from registry.diff import diff
from registry.drafts import Draft
from registry.expand import TABLES
from registry.load import compile_endpoint, list_endpoints
from registry.problems import FilesInvalid
from registry.report import Report
from registry.store import rows as store
from registry.store.dictionary import load_platform
from registry.store.locks import hold_sources
from registry.store.revisions import find_applied, list_revisions
from tests.unit.registry.writing import PLAIN, SHIPPED, change, draft_of

_TERM = ("term: cats", "term: dogs")
_START = datetime(2024, 1, 1, tzinfo=UTC)


def _apply(database: Database, *drafts: Draft, **options: Any) -> Report:
    return apply(database, drafts, actor="ana", reason="test", **options)


def _plain(*replacements: tuple[str, str]) -> Draft:
    draft = draft_of(change(PLAIN, *replacements))
    assert draft.problems == []
    return draft


def _shipped() -> list[Draft]:
    return [draft_of(path.read_text(), name=path.name) for path in sorted(SHIPPED.glob("*.yaml"))]


def _count(database: Database, table: str) -> int:
    with database.transaction() as conn:
        return int(conn.execute(text(f"SELECT count(*) FROM {table}")).scalar_one())


def _cover(database: Database, days: int) -> int:
    """Give the applied endpoint a series that is covered for some days."""
    with database.transaction() as conn:
        snapshot = compile_endpoint(conn, "plain", "items").snapshot
        series = ensure_series(
            conn, source="plain", endpoint="items", selection=selection_hash(snapshot), anchor=_START
        )
        conn.execute(
            text("INSERT INTO ing_coverage (series_id, covered) VALUES (:id, tstzmultirange(tstzrange(:a, :b)))"),
            {"id": series.id, "a": _START, "b": _START + timedelta(days=days)},
        )
        return series.id


def test_rows_read_back_are_the_rows_written(database: Database) -> None:
    drafts = _shipped()
    _apply(database, *drafts)
    with database.transaction() as conn:
        for draft in drafts:
            assert declared(store.read_source_rows(conn, draft.source)) == declared(draft.rows)


def test_what_is_compiled_from_the_database_is_what_was_compiled_from_the_file(database: Database) -> None:
    drafts = _shipped()
    _apply(database, *drafts)
    with database.transaction() as conn:
        for draft in drafts:
            for name, compiled in draft.compiled.items():
                loaded = compile_endpoint(conn, draft.source, name)
                assert loaded.snapshot.spec_fingerprint == compiled.snapshot.spec_fingerprint
                assert loaded.snapshot.revision == 1
                assert (loaded.origins, loaded.degradations) == (compiled.origins, compiled.degradations)


def test_apply_makes_the_table_the_schedule_the_revision_and_the_audit(database: Database) -> None:
    report = _apply(database, _plain())
    assert [source.action for source in report.sources] == ["new"]
    with database.transaction() as conn:
        columns = conn.execute(
            text("SELECT column_name FROM information_schema.columns WHERE table_name = 'plain_items'")
        ).scalars()
        assert {"provider_id", "updated_at", "title", "payload"} <= set(columns)
        schedule = conn.execute(text("SELECT schedule_code, operation_code, kind, every_s FROM reg_schedule")).one()
        assert tuple(schedule) == ("plain.items", "HARVEST", "every", 3600)
        audit = conn.execute(text("SELECT actor, action, target, reason FROM ing_audit")).one()
        assert tuple(audit) == ("ana", "registry.apply", "plain", "test")
        revision = list_revisions(conn, "plain")[0]
        assert (revision.revision, revision.changed_by, revision.reason) == (1, "ana", "test")
        assert (find_applied(conn, "plain", 1) or [""])[0] == PLAIN
        assert [endpoint.name for endpoint in list_endpoints(conn)] == ["plain.items"]


def test_an_unchanged_source_gets_no_revision(database: Database) -> None:
    _apply(database, _plain())
    same = change(PLAIN, ("max: 1d", "max: 24h"), ("source: plain", "# a comment\nsource: plain"))
    report = _apply(database, draft_of(same))
    assert [source.action for source in report.sources] == ["unchanged"]
    assert not report.differs
    assert _count(database, "reg_revision") == _count(database, "ing_audit") == 1


def test_a_changed_source_gets_the_next_revision_with_what_changed(database: Database) -> None:
    _apply(database, _plain())
    report = _apply(database, _plain(("max: 1d", "max: 6h")))
    changes = [change.as_data() for change in report.sources[0].all_changes]
    assert changes == [{"path": "endpoints.items.window.max", "old": "1d", "new": "6h"}]
    with database.transaction() as conn:
        newest = list_revisions(conn, "plain")[0]
        assert (newest.revision, newest.changes) == (2, changes)
        assert compile_endpoint(conn, "plain", "items").snapshot.revision == 2


def test_diff_and_dry_run_tell_the_same_as_apply_and_write_nothing(database: Database) -> None:
    dry = _apply(database, _plain(), dry_run=True)
    assert dry.as_data() == diff(database, [_plain()]).as_data()
    assert _count(database, "reg_provenance") == _count(database, "reg_revision") == 0
    assert dry.as_data() == _apply(database, _plain()).as_data()


def test_apply_is_one_transaction(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the last statement failed")

    monkeypatch.setattr("registry.apply.audit.record", fail)
    with pytest.raises(RuntimeError):
        _apply(database, *_shipped())
    for table in TABLES:
        assert _count(database, table) == 0
    assert _count(database, "reg_revision") == 0


def test_the_table_is_there_before_the_spec(database: Database) -> None:
    order: list[str] = []

    def note(conn: Any, cursor: Any, statement: str, *_: Any) -> None:
        words = ("CREATE TABLE data.", 'INSERT INTO "reg_provenance"')
        order.extend(word for word in words if word in statement)

    event.listen(database.engine, "before_cursor_execute", note)
    _apply(database, _plain())
    assert order == ["CREATE TABLE data.", 'INSERT INTO "reg_provenance"']


def test_nothing_is_applied_if_any_file_is_wrong(database: Database) -> None:
    broken = draft_of(change(PLAIN, ("source: plain", "source: other"), ("rate: 10/s", "rate: x")))
    with pytest.raises(FilesInvalid) as refused:
        _apply(database, _plain(), broken)
    assert [problem.path for problem in refused.value.found] == ["rate"]
    assert _count(database, "reg_provenance") == 0


def test_a_changed_search_term_starts_an_empty_selection_and_says_what_is_lost(database: Database) -> None:
    _apply(database, _plain())
    _cover(database, days=31)
    report = _apply(database, _plain(_TERM))
    lost = report.sources[0].endpoints[0].lost
    assert [str(line) for line in lost] == [
        "selection changed: 31d of coverage no longer applies (--keep-coverage copies it)"
    ]
    with database.transaction() as conn:
        assert len(list_series(conn, "plain", "items")) == 1


def test_a_changed_column_keeps_all_coverage_and_widens_the_table(database: Database) -> None:
    _apply(database, _plain())
    _cover(database, days=31)
    endpoint = _apply(database, _plain(("title: text", "title: $.t\n      year: int"))).sources[0].endpoints[0]
    assert endpoint.lost == []
    assert endpoint.action == "changed"
    assert endpoint.statements == ['ALTER TABLE data."plain_items" ADD COLUMN "year" bigint']


def test_keep_coverage_copies_it_to_the_new_selection_and_is_audited(database: Database) -> None:
    _apply(database, _plain())
    _cover(database, days=31)
    report = _apply(database, _plain(_TERM), keep_coverage=True)
    assert report.sources[0].endpoints[0].lost[0].kept
    with database.transaction() as conn:
        new = selection_hash(compile_endpoint(conn, "plain", "items").snapshot)
        copied = next(series for series in list_series(conn, "plain", "items") if series.selection_hash == new)
        assert copied.covered_seconds == 31 * 86400
        actions = conn.execute(text("SELECT action FROM ing_audit ORDER BY id")).scalars().all()
    assert actions == ["registry.apply", "registry.apply", "coverage.copy"]


def test_a_removed_endpoint_is_gone_from_the_registry_and_its_data_stays(database: Database) -> None:
    two = PLAIN + PLAIN[PLAIN.index("  items:") :].replace("  items:", "  other:", 1)
    _apply(database, draft_of(two))
    _cover(database, days=1)
    report = _apply(database, draft_of(two.replace("  items:\n", "  third:\n", 1)))
    actions = {endpoint.name: endpoint.action for endpoint in report.sources[0].endpoints}
    assert actions == {"plain.third": "new", "plain.other": "unchanged", "plain.items": "removed"}
    assert _count(database, "data.plain_items") == 0
    assert _count(database, "ing_series") == 1
    with database.transaction() as conn:
        assert [endpoint.name for endpoint in list_endpoints(conn)] == ["plain.other", "plain.third"]
        with pytest.raises(SpecInvalid, match=r"plain\.items is not declared"):
            compile_endpoint(conn, "plain", "items")


def test_a_retyped_column_is_refused_at_its_line_and_nothing_is_written(database: Database) -> None:
    _apply(database, _plain())
    with pytest.raises(FilesInvalid) as refused:
        _apply(database, _plain(("title: text", "title: int"), ("max: 1d", "max: 6h")))
    problem = refused.value.found[0]
    assert problem.path == "endpoints.items.columns.title"
    assert problem.line == PLAIN.splitlines().index("      title: text") + 1
    assert "a type cannot change in place" in problem.message
    assert _count(database, "reg_revision") == 1


def test_a_table_of_another_source_is_refused(database: Database) -> None:
    _apply(database, draft_of(change(PLAIN, ("source: plain", "source: a"), ("  items:", "  b_c:"))))
    clash = draft_of(change(PLAIN, ("source: plain", "source: a_b"), ("  items:", "  c:")))
    with pytest.raises(FilesInvalid, match=r"the table data\.a_b_c belongs to a\.b_c"):
        _apply(database, clash)


def test_applies_of_one_source_at_the_same_time_follow_each_other(database: Database) -> None:
    texts = [("max: 1d", f"max: {hours}h") for hours in range(1, 5)]
    with ThreadPoolExecutor(4) as pool:
        reports = list(pool.map(lambda replacement: _apply(database, _plain(replacement)), texts))
    assert sorted(report.sources[0].revision for report in reports) == list(range(1, 5))
    with database.transaction() as conn:
        revisions = list_revisions(conn, "plain")
        assert [revision.revision for revision in revisions] == list(range(4, 0, -1))
        assert compile_endpoint(conn, "plain", "items").snapshot.revision == 4


def test_an_apply_gives_up_on_a_source_that_stays_held(database: Database) -> None:
    impatient = Database(database.engine.url.render_as_string(hide_password=False))

    @event.listens_for(impatient.engine, "connect")
    def shorten(connection: Any, _: Any) -> None:
        connection.execute("SET lock_timeout = '50ms'")
        connection.commit()

    with hold_sources(database, ["plain"]), pytest.raises(RefusedByState, match="another apply of 'plain'"):
        _apply(impatient, _plain())
    _apply(impatient, _plain())
    impatient.close()


def test_a_failed_apply_lets_go_of_its_sources(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the rows could not be written")

    with monkeypatch.context() as patch:
        patch.setattr("registry.apply.write_rows", fail)
        with pytest.raises(RuntimeError):
            _apply(database, _plain())
    assert _apply(database, _plain()).sources[0].revision == 1


@pytest.mark.parametrize("columns", [1, 40])
def test_compiling_an_endpoint_takes_the_same_two_statements_whatever_it_declares(
    database: Database, columns: int
) -> None:
    many = "\n      ".join(f"c{number}: text" for number in range(columns))
    _apply(database, _plain(("title: text", many), ("get: /items", "get: /items\n    headers: {a: b, c: d, e: f}")))
    statements: list[str] = []
    event.listen(database.engine, "before_cursor_execute", lambda *args: statements.append(args[2]))
    with database.transaction() as conn:
        compiled = compile_endpoint(conn, "plain", "items")
    assert len(compiled.snapshot.mapping.columns) == columns
    assert len(statements) == 1  # the platform is still fresh from the apply; two when its minute is over


def test_a_trigger_overrides_for_its_own_compile_only(database: Database) -> None:
    _apply(database, _plain())
    with database.transaction() as conn:
        overridden = compile_endpoint(conn, "plain", "items", overrides={"pagination": {"size": 7}})
        assert overridden.snapshot.pagination.size == 7
        assert overridden.origins["pagination.size"] == "trigger"
        assert compile_endpoint(conn, "plain", "items").snapshot.pagination.size == 100
        with pytest.raises(SpecInvalid, match="unknown key 'sise'"):
            compile_endpoint(conn, "plain", "items", overrides={"pagination": {"sise": 7}})
        with pytest.raises(SpecInvalid, match="is not a whole number of units"):
            compile_endpoint(conn, "plain", "items", overrides={"window": {"max": "1500ms"}})


def test_rows_changed_behind_the_files_back_are_checked_again_at_compile(database: Database) -> None:
    _apply(database, _plain())
    with database.transaction() as conn:
        conn.execute(text("UPDATE reg_expr_field_dict SET path = 'data' WHERE field_kind = 'ITEMS'"))
        conn.execute(text("UPDATE reg_prov_pagination_cfg SET pagination_type_code = 'SPIRAL'"))
        with pytest.raises(SpecInvalid) as refused:
            compile_endpoint(conn, "plain", "items")
    assert len(refused.value.problems) == 2


def test_platform_defaults_can_be_changed_in_the_database(database: Database) -> None:
    _apply(database, _plain())
    with database.transaction() as conn:
        conn.execute(text("UPDATE reg_default SET value = '9' WHERE section = 'retry' AND name = 'max_attempts'"))
        load_platform(conn, ttl_s=0)
        assert compile_endpoint(conn, "plain", "items").snapshot.retry.max_attempts == 9


def test_an_applied_source_that_no_longer_compiles_can_be_replaced(database: Database) -> None:
    _apply(database, _plain())
    with database.transaction() as conn:
        conn.execute(text("UPDATE reg_expr_field_dict SET path = 'data' WHERE field_kind = 'ITEMS'"))
    endpoint = _apply(database, _plain()).sources[0].endpoints[0]
    assert endpoint.notes == ["what is applied no longer compiles: its coverage is not compared"]
