"""Pauses: holds a person sets and lifts; planner and lease skip what is held (D10, S2 §5.9)."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from ingest.db import Connection

_PAUSE = text("""
    INSERT INTO ing_hold (scope, kind, provenance_code, endpoint_name, until, reason, held_by)
    VALUES (CASE WHEN CAST(:endpoint AS text) IS NULL THEN 'SOURCE' ELSE 'ENDPOINT' END, 'MANUAL', :source, :endpoint,
            :until, :reason, :by)
    RETURNING id
""")


def pause(conn: Connection, *, source: str, endpoint: str | None, until: datetime | None, reason: str, by: str) -> int:
    """Hold a source, or one endpoint of it, until lifted or until a moment; return the hold's id."""
    values = {"source": source, "endpoint": endpoint, "until": until, "reason": reason, "by": by}
    return int(conn.execute(_PAUSE, values).scalar_one())


_LIFT = text("""
    UPDATE ing_hold SET lifted_at = clock_timestamp(), lifted_by = :by
     WHERE lifted_at IS NULL AND (until IS NULL OR until > now()) AND kind = 'MANUAL' AND provenance_code = :source
       AND endpoint_name IS NOT DISTINCT FROM CAST(:endpoint AS text)
    RETURNING id
""")


def lift_pauses(conn: Connection, *, source: str, endpoint: str | None, by: str) -> list[int]:
    """Lift what people hold of exactly this source or endpoint; return the holds' ids."""
    return list(conn.execute(_LIFT, {"source": source, "endpoint": endpoint, "by": by}).scalars())


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Something nothing is planned or leased of."""

    id: int
    scope: str
    kind: str
    source: str
    endpoint: str | None
    credential: str | None
    until: datetime | None
    reason: str
    held_by: str
    created_at: datetime
    now: datetime

    @property
    def name(self) -> str:
        """What is held, as people write it."""
        tail = f".{self.endpoint}" if self.endpoint else f" credential {self.credential}" if self.credential else ""
        return self.source + tail


_LIST = text("""
    SELECT id, scope, kind, provenance_code AS source, endpoint_name AS endpoint, credential_code AS credential, until,
           reason, held_by, created_at, now() AS now
      FROM ing_hold WHERE lifted_at IS NULL AND (until IS NULL OR until > now()) ORDER BY id LIMIT 1000
""")


def list_holds(conn: Connection) -> list[Hold]:
    """Return everything that is held now, oldest first."""
    return [Hold(**row._mapping) for row in conn.execute(_LIST)]
