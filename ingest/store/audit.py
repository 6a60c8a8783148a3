"""The audit trail: who did what to which thing, when and why. Append-only."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import text

from ingest.db import Connection
from ingest.store.jsontext import dump

_RECORD = text("""
    INSERT INTO ing_audit (actor, action, target, detail, reason)
    VALUES (:actor, :action, :target, CAST(:detail AS jsonb), :reason)
""")


def record(
    conn: Connection, *, actor: str, action: str, target: str, detail: Mapping[str, Any], reason: str = ""
) -> None:
    """Write one line of the trail, in the transaction of the deed itself."""
    values = {"actor": actor, "action": action, "target": target, "reason": reason}
    conn.execute(_RECORD, values | {"detail": dump(detail)})
