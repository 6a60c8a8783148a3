"""Overrides: what people changed about a schedule at run time, beside what its file declares (G3).

Invariant: NULL means "as the file says"; an apply never writes here.
"""

from datetime import datetime

from sqlalchemy import text

from ingest.db import Connection

_OVERRIDE = text("""
    UPDATE ing_schedule_state
       SET every_s = coalesce(CAST(:every AS numeric), every_s),
           next_run_at = coalesce(CAST(:next AS timestamptz), next_run_at),
           enabled = coalesce(CAST(:enabled AS boolean), enabled),
           next_fire_at = coalesce(CAST(:fire AS timestamptz), next_fire_at),
           updated_at = now(), updated_by = :actor, reason = :reason
     WHERE schedule_code = :code
""")


def override(
    conn: Connection,
    code: str,
    *,
    actor: str,
    reason: str,
    every_s: float | None = None,
    next_run_at: datetime | None = None,
    enabled: bool | None = None,
    next_fire_at: datetime | None = None,
) -> None:
    """Store what a person changed; what is None stays as it is."""
    values = {"every": every_s, "next": next_run_at, "enabled": enabled, "fire": next_fire_at}
    conn.execute(_OVERRIDE, values | {"code": code, "actor": actor, "reason": reason})


_FORGET = text("""
    UPDATE ing_schedule_state SET every_s = NULL, next_run_at = NULL, enabled = NULL, updated_at = now(),
           updated_by = :actor, reason = :reason
     WHERE schedule_code = :code
""")


def forget_overrides(conn: Connection, code: str, *, actor: str, reason: str) -> None:
    """Let the file's values hold again."""
    conn.execute(_FORGET, {"code": code, "actor": actor, "reason": reason})
