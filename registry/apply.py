"""Apply: drafts become the registry's rows, tables first, then everything else in one transaction (A2).

Invariant: no reader ever sees a spec whose table is not there yet, nor half of a source; an apply that changes nothing
writes nothing; two applies of one source follow each other.
"""

from collections.abc import Sequence
from dataclasses import replace

from ingest.db import Connection, Database
from ingest.store import audit
from ingest.store.datasets import apply_table
from ingest.store.series import copy_coverage
from registry.diff import compare_drafts, require_valid
from registry.drafts import Draft
from registry.report import EndpointReport, LostCoverage, Report, SourceReport
from registry.store.locks import hold_sources
from registry.store.revisions import record_revision
from registry.store.rows import write_rows


def apply(
    database: Database,
    drafts: Sequence[Draft],
    *,
    actor: str,
    reason: str,
    keep_coverage: bool = False,
    dry_run: bool = False,
) -> Report:
    """Bring the registry to what the drafts declare and return what changed; raise `FilesInvalid` and write nothing.

    `database` must be the owner of the schema `data` when a table has to be made or widened.
    """
    require_valid(drafts)
    with hold_sources(database, (draft.source for draft in drafts)):
        with database.transaction() as conn:
            report = compare_drafts(conn, drafts)
        if dry_run:
            return report
        for source in report.sources:
            for endpoint in source.endpoints:
                if endpoint.statements:
                    apply_table(database, endpoint.statements)
        return database.repeat(
            lambda conn: Report(
                [
                    _write(conn, draft, source, actor=actor, reason=reason, keep_coverage=keep_coverage)
                    for draft, source in zip(drafts, report.sources, strict=True)
                ]
            )
        )


def _write(
    conn: Connection, draft: Draft, report: SourceReport, *, actor: str, reason: str, keep_coverage: bool
) -> SourceReport:
    if report.action == "unchanged":
        return report
    changes = [change.as_data() for change in report.all_changes]
    write_rows(conn, draft.source, draft.rows, revision=report.revision, actor=actor)
    record_revision(
        conn,
        draft.source,
        revision=report.revision,
        document=draft.file.text,
        rows=draft.rows,
        changes=changes,
        actor=actor,
        reason=reason,
    )
    detail = {"revision": report.revision, "changes": changes}
    audit.record(conn, actor=actor, action="registry.apply", target=draft.source, detail=detail, reason=reason)
    if not keep_coverage:
        return report
    endpoints = [
        replace(endpoint, lost=[_keep(conn, endpoint, lost, actor, reason) for lost in endpoint.lost])
        for endpoint in report.endpoints
    ]
    return replace(report, endpoints=endpoints)


def _keep(conn: Connection, endpoint: EndpointReport, lost: LostCoverage, actor: str, reason: str) -> LostCoverage:
    source, name = endpoint.name.split(".")
    series_id = copy_coverage(
        conn,
        from_series_id=lost.series_id,
        provenance_code=source,
        endpoint_name=name,
        partition_key=lost.partition_key,
        selection_hash=lost.new_selection_hash,
    )
    detail = {"from_series": lost.series_id, "to_series": series_id, "covered_seconds": lost.covered_seconds}
    audit.record(conn, actor=actor, action="coverage.copy", target=endpoint.name, detail=detail, reason=reason)
    return replace(lost, kept=True)
