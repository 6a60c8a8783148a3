"""Comparing what was stored with what the simulator knows to be true."""

from datetime import UTC, datetime

from ingest.db import Database
from ingest.store.invariants import audit
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
    """Every promise of `ingest audit` holds, cursors have caught up, and nothing is left in anyone's hands."""
    with database.transaction() as conn:
        broken = [verdict for verdict in audit(conn) if not verdict.holds]
    assert broken == []
    behind = rows(
        database,
        """SELECT s.id, k.normalized_instant, upper(r) FROM ing_series s JOIN ing_coverage c ON c.series_id = s.id
            CROSS JOIN LATERAL unnest(c.covered) r LEFT JOIN ing_cursor k ON k.series_id = s.id
            WHERE r @> s.anchor AND k.normalized_instant IS DISTINCT FROM upper(r)""",
    )
    assert behind == []
    assert rows(database, "SELECT id FROM ing_task_run WHERE status_code = 'RUNNING'") == []
    assert rows(database, "SELECT id FROM ing_plan_slice WHERE open") == []
