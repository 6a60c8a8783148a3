"""Cursors: events first, the current value after them, strictly forward (E5, DESIGN rule 4).

Invariant: a TIME cursor is derived. It is the upper end of the covered range that contains the series' anchor, never
a page's newest updatedAt; so it can always be recomputed, and a lost update is only late, never wrong.
"""

from sqlalchemy import text

from ingest.db import Connection

# One statement for one series or for all that fell behind. Optimistic: the WHERE of the update is the lock.
_ADVANCE = """
    WITH fold AS (
        SELECT s.id AS series_id, upper(r) AS instant
          FROM ing_series s JOIN ing_coverage c ON c.series_id = s.id
         CROSS JOIN LATERAL unnest(c.covered) AS r
         WHERE r @> s.anchor {only}),
    latest AS (
        SELECT e.*, fold.instant FROM fold
         CROSS JOIN LATERAL (
             SELECT * FROM ing_cursor_event e
              WHERE e.series_id = fold.series_id AND e.kind = 'WINDOW' AND e.direction_code = 'FORWARD'
              ORDER BY e.id DESC LIMIT 1) e)
    INSERT INTO ing_cursor AS c (provenance_code, endpoint_name, operation_code, cursor_key, namespace_scope_code,
           namespace_key, series_id, cursor_type_code, cursor_value, normalized_instant, observed_max_value,
           schedule_instance_id, plan_id, slice_id, task_id, run_id, batch_id, expr_hash)
    SELECT provenance_code, endpoint_name, operation_code, cursor_key, namespace_scope_code, namespace_key, series_id,
           cursor_type_code, to_char(instant, 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), instant, observed_max_value,
           schedule_instance_id, plan_id, slice_id, task_id, run_id, batch_id, expr_hash
      FROM latest
    ON CONFLICT ON CONSTRAINT uk_cursor_ns DO UPDATE
       SET cursor_value = excluded.cursor_value, normalized_instant = excluded.normalized_instant,
           observed_max_value = excluded.observed_max_value, version = c.version + 1, updated_at = now(),
           schedule_instance_id = excluded.schedule_instance_id, plan_id = excluded.plan_id,
           slice_id = excluded.slice_id, task_id = excluded.task_id, run_id = excluded.run_id,
           batch_id = excluded.batch_id, expr_hash = excluded.expr_hash
     WHERE c.normalized_instant < excluded.normalized_instant
    RETURNING c.series_id
"""

_ADVANCE_ONE = text(_ADVANCE.format(only="AND s.id = :series"))
_ADVANCE_BEHIND = text(
    _ADVANCE.format(
        only="""AND NOT EXISTS (
            SELECT FROM ing_cursor k
             WHERE k.series_id = s.id AND k.cursor_type_code = 'TIME' AND k.normalized_instant >= upper(r))"""
    )
)


def advance_cursor(conn: Connection, series_id: int) -> bool:
    """Move the series' forward cursor to the end of its unbroken run of finished windows; False if it stood there."""
    return conn.execute(_ADVANCE_ONE, {"series": series_id}).first() is not None


def rescue_cursors(conn: Connection) -> int:
    """Recompute every cursor that fell behind its coverage (its second transaction was lost); return how many."""
    return len(conn.execute(_ADVANCE_BEHIND).all())
