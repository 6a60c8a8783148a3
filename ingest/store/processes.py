"""Who is alive: one row per daemon process, touched by its heartbeat."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from ingest.db import Connection
from ingest.states import ProcessKind

_ALIVE = "stopped_at IS NULL AND last_seen_at > now() - interval '30 seconds'"

_BEAT = text("""
    INSERT INTO ing_process (boot_id, kind, host, pid, capacity, version)
    VALUES (:boot_id, :kind, :host, :pid, :capacity, :version)
    ON CONFLICT (boot_id) DO UPDATE SET last_seen_at = now(), capacity = excluded.capacity, stopped_at = NULL
""")

_STOP = text("UPDATE ing_process SET stopped_at = now(), last_seen_at = now() WHERE boot_id = :boot_id")

_LIST = text(f"""
    SELECT boot_id, kind, host, pid, capacity, version, started_at, last_seen_at, {_ALIVE} AS alive
      FROM ing_process WHERE stopped_at IS NULL OR stopped_at > now() - interval '1 hour'
     ORDER BY alive DESC, started_at DESC LIMIT 200
""")

_PRUNE = text("DELETE FROM ing_process WHERE last_seen_at < now() - interval '7 days'")


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """A daemon, alive or recently gone."""

    boot_id: str
    kind: str
    host: str
    pid: int
    capacity: int
    version: str
    started_at: datetime
    last_seen_at: datetime
    alive: bool


def beat(
    conn: Connection, *, boot_id: str, kind: ProcessKind, host: str, pid: int, capacity: int, version: str
) -> None:
    """Say that the process is alive."""
    conn.execute(
        _BEAT,
        {
            "boot_id": boot_id,
            "kind": kind,
            "host": host,
            "pid": pid,
            "capacity": capacity,
            "version": version,
        },
    )


def mark_stopped(conn: Connection, boot_id: str) -> None:
    """Say that the process ended on purpose."""
    conn.execute(_STOP, {"boot_id": boot_id})


def list_processes(conn: Connection) -> list[Process]:
    """Return daemons, the living first."""
    return [Process(**row._mapping) for row in conn.execute(_LIST)]


def prune(conn: Connection) -> None:
    """Forget daemons not seen for a week."""
    conn.execute(_PRUNE)
