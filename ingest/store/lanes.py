"""Lanes: (source, endpoint, operation, credential), the unit of fairness and of concurrency (E2).

Invariant: how many tasks run in a lane is counted from the tasks, never stored.
"""

from datetime import timedelta

from sqlalchemy import text

from ingest.db import Connection

_ENSURE = text("""
    INSERT INTO ing_lane (provenance_code, endpoint_name, operation_code, credential_code, c_declared, c_max, c_now)
    VALUES (:source, :endpoint, :operation, :credential, CAST(:declared AS integer),
            coalesce(CAST(:declared AS integer), 1), coalesce(CAST(:declared AS integer), 1))
    ON CONFLICT ON CONSTRAINT uk_lane DO UPDATE SET c_declared = excluded.c_declared
    RETURNING id
""")


def ensure_lane(
    conn: Connection, *, source: str, endpoint: str, operation: str, credential: str, concurrency: int | None
) -> int:
    """Return the lane's id, made now if it is new; a concurrency declared in the file beats the computed one."""
    values = {"source": source, "endpoint": endpoint, "operation": operation, "credential": credential}
    return int(conn.execute(_ENSURE, values | {"declared": concurrency}).scalar_one())


# E2: max(1, min(4, alive workers / active sources)); written only where it changes, so an idle planner writes nothing.
_REFRESH = text("""
    WITH wanted AS (
        SELECT l.id, coalesce(l.c_declared, greatest(1, least(4,
                   (SELECT coalesce(sum(capacity), 0) FROM ing_process
                     WHERE kind = 'EXECUTOR' AND stopped_at IS NULL AND last_seen_at > now() - interval '30 seconds')
                   / greatest(1, (SELECT count(DISTINCT a.provenance_code) FROM ing_lane a
                                   WHERE EXISTS (SELECT FROM ing_task q
                                                  WHERE q.lane_id = a.id AND q.status_code = 'QUEUED')
                                      OR EXISTS (SELECT FROM ing_task r WHERE r.lane_id = a.id
                                                    AND r.status_code IN ('DISPATCHED', 'EXECUTING'))))
               )))::integer AS c_max
          FROM ing_lane l)
    UPDATE ing_lane l SET c_max = wanted.c_max, c_now = wanted.c_max
      FROM wanted WHERE l.id = wanted.id AND (l.c_max, l.c_now) IS DISTINCT FROM (wanted.c_max, wanted.c_max)
""")


def refresh_concurrency(conn: Connection) -> None:
    """Bring every lane's C_max up to date with the workers alive and the sources that have work."""
    conn.execute(_REFRESH)


_BLOCK = text("""
    UPDATE ing_lane SET blocked_until = greatest(coalesce(blocked_until, '-infinity'), clock_timestamp() + :wait)
     WHERE id = :lane
""")


def block_lane(conn: Connection, lane_id: int, wait: timedelta) -> None:
    """Lease nothing from the lane until the wait is over, so a slow source never holds threads."""
    conn.execute(_BLOCK, {"lane": lane_id, "wait": wait})
