"""Parents: the rows of a dataset that another endpoint is partitioned by, read in bounded pages (D9).

Invariant: keyset order over the values themselves, bytewise, so that a reader goes on where it stopped whatever was
written between; rows the source deleted are no parents.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import text

from ingest.db import Connection, quote

_COLUMNS = text("SELECT column_name FROM information_schema.columns WHERE table_schema = 'data' AND table_name = :name")


@dataclass(frozen=True, slots=True)
class Parent:
    """One combination of the fields asked for, and when a row that has it last changed."""

    values: tuple[str, ...]
    changed_at: datetime


def find_missing(conn: Connection, dataset: str, columns: Sequence[str]) -> list[str]:
    """Return the columns the dataset has not; all of them if there is no such table."""
    there = set(conn.execute(_COLUMNS, {"name": dataset}).scalars())
    return [column for column in columns if column not in there]


def list_parents(
    conn: Connection,
    dataset: str,
    fields: Sequence[str],
    *,
    where: Mapping[str, Any],
    start: Sequence[str] | None,
    inclusive: bool = False,
    limit: int = 500,
) -> list[Parent]:
    """Return the next parents behind `start` (or at it), in keyset order."""
    columns = [f'{quote(field)}::text COLLATE "C"' for field in fields]
    conditions = ["_deleted_at IS NULL", *(f"{column} <> ''" for column in columns)]
    values: dict[str, Any] = {"limit": limit}
    for number, (name, wanted) in enumerate(where.items()):
        conditions.append(f"{quote(name)}::text = ANY(CAST(:w{number} AS text[]))")
        values[f"w{number}"] = [_text(each) for each in (wanted if isinstance(wanted, list) else [wanted])]
    if start is not None:
        places = ", ".join(f"CAST(:s{number} AS text)" for number in range(len(fields)))
        conditions.append(f"({', '.join(columns)}) {'>=' if inclusive else '>'} ({places})")
        values |= {f"s{number}": value for number, value in enumerate(start)}
    listed = ", ".join(columns)
    statement = (
        f"SELECT {listed}, max(_refreshed_at) FROM data.{quote(dataset)} WHERE {' AND '.join(conditions)}"
        f" GROUP BY {listed} ORDER BY {listed} LIMIT :limit"
    )
    return [Parent(tuple(row[:-1]), row[-1]) for row in conn.execute(text(statement), values)]


def _text(value: Any) -> str:
    """Return a value as PostgreSQL's ::text writes the column's."""
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
