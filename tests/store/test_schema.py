"""The schema: migrations go up, down and up again, and leave the dictionary and the defaults behind (A1, A10)."""

import pytest
from sqlalchemy import text

from ingest import states
from ingest.db import Database
from ingest.store.schema import current_revision, head_revision, list_revisions, migrate


def test_every_revision_goes_up_down_and_up_again(database: Database) -> None:
    owner = Database(database.url, owner=True)
    migrate(owner, "base")
    for revision in list_revisions():
        migrate(owner, revision)
    with owner.transaction() as conn:
        tables_once = conn.execute(
            text("SELECT count(*) FROM information_schema.columns WHERE table_schema = 'public'")
        )
        once = tables_once.scalar_one()
    for revision in [*list_revisions()[:-1][::-1], "base"]:
        migrate(owner, revision)
    with owner.transaction() as conn:
        left = conn.execute(
            text("SELECT table_name FROM information_schema.tables WHERE table_schema IN ('public', 'data')")
        ).scalars()
        assert set(left) == {"alembic_version"}
    migrate(owner)
    with owner.transaction() as conn:
        assert current_revision(conn) == head_revision()
        again = conn.execute(
            text("SELECT count(*) FROM information_schema.columns WHERE table_schema = 'public'")
        ).scalar_one()
    assert again == once
    owner.close()


def test_a_second_migrate_changes_nothing(database: Database) -> None:
    assert migrate(database) == (head_revision(), head_revision())


@pytest.mark.parametrize(
    ("type_code", "items"),
    [
        ("http_method", {"GET", "POST"}),
        ("ing_operation", {"HARVEST", "BACKFILL", "UPDATE", "CALL"}),
        ("ing_cursor_type", {"TIME", "ID", "TOKEN"}),
        ("ing_namespace_scope", {"GLOBAL", "EXPR", "CUSTOM"}),
        ("direction", {"FORWARD", "BACKFILL"}),
        ("endpoint_role", {"SEARCH", "DETAIL", "METRICS"}),
        ("task_status", set(states.TaskStatus)),
        ("plan_status", set(states.PlanStatus)),
        ("slice_status", set(states.SliceStatus)),
        ("run_status", set(states.RunStatus)),
        ("batch_status", set(states.BatchStatus)),
    ],
)
def test_dictionary_codes_are_there_after_the_first_migration(
    database: Database, type_code: str, items: set[str]
) -> None:
    with database.transaction() as conn:
        found = conn.execute(
            text("SELECT item_code FROM sys_dict_item WHERE type_code = :t"), {"t": type_code}
        ).scalars()
        assert set(found) == items


def test_every_alias_resolves_to_a_code(database: Database) -> None:
    with database.transaction() as conn:
        lost = conn.execute(
            text("""
            SELECT a.alias FROM sys_dict_item_alias a LEFT JOIN sys_dict_item i USING (type_code, item_code)
             WHERE i.id IS NULL""")
        ).scalars()
        assert list(lost) == []


_ENUMS = {
    ("ing_plan", "status_code"): states.PlanStatus,
    ("ing_plan_slice", "status_code"): states.SliceStatus,
    ("ing_plan_slice", "purpose"): states.SlicePurpose,
    ("ing_task", "status_code"): states.TaskStatus,
    ("ing_task", "operation_code"): states.Operation,
    ("ing_task_run", "status_code"): states.RunStatus,
    ("ing_task_run_batch", "status_code"): states.BatchStatus,
    ("ing_schedule_instance", "result_code"): states.FireResult,
    ("ing_schedule_instance", "trigger_type_code"): states.Trigger,
    ("ing_cursor", "cursor_type_code"): states.CursorType,
    ("ing_cursor", "namespace_scope_code"): states.NamespaceScope,
    ("ing_cursor_event", "direction_code"): states.Direction,
    ("ing_cursor_event", "kind"): states.CursorEventKind,
    ("ing_hold", "scope"): states.HoldScope,
    ("ing_hold", "kind"): states.HoldKind,
    ("ing_process", "kind"): states.ProcessKind,
}


def test_every_state_enum_equals_its_check_constraint(database: Database) -> None:
    with database.transaction() as conn:
        for (table, column), enum in _ENUMS.items():
            definition = conn.execute(
                text("""
                SELECT pg_get_constraintdef(c.oid) FROM pg_constraint c
                  JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey)
                 WHERE c.conrelid = to_regclass(:t) AND c.contype = 'c' AND a.attname = :c"""),
                {"t": table, "c": column},
            ).scalar_one()
            found = {part.split("'")[1] for part in definition.split("ARRAY[")[1].split(",")}
            assert found == set(enum), f"{table}.{column}"
