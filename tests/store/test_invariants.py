"""`ingest audit`: silent on sound tables, loud about each promise that is broken on purpose (reliability §2.2)."""

from typing import Any

import pytest
from sqlalchemy import text

from ingest.db import Database
from ingest.settings import Settings
from ingest.states import TaskStatus
from ingest.store.cursors import advance_cursor
from ingest.store.invariants import INVARIANTS, Verdict, audit
from ingest.store.pages import Ending, Reject, write_page
from ingest.store.rows import DatasetWriter
from tests.factories import TTL, lease_all, make_page, make_record, make_snapshot, queue_tasks, start

# promise -> what breaks it, on a database with one finished task of two pages and others queued
BREAKS = {
    "batches-contiguous": "DELETE FROM ing_task_run_batch WHERE batch_no = 1",
    "pages-once": "UPDATE ing_task SET pages_done = 3 WHERE pages_done = 2",
    "records-accounted": """UPDATE ing_task_run_batch SET stats = stats || '{"inserted": 9}' WHERE batch_no = 1""",
    "quarantine-whole": "DELETE FROM ing_quarantine",
    "outbox-whole": "UPDATE ing_outbox SET keys = keys[2:] WHERE cardinality(keys) > 1",
    "fence-forward": "UPDATE ing_task_run SET attempt_no = 7",
    "terminal-is-quiet": "UPDATE ing_task SET lease_owner = 'zombie' WHERE status_code = 'SUCCEEDED'",
    "one-run-at-a-time": "UPDATE ing_task_run SET status_code = 'RUNNING'",
    "open-slices-live": "UPDATE ing_plan_slice SET open = false",
    "coverage-is-its-events": "UPDATE ing_coverage SET covered = covered + '{[2030-01-01, 2031-01-01)}'",
    "success-is-covered": "UPDATE ing_coverage SET covered = '{}'",
    "cursor-not-ahead": "UPDATE ing_cursor SET normalized_instant = now()",
    "traceable:plain_items": "UPDATE data.plain_items SET _batch_id = 999 WHERE provider_id = 'a'",
}


@pytest.fixture
def worked(database: Database, settings: Settings) -> Database:
    """A database with one finished task of two pages, one of them with a reject."""
    snapshot = make_snapshot()
    queue_tasks(database, settings, snapshot)
    lease = lease_all(database)[0]
    run = start(database, lease)
    reject = Reject(item_no=0, key=None, record="{}", path="$.id", reason="the id is missing")
    pages = (
        make_page([make_record("a"), make_record("b")], rejects=[reject]),
        make_page([make_record("c")], number=2, ending=Ending(TaskStatus.SUCCEEDED, covers=True)),
    )
    for number, page in enumerate(pages, start=1):
        with database.transaction() as conn:
            write_page(conn, lease, run, page, DatasetWriter(snapshot), task_page=number, ttl=TTL)
    with database.transaction() as conn:
        advance_cursor(conn, lease.series_id)
        conn.execute(
            text("""INSERT INTO reg_prov_endpoint_def (provenance_code, endpoint_name, role_code, method_code, path,
                                                       dataset_name)
                    VALUES ('plain', 'items', 'SEARCH', 'GET', '/items', 'plain_items')""")
        )
    return database


def _audit(database: Database, *names: str) -> list[Verdict]:
    with database.transaction() as conn:
        return audit(conn, names)


def test_sound_tables_break_no_promise(worked: Database) -> None:
    verdicts = _audit(worked)
    assert [verdict for verdict in verdicts if not verdict.holds] == []
    assert {verdict.name for verdict in verdicts} == BREAKS.keys()


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_promise_is_found_and_said_where(worked: Database, name: str) -> None:
    with worked.transaction() as conn:
        assert conn.execute(text(BREAKS[name])).rowcount > 0
    (verdict,) = _audit(worked, name)
    assert verdict.breaches
    assert any(character.isdigit() for character in verdict.breaches[0])


def test_every_promise_has_a_way_to_break_it() -> None:
    assert {invariant.name for invariant in INVARIANTS} == {name for name in BREAKS if ":" not in name}


def test_an_audit_can_write_nothing(worked: Database) -> None:
    def write_after(conn: Any) -> None:
        audit(conn)
        conn.execute(text("DELETE FROM ing_task"))

    with pytest.raises(Exception, match="read-only"), worked.transaction() as conn:
        write_after(conn)
