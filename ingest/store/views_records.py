"""Views of records: those in quarantine, and what a dataset table holds as one comparable hash (read-only, bounded)."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from ingest.db import Connection, quote


@dataclass(frozen=True, slots=True, kw_only=True)
class QuarantineView:
    """A record that could not be stored, with where it came from; `record` is its text as it was sent."""

    id: int
    source: str
    endpoint: str
    status: str
    record_key: str | None
    field_path: str
    reason: str
    record: str
    run_id: int
    batch_id: int
    batch_no: int | None
    item_no: int
    created_at: datetime
    now: datetime

    @property
    def name(self) -> str:
        """source.endpoint, as people write it."""
        return f"{self.source}.{self.endpoint}"


_QUARANTINE = """
    SELECT q.id, q.provenance_code AS source, q.endpoint_name AS endpoint, q.status_code AS status, q.record_key,
           q.field_path, q.reason, q.record, q.run_id, q.batch_id, b.batch_no, q.item_no, q.created_at, now() AS now
      FROM ing_quarantine q LEFT JOIN ing_task_run_batch b ON b.id = q.batch_id
"""

_LIST = text(f"""{_QUARANTINE}
     WHERE q.status_code = 'OPEN' AND (CAST(:source AS text) IS NULL OR q.provenance_code = :source)
       AND (CAST(:endpoint AS text) IS NULL OR q.endpoint_name = :endpoint)
     ORDER BY q.id DESC LIMIT :limit
""")

_ONE = text(f"{_QUARANTINE} WHERE q.id = :id")


def list_quarantine(
    conn: Connection, *, source: str | None = None, endpoint: str | None = None, limit: int = 20
) -> list[QuarantineView]:
    """Return open records, newest first."""
    values = {"source": source, "endpoint": endpoint, "limit": limit}
    return [QuarantineView(**row._mapping) for row in conn.execute(_LIST, values)]


def find_quarantined(conn: Connection, quarantine_id: int) -> QuarantineView | None:
    """Return one record in quarantine, or None."""
    row = conn.execute(_ONE, {"id": quarantine_id}).one_or_none()
    return None if row is None else QuarantineView(**row._mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """What an endpoint's ledger adds up to over its whole life."""

    requests: int
    pages: int
    inserted: int
    updated: int
    quarantined: int
    throttled: int


_TOTALS = text("""
    SELECT (count(*) + coalesce(sum((stats ->> 'retryCount')::bigint), 0))::bigint AS requests,
           count(*) FILTER (WHERE status_code = 'SUCCEEDED') AS pages,
           coalesce(sum((stats ->> 'inserted')::bigint), 0)::bigint AS inserted,
           coalesce(sum((stats ->> 'updated')::bigint), 0)::bigint AS updated,
           coalesce(sum((stats ->> 'quarantined')::bigint), 0)::bigint AS quarantined,
           coalesce(sum((stats ->> '429Count')::bigint), 0)::bigint AS throttled
      FROM ing_task_run_batch WHERE provenance_code = :source AND endpoint_name = :endpoint
""")


def sum_ledger(conn: Connection, *, source: str, endpoint: str) -> Totals:
    """Add up the endpoint's ledger; reads all of it, so not for a screen that refreshes."""
    return Totals(**conn.execute(_TOTALS, {"source": source, "endpoint": endpoint}).one()._mapping)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """A dataset as a count and a hash over its lines `provider_id updated_at\\n` in byte order."""

    count: int
    sha256: str


# The same lines the simulator hashes, so that equal hashes mean equal records and versions.
_LINE = """provider_id || ' ' || to_char(updated_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')"""


def hash_dataset(conn: Connection, dataset: str) -> Content:
    """Hash a dataset keyed by provider_id; reads all of it."""
    row = conn.execute(
        text(f"""
            SELECT count(*) AS count,
                   encode(sha256(convert_to(coalesce(string_agg({_LINE}, E'\\n' ORDER BY provider_id COLLATE "C")
                                                     || E'\\n', ''), 'UTF8')), 'hex') AS sha256
              FROM data.{quote(dataset)}
        """)
    ).one()
    return Content(**row._mapping)


def list_versions(conn: Connection, dataset: str) -> dict[str, datetime]:
    """Return every record's key and version; for data sets of demo size."""
    rows = conn.execute(text(f"SELECT provider_id, updated_at FROM data.{quote(dataset)} LIMIT 1000000"))
    return {row[0]: row[1] for row in rows}
