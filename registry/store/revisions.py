"""reg_revision: every apply of a source, with its text, its rows, what changed, by whom and why. Append-only (A2)."""

from dataclasses import dataclass
from datetime import datetime

import msgspec
from pydantic import JsonValue
from sqlalchemy import text

from ingest.db import Connection
from ingest.spec.canonical import hash_text
from registry.expand import TABLES, Rows


@dataclass(frozen=True, slots=True)
class Revision:
    """One line of a source's history."""

    revision: int
    document_hash: str
    changes: list[dict[str, JsonValue]]
    reason: str
    changed_by: str
    changed_at: datetime


_RECORD = text("""
    INSERT INTO reg_revision (provenance_code, revision, document, document_hash, rows, changes, reason, changed_by)
    VALUES (:source, :revision, :document, :hash, CAST(:rows AS jsonb), CAST(:changes AS jsonb), :reason, :actor)
""")


def record_revision(
    conn: Connection,
    source: str,
    *,
    revision: int,
    document: str,
    rows: Rows,
    changes: list[dict[str, JsonValue]],
    actor: str,
    reason: str,
) -> None:
    """Write one line of the history, in the transaction of the rows it describes."""
    conn.execute(
        _RECORD,
        {
            "source": source,
            "revision": revision,
            "document": document,
            "hash": hash_text(document.encode()),
            "rows": msgspec.json.encode(rows).decode(),
            "changes": msgspec.json.encode(changes).decode(),
            "reason": reason,
            "actor": actor,
        },
    )


_LATEST = text("SELECT coalesce(max(revision), 0) FROM reg_revision WHERE provenance_code = :source")


def latest_revision(conn: Connection, source: str) -> int:
    """Return the number of the last apply, 0 before the first."""
    return int(conn.execute(_LATEST, {"source": source}).scalar_one())


_LIST = text("""
    SELECT revision, document_hash, changes, reason, changed_by, changed_at FROM reg_revision
     WHERE provenance_code = :source ORDER BY revision DESC LIMIT :limit
""")


def list_revisions(conn: Connection, source: str, *, limit: int = 50) -> list[Revision]:
    """Return the history of a source, newest first."""
    return [Revision(*row) for row in conn.execute(_LIST, {"source": source, "limit": limit})]


_GET = text("SELECT document, rows FROM reg_revision WHERE provenance_code = :source AND revision = :revision")


def find_applied(conn: Connection, source: str, revision: int) -> tuple[str, Rows] | None:
    """Return the file's text and the rows as they were applied, None if there was no such revision."""
    found = conn.execute(_GET, {"source": source, "revision": revision}).one_or_none()
    if found is None:
        return None
    # a table added by a later release had no rows then
    return str(found.document), {table: found.rows.get(table, []) for table in TABLES}
