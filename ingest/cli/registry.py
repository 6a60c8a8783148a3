"""`ingest registry`: check, compare, apply and show what sources declare.

Problems, reports and specs are data (stdout); what was done and what comes next is chat (stderr). Nothing heavy is
imported before a command runs: `ingest --help` answers at once.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ingest.cli import revisions
from ingest.cli.applying import INVALID, list_changed, open_registry, or_problems, write_problems, write_report
from ingest.cli.screen import say, say_next, write, write_json, write_lines
from ingest.cli.session import name_actor
from ingest.cli.texts import details, plural, table

if TYPE_CHECKING:
    from ingest.db import Database
    from ingest.settings import Settings
    from registry.drafts import Draft

app = typer.Typer(help="Check, compare, apply and show what sources declare.", no_args_is_help=True)
app.command(epilog="Example: ingest registry history crossref --diff   ·   ... --revision 3")(revisions.history)
app.command(epilog='Example: ingest registry rollback crossref --to 3 --reason "wrong term"')(revisions.rollback)

Paths = Annotated[
    list[Path] | None, typer.Argument(help="Source files or folders; default: the folder `sources` in the settings.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
_DIFFERENT = 3


@app.command(epilog="Example: ingest registry validate sources/crossref.yaml")
def validate(paths: Paths = None, as_json: AsJson = False) -> None:
    """Check source files; needs no database."""
    from ingest.settings import load_settings
    from registry.builtin import BUILTIN
    from registry.drafts import list_problems
    from registry.problems import has_errors

    settings = load_settings()
    drafts = _read(paths, settings, BUILTIN)
    problems = list_problems(drafts)
    write_problems(problems, files=len(drafts), as_json=as_json)
    if has_errors(problems):
        raise typer.Exit(INVALID)
    say_next("ingest registry diff")


@app.command(epilog="Example: ingest registry diff --exit-code   (3 if an apply would change something)")
def diff(
    paths: Paths = None,
    as_json: AsJson = False,
    exit_code: Annotated[bool, typer.Option("--exit-code", help="End with 3 if there is a difference.")] = False,
) -> None:
    """Show what an apply would change; writes nothing."""
    from registry import diff as differ

    with open_registry() as (settings, database):
        drafts = _read_with_database(paths, settings, database)
        report = or_problems(lambda: differ.diff(database, drafts), files=len(drafts), as_json=as_json)
        changed = list_changed(database, [source.source for source in report.sources])
    write_report(report, as_json=as_json)
    for line in changed:
        say(line)
    if report.differs:
        say_next("ingest registry apply")
        raise typer.Exit(_DIFFERENT if exit_code else 0)


@app.command(epilog='Example: ingest registry apply sources/crossref.yaml --reason "wider window"')
def apply(
    paths: Paths = None,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the history and the audit trail.")] = "",
    keep_coverage: Annotated[
        bool, typer.Option("--keep-coverage", help="Copy coverage to a changed selection: you vouch for it.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done.")] = False,
    as_json: AsJson = False,
) -> None:
    """Bring the registry to what the files declare, all of it or nothing."""
    from registry import apply as applier

    with open_registry() as (settings, database):
        drafts = _read_with_database(paths, settings, database)
        options = {"keep_coverage": keep_coverage, "dry_run": dry_run}
        report = or_problems(
            lambda: applier.apply(database, drafts, actor=name_actor(settings), reason=reason, **options),
            files=len(drafts),
            as_json=as_json,
        )
    write_report(report, as_json=as_json)
    changed = sum(source.action != "unchanged" for source in report.sources)
    same = len(report.sources) - changed
    say(f"{'Would apply' if dry_run else 'Applied'} {plural(changed, 'source')}, {same} unchanged.")
    if not dry_run and changed:
        say_next("ingest registry show")


@app.command(epilog="Example: ingest registry show crossref.works")
def show(
    name: Annotated[str | None, typer.Argument(help="source.endpoint; without it: every endpoint.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print an endpoint's whole merged spec and where each value came from."""
    from ingest.spec.selection import selection_hash
    from registry.compile import DEGRADATIONS
    from registry.explain import explain
    from registry.load import compile_endpoint, list_endpoints

    with open_registry() as (settings, database), database.transaction() as conn:
        endpoints = list_endpoints(conn)
        if name is None:
            _write_endpoints(endpoints, as_json=as_json)
            return
        source, _, endpoint = name.partition(".")
        _require(name, [known.name for known in endpoints])
        compiled = compile_endpoint(conn, source, endpoint, open_origins=settings.open_origins)
    snapshot = compiled.snapshot
    hashes = {
        "spec_fingerprint": snapshot.spec_fingerprint,
        "expr_proto_hash": snapshot.expr_proto_hash,
        "selection_hash": selection_hash(snapshot),
    }
    if as_json:
        content = {
            "spec": snapshot.model_dump(mode="json"),
            "origins": compiled.origins,
            "degradations": compiled.degradations,
            "warnings": compiled.warnings,
        }
        write_json("registry-show", content | hashes)
        return
    write_lines(details([("endpoint", name), ("revision", str(snapshot.revision)), *hashes.items()]))
    lines = [line for line in explain(compiled) if line.origin or line.value != "-"]
    rows = [(line.path, line.value, line.origin) for line in lines if line.path.partition(".")[0] not in _TOLD_ABOVE]
    write_lines(["", *table(("SETTING", "VALUE", "FROM"), rows)])
    told = [f"degradation: {code}: {DEGRADATIONS[code]}" for code in compiled.degradations]
    told += [f"warning: {text}" for text in compiled.warnings]
    write_lines(["", *told] if told else [])


_TOLD_ABOVE = {"format", "provenance_code", "endpoint_name", "revision"}


@app.command(epilog="Example: ingest registry schema --out .ingest/source.schema.json")
def schema(
    out: Annotated[Path | None, typer.Option("--out", help="Write to a file instead of stdout.")] = None,
) -> None:
    """Print the JSON Schema of source files, for editors."""
    import json

    from registry.builtin import BUILTIN
    from registry.schema import source_schema

    text = json.dumps(source_schema(BUILTIN.dictionary), indent=2, ensure_ascii=False)
    if out is None:
        write(text)
        return
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(text + "\n", encoding="utf-8")
    say(f"Wrote {out}. First line of a source file:  # yaml-language-server: $schema={out.name}")


def _read(paths: list[Path] | None, settings: "Settings", platform: Any) -> "list[Draft]":
    import os

    from registry.drafts import read_drafts

    chosen = paths or [settings.sources]
    return read_drafts(chosen, platform, environment=os.environ, open_origins=settings.open_origins)


def _read_with_database(paths: list[Path] | None, settings: "Settings", database: "Database") -> "list[Draft]":
    from registry.store.dictionary import load_platform

    with database.transaction() as conn:
        platform = load_platform(conn)
    return _read(paths, settings, platform)


def _write_endpoints(endpoints: Any, *, as_json: bool) -> None:
    if as_json:
        write_json("registry-endpoints", {"endpoints": endpoints})
        return
    if not endpoints:
        say("No endpoint is declared yet.")
        say_next("ingest registry apply FILE")
        return
    rows = [(e.name, f"data.{e.dataset_name}", str(e.revision), "yes" if e.enabled else "no") for e in endpoints]
    write_lines(table(("ENDPOINT", "TABLE", "REVISION", "ENABLED"), rows, right=("REVISION",)))


def _require(name: str, known: list[str]) -> None:
    from ingest.cli.texts import did_you_mean
    from ingest.errors import NotFound

    if name not in known:
        raise NotFound(f"no endpoint '{name}'{did_you_mean(name, known)}")
