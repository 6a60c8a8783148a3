"""reg_* rows: read in one statement however much an endpoint declares (A8), replaced as a whole by an apply.

Invariant: a row in memory holds declared columns only, in plain JSON; keys, stamps and NULLs stay in the database. A
function here never touches a run-time table.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import msgspec
from sqlalchemy import text

from ingest.db import Connection, quote
from registry.expand import TABLES, Row, Rows

_OURS = ("id", "created_at", "updated_at", "updated_by")
_INSTANTS = ("start_at",)


def _select(table: str) -> str:
    by_endpoint = "" if table == "reg_provenance" else " AND t.endpoint_name = ANY(:endpoints)"
    return f"SELECT '{table}', t.id, to_jsonb(t) FROM {quote(table)} t WHERE t.provenance_code = :source{by_endpoint}"


_READ_ENDPOINT = text(" UNION ALL ".join(_select(table) for table in TABLES))
_READ_SOURCE = text(" UNION ALL ".join(_select(table).split(" AND ")[0] for table in TABLES))


def read_source_rows(conn: Connection, source: str) -> Rows:
    """Return every row of a source by table; all lists are empty if there is no such source."""
    return _collect(conn.execute(_READ_SOURCE, {"source": source}).all())


def read_endpoint_rows(conn: Connection, source: str, endpoint: str) -> Rows:
    """Return the rows that decide one endpoint: its own and those of the whole source."""
    return _collect(conn.execute(_READ_ENDPOINT, {"source": source, "endpoints": ["", endpoint]}).all())


def _collect(found: Iterable[Any]) -> Rows:
    rows: Rows = {table: [] for table in TABLES}
    for table, _, row in sorted(found, key=lambda line: int(line[1])):
        rows[table].append(_plain(row))
    return rows


def _plain(row: Row) -> Row:
    plain: Row = {name: value for name, value in row.items() if value is not None and name not in _OURS}
    for name in _INSTANTS:
        if name in plain:
            plain[name] = datetime.fromisoformat(str(plain[name])).astimezone(UTC).isoformat()
    return plain


def write_rows(conn: Connection, source: str, rows: Rows, *, revision: int, actor: str) -> None:
    """Replace everything declared about a source.

    An endpoint no longer declared is gone from reg_* (its revisions keep it); its plans, coverage and table stay.
    """
    for table in TABLES:
        conn.execute(text(f"DELETE FROM {quote(table)} WHERE provenance_code = :source"), {"source": source})
    for table in TABLES:
        for row in rows[table]:
            more: Row = {"revision": revision, "updated_by": actor} if table == "reg_provenance" else {}
            _insert(conn, table, row | more)


def _insert(conn: Connection, table: str, row: Row) -> None:
    # PostgreSQL itself turns the JSON into the column's types (arrays, jsonb, numeric, timestamptz).
    columns = ", ".join(quote(name) for name in row)
    values = {"row": msgspec.json.encode(row).decode()}
    target = quote(table)
    populate = f"SELECT {columns} FROM jsonb_populate_record(CAST(NULL AS {target}), CAST(:row AS jsonb))"
    conn.execute(text(f"INSERT INTO {target} ({columns}) {populate}"), values)


@dataclass(frozen=True, slots=True)
class EndpointName:
    """One declared endpoint."""

    provenance_code: str
    endpoint_name: str
    dataset_name: str
    enabled: bool
    revision: int

    @property
    def name(self) -> str:
        """source.endpoint, as people write it."""
        return f"{self.provenance_code}.{self.endpoint_name}"


_LIST = text("""
    SELECT e.provenance_code, e.endpoint_name, e.dataset_name, e.enabled AND p.enabled, p.revision
      FROM reg_prov_endpoint_def e JOIN reg_provenance p USING (provenance_code)
     ORDER BY e.provenance_code, e.endpoint_name LIMIT 10000
""")


def list_endpoints(conn: Connection) -> list[EndpointName]:
    """Return every declared endpoint, by name."""
    return [EndpointName(*row) for row in conn.execute(_LIST)]


_OWNERS = text("""
    SELECT dataset_name, provenance_code || '.' || endpoint_name FROM reg_prov_endpoint_def
     WHERE dataset_name = ANY(:names) AND provenance_code <> :source
""")


def find_dataset_owners(conn: Connection, source: str, names: list[str]) -> dict[str, str]:
    """Return the tables among `names` that belong to endpoints of other sources, and whose they are."""
    return {row[0]: row[1] for row in conn.execute(_OWNERS, {"names": names, "source": source})}
