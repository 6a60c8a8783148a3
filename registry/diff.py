"""Diff: what applying drafts would change, read in one transaction and written nowhere (A2)."""

from collections.abc import Sequence

from ingest.db import Connection, Database
from ingest.errors import SpecInvalid
from ingest.spec.selection import selection_hash
from ingest.store.datasets import plan_table
from ingest.store.series import list_series
from registry.compile import Compiled, compile_rows
from registry.describe import Change, compare
from registry.dictionary import Platform
from registry.drafts import Draft, list_problems
from registry.expand import Rows
from registry.problems import FilesInvalid, Finding, Problem, has_errors
from registry.report import Action, EndpointReport, LostCoverage, Report, SourceReport
from registry.store.dictionary import load_platform
from registry.store.revisions import latest_revision
from registry.store.rows import find_dataset_owners, read_source_rows


def diff(database: Database, drafts: Sequence[Draft]) -> Report:
    """Return what an apply of the drafts would do; raise `FilesInvalid` with every problem."""
    require_valid(drafts)
    with database.transaction() as conn:
        return compare_drafts(conn, drafts)


def require_valid(drafts: Sequence[Draft]) -> None:
    """Raise `FilesInvalid` if any draft has an error."""
    problems = list_problems(drafts)
    if has_errors(problems):
        raise FilesInvalid(problems)


def compare_drafts(conn: Connection, drafts: Sequence[Draft]) -> Report:
    """Compare each draft with what is applied; raise `FilesInvalid` for what a table cannot become."""
    platform = load_platform(conn)
    problems: list[Problem] = []
    reports = [_compare_source(conn, draft, platform, problems) for draft in drafts]
    if problems:
        raise FilesInvalid([*list_problems(drafts), *problems])
    return Report(reports)


def _compare_source(conn: Connection, draft: Draft, platform: Platform, problems: list[Problem]) -> SourceReport:
    old = read_source_rows(conn, draft.source)
    changes = compare(old, draft.rows)
    before = latest_revision(conn, draft.source)
    owners = find_dataset_owners(conn, draft.source, [c.snapshot.mapping.dataset for c in draft.compiled.values()])
    old_names = {str(row["endpoint_name"]) for row in old["reg_prov_endpoint_def"]}
    endpoints = []
    for name, compiled in draft.compiled.items():
        owner = owners.get(compiled.snapshot.mapping.dataset)
        if owner is not None:
            message = f"the table data.{compiled.snapshot.mapping.dataset} belongs to {owner}"
            problems.append(_place(draft, name, "dataset", message))
        applied = _compile_applied(old, platform, name) if name in old_names else None
        endpoints.append(_compare_endpoint(conn, draft, compiled, applied, changes, name in old_names, problems))
    for name in sorted(old_names - set(draft.compiled)):
        note = "its plans, coverage and table stay; nothing new is planned"
        own = _changes_of(changes, name)
        endpoints.append(EndpointReport(name=f"{draft.source}.{name}", action="removed", changes=own, notes=[note]))
    action: Action = "unchanged" if not changes else "changed" if old["reg_provenance"] else "new"
    return SourceReport(
        source=draft.source,
        action=action,
        revision_before=before,
        revision=before + 1 if changes else before,
        changes=[change for change in changes if not change.path.startswith("endpoints.")],
        endpoints=endpoints,
    )


def _compile_applied(old: Rows, platform: Platform, endpoint: str) -> Compiled | None:
    try:
        return compile_rows(old, platform, endpoint)
    except SpecInvalid:
        return None  # what is applied passed older checks; there is no selection to compare with


def _compare_endpoint(
    conn: Connection,
    draft: Draft,
    compiled: Compiled,
    applied: Compiled | None,
    changes: list[Change],
    existed: bool,
    problems: list[Problem],
) -> EndpointReport:
    snapshot = compiled.snapshot
    statements: list[str] = []
    try:
        statements = plan_table(conn, snapshot)
    except SpecInvalid as error:
        problems += [_place_text(draft, snapshot.endpoint_name, text) for text in error.problems]
    own = _changes_of(changes, snapshot.endpoint_name)
    after = snapshot.spec_fingerprint
    before = applied.snapshot.spec_fingerprint if applied else ""
    action: Action = "unchanged" if existed and not own and before == after else "changed" if existed else "new"
    notes = ["what is applied no longer compiles: its coverage is not compared"] if existed and not applied else []
    return EndpointReport(
        name=snapshot.name,
        action=action,
        changes=own,
        fingerprint_before=before,
        fingerprint_after=after,
        statements=statements,
        lost=_lost_coverage(conn, compiled, applied) if applied else [],
        degradations=compiled.degradations,
        notes=notes,
    )


def _changes_of(changes: list[Change], endpoint: str) -> list[Change]:
    return [change for change in changes if change.path.startswith(f"endpoints.{endpoint}.")]


def _lost_coverage(conn: Connection, compiled: Compiled, applied: Compiled) -> list[LostCoverage]:
    snapshot = compiled.snapshot
    lost = []
    for series in list_series(conn, snapshot.provenance_code, snapshot.endpoint_name):
        new_hash = selection_hash(snapshot, series.partition_key)
        in_force = series.selection_hash == selection_hash(applied.snapshot, series.partition_key)
        if in_force and series.selection_hash != new_hash and series.covered_seconds > 0:
            lost.append(
                LostCoverage(
                    series_id=series.id,
                    partition_key=series.partition_key,
                    covered_seconds=series.covered_seconds,
                    new_selection_hash=new_hash,
                )
            )
    return lost


def _place(draft: Draft, endpoint: str, key: str, message: str) -> Problem:
    where = ("endpoints", endpoint, *key.split("."))
    return draft.file.place(Finding(code="table", where=where, message=message))


def _place_text(draft: Draft, endpoint: str, text: str) -> Problem:
    """Put `crossref.works: columns.title: is ...` at the line of that column."""
    parts = text.split(": ", 2)
    return _place(draft, endpoint, parts[1], parts[2]) if len(parts) == 3 else _place(draft, endpoint, "", text)
