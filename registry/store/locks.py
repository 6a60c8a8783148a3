"""One apply per source at a time, across processes and hosts."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from ingest.db import Database
from ingest.errors import RefusedByState

_LOCK = text("SELECT pg_advisory_lock(hashtextextended('registry:' || :source, 0))")
_UNLOCK = text("SELECT pg_advisory_unlock(hashtextextended('registry:' || :source, 0))")


@contextmanager
def hold_sources(database: Database, sources: Iterable[str]) -> Iterator[None]:
    """Hold the sources until the block ends; wait as long as the lock timeout, then raise `RefusedByState`.

    A session lock on a connection of its own, idle outside any transaction: the block runs several transactions (DDL is
    committed before the rows), and one open around them all would meet the idle-in-transaction timeout.
    """
    ordered = sorted(set(sources))  # one order for all: two applies of the same sources queue, never deadlock
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as conn:
        held: list[str] = []
        try:
            for source in ordered:
                try:
                    conn.execute(_LOCK, {"source": source})
                except OperationalError as error:
                    if getattr(error.orig, "sqlstate", None) != "55P03":
                        raise
                    raise RefusedByState(f"another apply of '{source}' is running: try again later") from error
                held.append(source)
            yield
        finally:
            for source in held:
                conn.execute(_UNLOCK, {"source": source})
