"""Views of series: their cursors, and which stretches of time are covered, missing or in flight (read-only)."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import RowMapping, text

from ingest.db import Connection
from ingest.spec.snapshot import Window
from ingest.spec.windows import horizon

_MOST_SERIES = 1000
_MOST_RANGES = 1000

Span = tuple[datetime, datetime]


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorView:
    """Where a series stands; `current` is False for a selection the endpoint no longer asks for."""

    series_id: int
    source: str
    endpoint: str
    operation: str
    partition_key: str
    cursor_key: str
    type: str
    value: str
    instant: datetime | None
    observed_max: str | None
    version: int
    updated_at: datetime
    run_id: int | None
    selection_hash: str
    current: bool
    now: datetime

    @property
    def name(self) -> str:
        """source.endpoint, as people write it."""
        return f"{self.source}.{self.endpoint}"


# What the endpoint asks for now is what its newest plan asked for.
_CURRENT = """
    (SELECT o.selection_hash FROM ing_plan n
       JOIN ing_plan_slice c ON c.plan_id = n.id JOIN ing_series o ON o.id = c.series_id
      WHERE n.provenance_code = r.provenance_code AND n.endpoint_name = r.endpoint_name
        AND o.partition_key = r.partition_key
        AND n.operation_code = 'HARVEST' ORDER BY n.created_at DESC, n.id DESC LIMIT 1)
"""

_CURSORS = text(f"""
    SELECT r.id AS series_id, k.provenance_code AS source, k.endpoint_name AS endpoint, k.operation_code AS operation,
           r.partition_key, k.cursor_key, k.cursor_type_code AS type, k.cursor_value AS value,
           k.normalized_instant AS instant, k.observed_max_value AS observed_max, k.version, k.updated_at, k.run_id,
           r.selection_hash, coalesce(r.selection_hash = {_CURRENT}, false) AS current, now() AS now
      FROM ing_cursor k JOIN ing_series r ON r.id = k.series_id
     WHERE (CAST(:source AS text) IS NULL OR k.provenance_code = :source)
       AND (CAST(:endpoint AS text) IS NULL OR k.endpoint_name = :endpoint)
     ORDER BY k.provenance_code, k.endpoint_name, current DESC, r.partition_key, r.id DESC LIMIT {_MOST_SERIES}
""")


def list_cursors(conn: Connection, *, source: str | None = None, endpoint: str | None = None) -> list[CursorView]:
    """Return cursors by endpoint, those of the current selection first."""
    return [CursorView(**row._mapping) for row in conn.execute(_CURSORS, {"source": source, "endpoint": endpoint})]


@dataclass(frozen=True, slots=True, kw_only=True)
class CursorEvent:
    """One finished window: what moves a cursor."""

    id: int
    window_from: datetime | None
    window_to: datetime | None
    observed_max: str | None
    run_id: int
    created_at: datetime


_EVENTS = text("""
    SELECT id, lower(span) AS window_from, upper(span) AS window_to, observed_max_value AS observed_max, run_id,
           created_at
      FROM ing_cursor_event WHERE series_id = :series AND kind = 'WINDOW' ORDER BY id DESC LIMIT :limit
""")


def list_window_events(conn: Connection, series_id: int, *, limit: int = 10) -> list[CursorEvent]:
    """Return the series' finished windows, the latest first."""
    return [CursorEvent(**row._mapping) for row in conn.execute(_EVENTS, {"series": series_id, "limit": limit})]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageView:
    """What a series has, what is on its way and what is missing up to the latest closed window."""

    series_id: int
    source: str
    endpoint: str
    partition_key: str
    selection_hash: str
    current: bool
    windowed: bool
    anchor: datetime
    wanted_to: datetime
    covered: tuple[Span, ...]
    in_flight: tuple[Span, ...]
    gaps: tuple[Span, ...]

    @property
    def name(self) -> str:
        """source.endpoint, as people write it."""
        return f"{self.source}.{self.endpoint}"

    @property
    def due(self) -> Span | None:
        """The gap after everything there or on its way: nobody asked for it yet, the next fire will."""
        reached = max((end for _, end in (*self.covered, *self.in_flight)), default=self.anchor)
        return self.gaps[-1] if self.gaps and self.gaps[-1][0] >= reached else None

    @property
    def holes(self) -> tuple[Span, ...]:
        """The gaps in between: windows that failed, or were never finished."""
        return self.gaps if self.due is None else self.gaps[:-1]

    @property
    def share(self) -> float:
        """How much of what is wanted is covered, from 0 to 1."""
        wanted = self.wanted_to - self.anchor
        if wanted <= timedelta():
            return 1.0
        inside = (min(end, self.wanted_to) - max(start, self.anchor) for start, end in self.covered)
        return min(1.0, sum((max(span, timedelta()) for span in inside), timedelta()) / wanted)


_SERIES = text(f"""
    SELECT r.id AS series_id, r.provenance_code AS source, r.endpoint_name AS endpoint, r.partition_key,
           r.selection_hash, r.anchor, coalesce(r.selection_hash = {_CURRENT}, false) AS current,
           (SELECT s.snapshot -> 'window' FROM ing_plan n JOIN ing_spec s USING (spec_fingerprint)
             WHERE n.provenance_code = r.provenance_code AND n.endpoint_name = r.endpoint_name
               AND n.operation_code = 'HARVEST' ORDER BY n.created_at DESC, n.id DESC LIMIT 1) AS "window",
           now() AS now
      FROM ing_series r
     WHERE (CAST(:source AS text) IS NULL OR r.provenance_code = :source)
       AND (CAST(:endpoint AS text) IS NULL OR r.endpoint_name = :endpoint)
     ORDER BY 2, 3, current DESC, r.partition_key, r.id DESC LIMIT {_MOST_SERIES}
""")

_RANGES = text(f"""
    WITH had AS (SELECT coalesce((SELECT covered FROM ing_coverage WHERE series_id = :series), '{{}}') AS ranges),
         open AS (SELECT coalesce(range_agg(span), '{{}}') AS ranges FROM ing_plan_slice
                   WHERE series_id = :series AND open)
    SELECT 'covered' AS kind, lower(r) AS f, upper(r) AS t FROM had, unnest(had.ranges) AS r
    UNION ALL
    SELECT 'in_flight', lower(r), upper(r) FROM open, unnest(open.ranges) AS r
    UNION ALL
    SELECT 'gap', lower(r), upper(r)
      FROM had, open,
           unnest(tstzmultirange(tstzrange(CAST(:anchor AS timestamptz),
                                           greatest(CAST(:anchor AS timestamptz), CAST(:wanted_to AS timestamptz))))
                  - had.ranges - open.ranges) AS r
    ORDER BY 2, 1 LIMIT {_MOST_RANGES}
""")


def list_coverage(conn: Connection, *, source: str | None = None, endpoint: str | None = None) -> list[CoverageView]:
    """Return the coverage of every series, those of the current selection first."""
    return [_cover(conn, row._mapping) for row in conn.execute(_SERIES, {"source": source, "endpoint": endpoint})]


def _cover(conn: Connection, row: RowMapping) -> CoverageView:
    values = dict(row)
    now, window = values.pop("now"), Window.model_validate(values.pop("window") or {})
    wanted_to = horizon(window, now)
    found: dict[str, list[Span]] = {"covered": [], "in_flight": [], "gap": []}
    for kind, start, end in conn.execute(
        _RANGES, {"series": values["series_id"], "anchor": values["anchor"], "wanted_to": wanted_to}
    ):
        found[kind].append((start, end))
    windowed = window.filter == "server"
    return CoverageView(
        **values,
        windowed=windowed,
        wanted_to=wanted_to,
        covered=tuple(found["covered"]),
        in_flight=tuple(found["in_flight"]),
        # a source without a time filter is walked whole each time: there is nothing in between to be missing
        gaps=tuple(found["gap"]) if windowed else (),
    )
