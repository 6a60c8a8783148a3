"""`ingest registry history` and `rollback`: what was applied before, and back to it."""

from typing import Annotated

import typer

from ingest.cli.applying import open_registry, or_problems, write_report
from ingest.cli.screen import say, say_next, write, write_json, write_lines
from ingest.cli.session import name_actor
from ingest.cli.texts import short_moment, table

Source = Annotated[str, typer.Argument(help="The source's code.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


def history(
    source: Source,
    revision: Annotated[int | None, typer.Option("--revision", help="Print the file as it was applied then.")] = None,
    diff: Annotated[bool, typer.Option("--diff", help="List what each apply changed.")] = False,
    as_json: AsJson = False,
) -> None:
    """List every apply of a source: when, by whom, why, what changed."""
    from ingest.errors import NotFound
    from registry.describe import Change
    from registry.report import format_change
    from registry.store.revisions import find_applied, list_revisions

    with open_registry() as (_, database), database.transaction() as conn:
        revisions = list_revisions(conn, source)
        applied = find_applied(conn, source, revision) if revision is not None else None
    if not revisions:
        raise NotFound(f"no source '{source}' was ever applied")
    if revision is not None:
        if applied is None:
            raise NotFound(f"{source} has no revision {revision}; the newest is {revisions[0].revision}")
        write(applied[0].rstrip("\n"))
    elif as_json:
        write_json("registry-history", {"source": source, "revisions": revisions})
    elif diff:
        for r in revisions:
            reason = f"  {r.reason}" if r.reason else ""
            write(f"revision {r.revision}  {short_moment(r.changed_at)}  {r.changed_by}{reason}")
            write_lines(format_change(Change(str(c["path"]), c["old"], c["new"]), 2, whole=True) for c in r.changes)
    else:
        rows = [
            (str(r.revision), short_moment(r.changed_at), r.changed_by, str(len(r.changes)), r.reason or "-")
            for r in revisions
        ]
        write_lines(table(("REVISION", "WHEN", "BY", "CHANGES", "REASON"), rows, right=("REVISION", "CHANGES")))
        say_next(f"ingest registry history {source} --diff")


def rollback(
    source: Source,
    to: Annotated[int, typer.Option("--to", help="The revision to go back to; see `history`.")],
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the history and the audit trail.")] = "",
    keep_coverage: Annotated[
        bool, typer.Option("--keep-coverage", help="Copy coverage to a changed selection: you vouch for it.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done.")] = False,
    as_json: AsJson = False,
) -> None:
    """Apply an earlier revision again, as a new one; columns added since stay in the table."""
    from ingest.errors import NotFound
    from registry import apply as applier
    from registry.drafts import recall_draft
    from registry.store.dictionary import load_platform
    from registry.store.revisions import find_applied, latest_revision

    with open_registry() as (settings, database):
        with database.transaction() as conn:
            applied, newest = find_applied(conn, source, to), latest_revision(conn, source)
            platform = load_platform(conn)
        if applied is None:
            known = f"the newest is {newest}" if newest else "it was never applied"
            raise NotFound(f"{source} has no revision {to}: {known}")
        draft = recall_draft(source, to, *applied, platform, settings.open_origins)
        said = f"rollback to revision {to}" + (f": {reason}" if reason else "")
        options = {"keep_coverage": keep_coverage, "dry_run": dry_run}
        report = or_problems(
            lambda: applier.apply(database, [draft], actor=name_actor(settings), reason=said, **options),
            files=1,
            as_json=as_json,
        )
    write_report(report, as_json=as_json)
    if report.sources[0].action == "unchanged":
        say(f"{source} already is as it was in revision {to}.")
        return
    say(f"{'Would roll' if dry_run else 'Rolled'} {source} back to revision {to}.")
    if not dry_run:
        say(f"The file in your folder is not changed. To get it: ingest registry history {source} --revision {to}")
