"""Invariants: what must hold in the tables whatever crashed, as read-only statements that find where it does not.

Each promise is one statement that returns a line per breach. They are read in one snapshot, so a system at work is no
breach: what a page changes is there together or not at all. Names in brackets are those of research on reliability.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import text

from ingest.db import Connection, quote

MOST_BREACHES = 20  # of one promise: enough to see what is wrong where


@dataclass(frozen=True, slots=True)
class Invariant:
    """A promise and the statement that returns every breach of it as one text."""

    name: str
    promise: str
    statement: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an audit found about one promise."""

    name: str
    promise: str
    breaches: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Nothing speaks against it."""
        return not self.breaches


_PARTS = "ARRAY['inserted', 'updated', 'unchanged', 'stale', 'duplicate', 'filtered', 'quarantined']"

INVARIANTS = (
    Invariant(
        "batches-contiguous",
        "a run's batches are numbered from 1 without holes",
        """SELECT format('run %s: %s batches, the last is %s', run_id, count(*), max(batch_no)) FROM ing_task_run_batch
            GROUP BY run_id HAVING count(*) <> max(batch_no) OR min(batch_no) <> 1""",
    ),
    Invariant(
        "pages-once",
        "a task's pages are in the ledger once each, and it counts them right",
        """SELECT format('task %s says %s pages, the ledger has %s', t.id, t.pages_done, count(b.id)) FROM ing_task t
             LEFT JOIN ing_task_run_batch b ON b.task_id = t.id AND b.status_code = 'SUCCEEDED'
            GROUP BY t.id HAVING t.pages_done <> count(b.id) OR count(b.id) <> coalesce(max(b.task_page_no), 0)""",
    ),
    Invariant(
        "records-accounted",
        "every record of a page is inserted, updated, unchanged, stale, duplicate, filtered or quarantined",
        f"""SELECT format('batch %s: %s items', id, stats ->> 'itemsCount') FROM ing_task_run_batch
             WHERE status_code = 'SUCCEEDED' AND (stats ->> 'itemsCount')::bigint IS DISTINCT FROM
                   (SELECT sum(coalesce((stats ->> part)::bigint, 0)) FROM unnest({_PARTS}) AS part)""",
    ),
    Invariant(
        "quarantine-whole",
        "every quarantined record of a page is kept",
        """SELECT format('batch %s quarantined %s, %s are kept', b.id, b.stats ->> 'quarantined', count(q.id))
             FROM ing_task_run_batch b LEFT JOIN ing_quarantine q ON q.batch_id = b.id
            WHERE b.status_code = 'SUCCEEDED' AND (b.stats ->> 'quarantined')::int > 0
            GROUP BY b.id HAVING count(q.id) <> (b.stats ->> 'quarantined')::int""",
    ),
    Invariant(
        "outbox-whole",
        "a page's outbox row names exactly the records it changed",
        """SELECT format('batch %s changed %s records, its outbox row names %s', b.id, changed.n, cardinality(o.keys))
             FROM ing_outbox o JOIN ing_task_run_batch b ON b.id = o.batch_id
            CROSS JOIN LATERAL (SELECT (b.stats ->> 'inserted')::int + (b.stats ->> 'updated')::int AS n) changed
            WHERE changed.n <> cardinality(o.keys) OR cardinality(o.keys) <> cardinality(o.versions)
               OR cardinality(o.keys) <> cardinality(o.operations)""",
    ),
    Invariant(
        "fence-forward",
        "pages of a task were written by leases in their order, none by one that did not exist",
        """SELECT format('task %s page %s was written under lease %s', task_id, task_page_no, attempt_no) FROM (
               SELECT b.task_id, b.task_page_no, r.attempt_no, t.lease_count,
                      max(r.attempt_no) OVER (PARTITION BY b.task_id ORDER BY b.task_page_no) AS newest
                 FROM ing_task_run_batch b JOIN ing_task_run r ON r.id = b.run_id JOIN ing_task t ON t.id = b.task_id
                WHERE b.status_code = 'SUCCEEDED') pages
            WHERE attempt_no < newest OR attempt_no > lease_count""",
    ),
    Invariant(
        "terminal-is-quiet",
        "what has ended has no worker, no running attempt and an end",
        """SELECT format('task %s is %s', t.id, t.status_code) FROM ing_task t
            WHERE t.status_code IN ('SUCCEEDED', 'FAILED', 'PARTIAL', 'CANCELLED')
              AND (t.lease_owner IS NOT NULL OR t.finished_at IS NULL
                   OR EXISTS (SELECT FROM ing_task_run r WHERE r.task_id = t.id AND r.status_code = 'RUNNING'))""",
    ),
    Invariant(
        "one-run-at-a-time",
        "a task has at most one running attempt, and only while a worker holds it",
        """SELECT format('task %s (%s) has %s running attempts', t.id, t.status_code, count(r.id))
             FROM ing_task_run r JOIN ing_task t ON t.id = r.task_id WHERE r.status_code = 'RUNNING'
            GROUP BY t.id HAVING count(r.id) > 1 OR t.status_code <> 'EXECUTING'""",
    ),
    Invariant(
        "open-slices-live",
        "an open slice has one live task, a closed one has none",
        """SELECT format('slice %s is %s and has %s live tasks', s.id, CASE WHEN s.open THEN 'open' ELSE 'closed' END,
                         count(t.id))
             FROM ing_plan_slice s LEFT JOIN ing_task t
               ON t.slice_id = s.id AND t.status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING')
            GROUP BY s.id HAVING count(t.id) <> CASE WHEN s.open THEN 1 ELSE 0 END""",
    ),
    Invariant(
        "coverage-is-its-events",
        "coverage is the union of finished windows, each with its event",
        """SELECT format('series %s', c.series_id) FROM ing_coverage c
            WHERE c.covered IS DISTINCT FROM
                  (SELECT coalesce(range_agg(span), '{}'::tstzmultirange) FROM ing_cursor_event e
                    WHERE e.series_id = c.series_id AND e.kind = 'WINDOW')""",
    ),
    Invariant(
        "success-is-covered",
        "a window whose task succeeded is covered",
        """SELECT format('task %s, series %s, %s', t.id, s.series_id, s.span) FROM ing_task t
             JOIN ing_plan_slice s ON s.id = t.slice_id LEFT JOIN ing_coverage c ON c.series_id = s.series_id
            WHERE t.status_code = 'SUCCEEDED' AND s.purpose IN ('FILL', 'WALK')
              AND NOT coalesce(c.covered @> s.span, false)""",
    ),
    Invariant(
        "cursor-not-ahead",
        "a forward cursor never stands behind a gap: it is at most the end of the unbroken run from the anchor",
        """SELECT format('series %s: cursor %s, unbroken to %s', s.id, k.normalized_instant, whole.until)
             FROM ing_series s JOIN ing_cursor k ON k.series_id = s.id AND k.cursor_type_code = 'TIME'
                  AND k.operation_code = 'HARVEST'
             LEFT JOIN ing_coverage c ON c.series_id = s.id
             LEFT JOIN LATERAL (
                  SELECT max(upper(r)) AS until FROM unnest(c.covered) r WHERE r @> s.anchor) whole ON true
            WHERE k.normalized_instant > coalesce(whole.until, s.anchor)""",
    ),
)

_DATASETS = text("""
    SELECT DISTINCT e.dataset_name FROM reg_prov_endpoint_def e
     WHERE to_regclass('data.' || quote_ident(e.dataset_name)) IS NOT NULL ORDER BY 1
""")


def audit(conn: Connection, names: Sequence[str] = ()) -> list[Verdict]:
    """Try every promise, or those named, in one read-only snapshot; the connection's transaction must be fresh."""
    conn.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
    conn.exec_driver_sql("SET LOCAL statement_timeout = 0")  # a large ledger takes as long as it takes
    chosen = [*INVARIANTS, *(_traceable(name) for name in conn.execute(_DATASETS).scalars())]
    return [
        Verdict(invariant.name, invariant.promise, _breaches(conn, invariant))
        for invariant in chosen
        if not names or invariant.name in names
    ]


def _breaches(conn: Connection, invariant: Invariant) -> tuple[str, ...]:
    found = conn.execute(text(f"SELECT * FROM ({invariant.statement}) AS breach LIMIT {MOST_BREACHES}"))
    return tuple(str(row[0]) for row in found)


def _traceable(dataset: str) -> Invariant:
    return Invariant(
        f"traceable:{dataset}",
        f"every row of data.{dataset} names the page that brought it",
        f"""SELECT format('%s rows of batch %s, which is not in the ledger', count(*), d._batch_id)
              FROM data.{quote(dataset)} d
              LEFT JOIN ing_task_run_batch b ON b.id = d._batch_id AND b.status_code = 'SUCCEEDED'
             WHERE b.id IS NULL GROUP BY d._batch_id""",
    )
