"""Comparing what was stored with what the simulator knows to be true."""

from datetime import UTC, datetime

from ingest.db import Database
from simulator.server import Simulator
from tests.flow.processes import rows


def stored_records(database: Database, table: str) -> dict[str, datetime]:
    """Return id -> updated_at as stored."""
    return dict(rows(database, f'SELECT provider_id, updated_at FROM data."{table}"'))


def true_records(simulator: Simulator, api: str) -> dict[str, datetime]:
    """Return id -> updated_at as the simulator knows it."""
    records = simulator.truth(api, full=True)["records"]
    return {key: datetime.fromisoformat(record["updated_at"]).astimezone(UTC) for key, record in records.items()}


def assert_same(database: Database, simulator: Simulator, api: str, table: str) -> None:
    """Nothing lost, nothing invented, every version the newest."""
    stored, true = stored_records(database, table), true_records(simulator, api)
    lost, invented = true.keys() - stored.keys(), stored.keys() - true.keys()
    old = {key for key in true.keys() & stored.keys() if stored[key] != true[key]}
    assert not lost, f"{len(lost)} lost, e.g. {sorted(lost)[:3]}"
    assert not invented, f"{len(invented)} invented, e.g. {sorted(invented)[:3]}"
    assert not old, f"{len(old)} of an old version, e.g. {sorted(old)[:3]}"


def assert_ledger_sound(database: Database) -> None:
    """Every batch once and without holes, every record accounted for, coverage and cursor the fold of their events."""
    holes = rows(
        database,
        "SELECT run_id FROM ing_task_run_batch GROUP BY run_id HAVING count(*) <> max(batch_no) OR min(batch_no) <> 1",
    )
    assert holes == []
    pages = rows(
        database,
        """SELECT t.id FROM ing_task t
             LEFT JOIN ing_task_run_batch b ON b.task_id = t.id AND b.status_code = 'SUCCEEDED'
            GROUP BY t.id HAVING t.pages_done <> count(b.id) OR count(b.id) <> coalesce(max(b.task_page_no), 0)""",
    )
    assert pages == []
    unbalanced = rows(
        database,
        """SELECT id, stats FROM ing_task_run_batch WHERE status_code = 'SUCCEEDED'
             AND (stats ->> 'itemsCount')::int <> (SELECT sum((stats ->> part)::int) FROM unnest(ARRAY[
                 'inserted', 'updated', 'unchanged', 'stale', 'duplicate', 'filtered', 'quarantined']) AS part)""",
    )
    assert unbalanced == []
    unfolded = rows(
        database,
        """SELECT c.series_id FROM ing_coverage c
            WHERE c.covered IS DISTINCT FROM (SELECT range_agg(span) FROM ing_cursor_event e
                                               WHERE e.series_id = c.series_id AND e.kind = 'WINDOW')""",
    )
    assert unfolded == []
    behind = rows(
        database,
        """SELECT s.id, k.normalized_instant, upper(r) FROM ing_series s JOIN ing_coverage c ON c.series_id = s.id
            CROSS JOIN LATERAL unnest(c.covered) r LEFT JOIN ing_cursor k ON k.series_id = s.id
            WHERE r @> s.anchor AND k.normalized_instant IS DISTINCT FROM upper(r)""",
    )
    assert behind == []
    assert rows(database, "SELECT id FROM ing_task_run WHERE status_code = 'RUNNING'") == []
    assert rows(database, "SELECT id FROM ing_plan_slice WHERE open") == []
