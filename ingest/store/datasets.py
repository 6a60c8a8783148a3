"""Dataset tables: `data.<source>_<endpoint>`, made and widened by `registry apply` alone (DESIGN §4).

Invariant: columns are only added, nullable; never renamed, dropped or retyped in place, so that a running snapshot
that names its columns keeps working.
"""

import time
from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from ingest.db import Connection, Database, quote
from ingest.errors import OperatorError, SpecInvalid
from ingest.spec.snapshot import Mapping, Snapshot

# The types people write -> (PostgreSQL's type, its array for binding, how information_schema spells it)
SQL_TYPE = {
    "text": "text",
    "int": "bigint",
    "float": "double precision",
    "numeric": "numeric",
    "bool": "boolean",
    "timestamp": "timestamp with time zone",
    "date": "date",
    "json": "jsonb",
    "partial_date": "text",
}

# Kept by us on every row; names that begin with '_' cannot be a user's.
SYSTEM_COLUMNS = {
    "_batch_id": "bigint NOT NULL",
    "_proto_hash": "text NOT NULL",
    "_content_hash": "text",
    "_fetched_at": "timestamp with time zone NOT NULL",
    "_first_seen_at": "timestamp with time zone NOT NULL",
    "_refreshed_at": "timestamp with time zone NOT NULL",
    "_deleted_at": "timestamp with time zone",
}


def table_name(mapping: Mapping) -> str:
    """Return the quoted name of the dataset's table."""
    return f"data.{quote(mapping.dataset)}"


def identity_type(kind: str) -> str:
    """Return the type of an identity column; text keys compare by bytes, the order rows are locked in."""
    return 'text COLLATE "C"' if kind == "text" else SQL_TYPE[kind]


@dataclass(frozen=True, slots=True)
class _Wanted:
    name: str
    type: str
    identity: bool = False


def _wanted_columns(mapping: Mapping) -> list[_Wanted]:
    columns = [_Wanted(part.column, SQL_TYPE[part.type], identity=True) for part in mapping.identity]
    taken = {column.name for column in columns}
    if mapping.updated_at is not None:
        columns.append(_Wanted("updated_at", SQL_TYPE["timestamp"]))
    columns += [_Wanted(c.name, SQL_TYPE[c.type]) for c in mapping.columns if c.name not in taken]
    if mapping.payload != "none":
        columns.append(_Wanted("payload", mapping.payload))
    return columns


_COLUMNS = text("""
    SELECT column_name, data_type FROM information_schema.columns
     WHERE table_schema = 'data' AND table_name = :name
""")

_KEY = text("""
    SELECT a.attname FROM pg_index i JOIN LATERAL unnest(i.indkey) WITH ORDINALITY AS k(attnum, position) ON true
      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum
     WHERE i.indrelid = to_regclass(:qualified) AND i.indisprimary ORDER BY k.position
""")


def plan_table(conn: Connection, snapshot: Snapshot) -> list[str]:
    """Return the statements that bring the dataset's table up to the mapping; empty if it is.

    Raises `SpecInvalid` for what cannot be done in place: another type or another identity.
    """
    mapping = snapshot.mapping
    existing = {name: kind for name, kind in conn.execute(_COLUMNS, {"name": mapping.dataset}).all()}
    wanted = _wanted_columns(mapping)
    if not existing:
        return [_create(mapping, wanted)]
    problems = []
    key = [row[0] for row in conn.execute(_KEY, {"qualified": table_name(mapping)})]
    declared = [part.column for part in mapping.identity]
    if key != declared:
        problems.append(
            f"{snapshot.name}: records.id: data.{mapping.dataset} is keyed by {', '.join(key)}, the file by "
            f"{', '.join(declared)}: an identity cannot change in place; use a new endpoint name"
        )
    statements = []
    for column in wanted:
        kind = existing.get(column.name)
        if kind is None:
            statements.append(f"ALTER TABLE {table_name(mapping)} ADD COLUMN {quote(column.name)} {column.type}")
        elif kind != column.type:
            problems.append(
                f"{snapshot.name}: columns.{column.name}: is {kind} in the database and {column.type} in the file: "
                f"a type cannot change in place; give the column a new name"
            )
    if problems:
        raise SpecInvalid(problems)
    return statements


def _create(mapping: Mapping, wanted: list[_Wanted]) -> str:
    identity = {part.column: part for part in mapping.identity}
    lines = []
    for column in wanted:
        if column.identity:
            lines.append(f"    {quote(column.name)} {identity_type(identity[column.name].type)} NOT NULL")
        else:
            lines.append(f"    {quote(column.name)} {column.type}")
    lines += [f"    {quote(name)} {kind}" for name, kind in SYSTEM_COLUMNS.items()]
    lines.append(f"    PRIMARY KEY ({', '.join(quote(part.column) for part in mapping.identity)})")
    return f"CREATE TABLE {table_name(mapping)} (\n" + ",\n".join(lines) + "\n)"


def apply_table(database: Database, statements: list[str], *, attempts: int = 40) -> None:
    """Run the statements in one transaction of their own, giving way to pages being written.

    ALTER queues behind an open page and everybody queues behind ALTER (1.5 s measured); with a 300 ms lock timeout
    and a retry the others wait 0.3 s at most.
    """
    for attempt in range(1, attempts + 1):
        try:
            with database.transaction() as conn:
                conn.exec_driver_sql("SET LOCAL lock_timeout = '300ms'")
                for statement in statements:
                    conn.exec_driver_sql(statement)
                return
        except DBAPIError as error:
            state = getattr(error.orig, "sqlstate", None)
            if state == "42P07" or state == "42701":  # another apply made the same table or column first
                return
            if state != "55P03":
                raise
            if attempt == attempts:
                raise OperatorError(f"the table stayed locked: {statements[0].splitlines()[0]}") from error
            time.sleep(0.2)
