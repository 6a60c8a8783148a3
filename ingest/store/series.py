"""Series and their coverage: what was asked for, and which stretches of time are finished (DESIGN rules 1, 6, 7).

Invariant: `covered` only grows, is merged by PostgreSQL, and is written in the transaction of a walk's last page.
"""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import text

from ingest.db import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """One endpoint under one selection and one partition."""

    id: int
    provenance_code: str
    endpoint_name: str
    partition_key: str
    selection_hash: str
    anchor: datetime
    covered_from: datetime | None = None
    covered_to: datetime | None = None
    covered_seconds: float = 0.0


_ENSURE = text("""
    INSERT INTO ing_series (provenance_code, endpoint_name, partition_key, selection_hash, anchor)
    VALUES (:source, :endpoint, :partition, :selection, :anchor)
    ON CONFLICT ON CONSTRAINT uk_series DO UPDATE SET anchor = ing_series.anchor
    RETURNING id, provenance_code, endpoint_name, partition_key, selection_hash, anchor
""")


def ensure_series(
    conn: Connection, *, source: str, endpoint: str, selection: str, anchor: datetime, partition: str = ""
) -> Series:
    """Return the series, made now if it is new. The anchor is set once: an earlier start later is BACKFILL's work."""
    row = conn.execute(
        _ENSURE,
        {
            "source": source,
            "endpoint": endpoint,
            "partition": partition,
            "selection": selection,
            "anchor": anchor,
        },
    ).one()
    return Series(**row._mapping)


_LIST = text("""
    SELECT s.id, s.provenance_code, s.endpoint_name, s.partition_key, s.selection_hash, s.anchor,
           lower(c.covered) AS covered_from, upper(c.covered) AS covered_to,
           coalesce((SELECT extract(epoch FROM sum(upper(r) - lower(r))) FROM unnest(c.covered) AS r), 0)::float8
               AS covered_seconds
      FROM ing_series s LEFT JOIN ing_coverage c ON c.series_id = s.id
     WHERE s.provenance_code = :source AND s.endpoint_name = :endpoint
     ORDER BY s.id DESC LIMIT 1000
""")


def list_series(conn: Connection, provenance_code: str, endpoint_name: str) -> list[Series]:
    """Return the endpoint's series, newest selection first."""
    rows = conn.execute(_LIST, {"source": provenance_code, "endpoint": endpoint_name})
    return [Series(**row._mapping) for row in rows]


# One round trip for the planner: what is wanted, less what is covered, less what open slices already ask for.
_GAPS = text("""
    SELECT lower(r), upper(r) FROM unnest(
        tstzmultirange(tstzrange(:wanted_from, :wanted_to))
        - coalesce((SELECT covered FROM ing_coverage WHERE series_id = :series), '{}')
        - coalesce((SELECT range_agg(span) FROM ing_plan_slice
                     WHERE series_id = :series AND open AND purpose = 'FILL'), '{}')
    ) AS r ORDER BY 1
""")


def list_gaps(
    conn: Connection, series_id: int, *, wanted_from: datetime, wanted_to: datetime
) -> list[tuple[datetime, datetime]]:
    """Return what is wanted and neither covered nor in flight, earliest first; empty if nothing is wanted."""
    if wanted_from >= wanted_to:
        return []
    values = {"series": series_id, "wanted_from": wanted_from, "wanted_to": wanted_to}
    return [(row[0], row[1]) for row in conn.execute(_GAPS, values)]


_RANGES = text("SELECT lower(r), upper(r) FROM ing_coverage, unnest(covered) AS r WHERE series_id = :series ORDER BY 1")


def list_covered(conn: Connection, series_id: int) -> list[tuple[datetime, datetime]]:
    """Return the covered ranges, earliest first."""
    return [(row[0], row[1]) for row in conn.execute(_RANGES, {"series": series_id})]


_COPY = text("""
    INSERT INTO ing_coverage (series_id, covered)
    SELECT :target, covered FROM ing_coverage WHERE series_id = :source
    ON CONFLICT (series_id) DO UPDATE SET covered = ing_coverage.covered + excluded.covered, updated_at = now()
    RETURNING series_id
""")


# Event first here too: without events the copied coverage could not be folded into a cursor.
_COPY_EVENTS = text("""
    INSERT INTO ing_cursor_event (kind, provenance_code, endpoint_name, operation_code, cursor_key,
           namespace_scope_code, namespace_key, series_id, cursor_type_code, direction_code, span, new_value,
           new_instant, schedule_instance_id, plan_id, slice_id, task_id, run_id, batch_id, expr_hash, idempotent_key,
           record_remarks)
    SELECT 'WINDOW', s.provenance_code, s.endpoint_name, 'HARVEST', coalesce(old.cursor_key, 'updated_at'), 'EXPR',
           CAST(s.id AS text), s.id, 'TIME', 'FORWARD', r, CAST(upper(r) AS text), upper(r), 0, 0, 0, 0, 0, 0, '',
           concat_ws(':', 'copy', c.series_id, s.id, r), jsonb_build_object('copiedFrom', c.series_id)
      FROM ing_series s CROSS JOIN ing_coverage c CROSS JOIN LATERAL unnest(c.covered) AS r
      LEFT JOIN LATERAL (SELECT cursor_key FROM ing_cursor_event e
                          WHERE e.series_id = c.series_id AND e.kind = 'WINDOW' ORDER BY e.id DESC LIMIT 1) old ON true
     WHERE s.id = :target AND c.series_id = :source
    ON CONFLICT DO NOTHING
""")


def copy_coverage(
    conn: Connection,
    *,
    from_series_id: int,
    provenance_code: str,
    endpoint_name: str,
    partition_key: str,
    selection_hash: str,
) -> int:
    """Give a new selection the coverage of an old one, because a person vouches for it; return the new series' id."""
    anchor = conn.execute(text("SELECT anchor FROM ing_series WHERE id = :id"), {"id": from_series_id}).scalar_one()
    target = ensure_series(
        conn,
        source=provenance_code,
        endpoint=endpoint_name,
        selection=selection_hash,
        anchor=anchor,
        partition=partition_key,
    )
    conn.execute(_COPY_EVENTS, {"target": target.id, "source": from_series_id})
    conn.execute(_COPY, {"target": target.id, "source": from_series_id})
    return target.id


_COVERED_PAST = text("SELECT upper(covered) > :moment FROM ing_coverage WHERE series_id = :series")


def is_covered_past(conn: Connection, series_id: int, moment: datetime | None) -> bool:
    """Say whether the series was finished up to a time after the moment: what changed then has been read since."""
    if moment is None:
        return False
    return bool(conn.execute(_COVERED_PAST, {"series": series_id, "moment": moment}).scalar_one_or_none())


_OPEN_WALK = text("SELECT EXISTS (SELECT FROM ing_plan_slice WHERE series_id = :series AND open AND purpose = 'WALK')")


def has_open_walk(conn: Connection, series_id: int) -> bool:
    """Say whether a walk of the whole series is under way; there is at most one."""
    return bool(conn.execute(_OPEN_WALK, {"series": series_id}).scalar_one())
