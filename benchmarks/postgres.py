"""The PostgreSQL everybody is measured on: one embedded server of its own, default durability, a database per run."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psycopg

from ingest.embedded import server

_SHOWN = ("server_version", "fsync", "synchronous_commit", "full_page_writes", "shared_buffers", "max_wal_size")


@dataclass(frozen=True, slots=True)
class Postgres:
    """A running server."""

    libpq: str
    pid: int

    def address(self, database: str) -> str:
        """Return a database's libpq address."""
        return self.libpq.replace("/ingest?", f"/{database}?")

    def settings(self) -> dict[str, str]:
        """Return the settings that decide what the figures mean."""
        with psycopg.connect(self.libpq) as conn:
            return {name: str(conn.execute(f"SHOW {name}").fetchone()[0]) for name in _SHOWN}  # type: ignore[index]


@contextmanager
def run_postgres(directory: Path) -> Iterator[Postgres]:
    """Run a server in this directory and remove it afterwards."""
    started = server.start(directory)
    try:
        found = Postgres(started.libpq, started.pid)
        durable = found.settings()
        assert durable["fsync"] == durable["synchronous_commit"] == durable["full_page_writes"] == "on", durable
        yield found
    finally:
        server.remove(directory)


@contextmanager
def fresh_database(postgres: Postgres, name: str) -> Iterator[str]:
    """Make a database and drop it afterwards, so that no vacuum of one run falls into the next; yield its address."""
    with psycopg.connect(postgres.libpq, autocommit=True) as conn:
        conn.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        conn.execute(f'CREATE DATABASE "{name}"')
        try:
            yield postgres.address(name)
        finally:
            conn.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
