"""The database: one engine per process, every connection with timeouts, transactions that are short.

Invariant: a function that takes a `Connection` never commits; only `Database.transaction` does.
"""

import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg
from sqlalchemy import Connection, Engine, create_engine
from sqlalchemy.exc import DBAPIError, OperationalError

from ingest.errors import DatabaseAway, OperatorError

__all__ = ["Connection", "Database", "pipeline", "quote", "raw_connection"]

# The lease is 30 s: nothing that holds a row lock may live longer than a third of it.
_TIMEOUTS = {
    "statement_timeout": "30s",
    "lock_timeout": "5s",
    "idle_in_transaction_session_timeout": "10s",
    "client_connection_check_interval": "5s",
    "timezone": "UTC",
    "search_path": "public",
    "default_transaction_isolation": "read committed",
}
T = TypeVar("T")

_MINIMUM_VERSION = 150000
_RETRIED = {"40P01", "40001"}  # deadlock, serialization: repeat the whole transaction from memory


def quote(identifier: str) -> str:
    """Quote an identifier for SQL; the only way a name from a source file enters a statement."""
    if "\x00" in identifier:
        raise ValueError("an identifier cannot contain NUL")
    return '"' + identifier.replace('"', '""') + '"'


def raw_connection(conn: Connection) -> psycopg.Connection[Any]:
    """Return the psycopg connection underneath, for COPY, pipelines and binary arrays, same transaction."""
    driver: psycopg.Connection[Any] = conn.connection.driver_connection  # type: ignore[assignment]
    return driver


class BinaryArray:
    """An array parameter already in PostgreSQL's binary form (`ingest.store.arrays` builds them)."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class _BinaryArrayDumper(psycopg.adapt.Dumper):
    """Passes the array on; its type is the one the statement casts it to."""

    format = psycopg.pq.Format.BINARY

    def dump(self, obj: BinaryArray) -> bytes:
        return obj.data


# here, because an engine copies the adapters when it is made
psycopg.adapters.register_dumper(BinaryArray, _BinaryArrayDumper)


class _Pipeline(psycopg.Pipeline):
    """psycopg's pipeline, ended by its Sync alone.

    psycopg sends a Flush after it, and PostgreSQL disarms idle_in_transaction_session_timeout on any message that is
    not answered by ReadyForQuery: a worker frozen there would keep its task's row lock for ever (measured).
    """

    def _exit_gen(self) -> Any:
        self._enqueue_sync()
        yield from self._communicate_gen()
        yield from self._fetch_gen(flush=False)


@contextmanager
def pipeline(raw: psycopg.Connection[Any]) -> Iterator[None]:
    """Send the block's statements in one round trip; their results are there after it."""
    raw._pipeline = line = _Pipeline(raw)
    try:
        with line:
            yield
    finally:
        raw._pipeline = None


class Database:
    """A pool of connections to one PostgreSQL."""

    def __init__(self, url: str, *, application: str = "ingest", pool_size: int = 5, owner: bool = False) -> None:
        """`owner` lifts the statement timeout for migrations, which may build indexes."""
        options = dict(_TIMEOUTS, application_name=application)
        if owner:
            options |= {"statement_timeout": "0", "idle_in_transaction_session_timeout": "0"}
        flags = " ".join(f"-c {name}={value.replace(' ', chr(92) + ' ')}" for name, value in options.items())
        self.url = _with_driver(url)
        try:
            self.engine: Engine = create_engine(
                self.url,
                pool_size=pool_size,
                max_overflow=5,
                pool_timeout=20,
                pool_pre_ping=False,  # the first statement finds a dead connection; `transaction` empties the pool
                connect_args={
                    "options": flags,
                    "connect_timeout": 5,
                    "keepalives_idle": 10,
                    "keepalives_interval": 5,
                    "keepalives_count": 3,
                    "tcp_user_timeout": 20_000,
                },
            )
        except Exception as error:
            raise OperatorError(f"INGEST_DATABASE_URL is not a PostgreSQL address: {error}") from error

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open one transaction; commit at the end of the block, roll back if it raises."""
        with self.engine.connect() as conn:
            conn.begin()
            try:
                yield conn
                conn.commit()
            except BaseException as error:
                if is_connection_lost(error):
                    # rolling back on a dead connection would only hide the error; its neighbours in the pool died too
                    conn.invalidate()
                    self.engine.dispose()
                else:
                    conn.rollback()
                raise

    def repeat(self, work: Callable[[Connection], T], attempts: int = 5) -> T:
        """Run `work` in a transaction of its own; repeat it whole after a deadlock or serialization failure."""
        for attempt in range(1, attempts + 1):
            try:
                with self.transaction() as conn:
                    return work(conn)
            except (DBAPIError, psycopg.Error) as error:
                if sqlstate_of(error) not in _RETRIED or attempt == attempts:
                    raise
        raise AssertionError("unreachable")

    def check(self) -> str:
        """Return the server's version; raise `DatabaseAway` or `OperatorError` in one clear sentence."""
        try:
            with self.engine.connect() as conn:
                number = int(conn.exec_driver_sql("SHOW server_version_num").scalar_one())
                version = str(conn.exec_driver_sql("SHOW server_version").scalar_one())
        except OperationalError as error:
            raise DatabaseAway(f"no database at {redact_url(self.url)}: {_first_line(error)}") from error
        if number < _MINIMUM_VERSION:
            raise OperatorError(f"PostgreSQL {version} is too old: 15 or newer is needed")
        return version

    def wait(self, *, stop: Callable[[float], bool], say: Callable[[str], None]) -> bool:
        """Keep trying until the database answers (G1), saying so; False if `stop` said to end."""
        delay, started = 0.5, time.monotonic()
        while True:
            try:
                self.check()
                return True
            except DatabaseAway as error:
                say(f"waiting for the database ({time.monotonic() - started:.0f} s): {error}")
            if stop(delay):
                return False
            delay = min(delay * 2, 10.0)

    def close(self) -> None:
        """Close every pooled connection."""
        self.engine.dispose()


def _with_driver(url: str) -> str:
    return re.sub(r"^postgres(ql)?://", "postgresql+psycopg://", url)


def redact_url(url: str) -> str:
    """Return the address without its password."""
    return re.sub(r"(://[^:/@]*):[^@]*@", r"\1:***@", url)


def _first_line(error: Exception) -> str:
    return str(getattr(error, "orig", error)).strip().splitlines()[0]


def sqlstate_of(error: BaseException) -> str | None:
    """Return PostgreSQL's code for the error, whichever library wrapped it."""
    origin = error.orig if isinstance(error, DBAPIError) else error
    return getattr(origin, "sqlstate", None)


def is_connection_lost(error: BaseException) -> bool:
    """Say whether the connection broke, so that the fate of a commit is unknown."""
    origin = error.orig if isinstance(error, DBAPIError) else error
    if not isinstance(origin, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    # 57014 (statement timeout), 55P03 (lock timeout) and 53xxx leave the session alive; 57P0x end it
    state = origin.sqlstate
    return state is None or state.startswith("08") or state in {"57P01", "57P02", "57P03", "25P03", "57P05"}
