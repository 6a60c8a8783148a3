"""`ingest audit`: try on the user's own tables what the system promises; read-only."""

from typing import Annotated

import typer

from ingest.cli.screen import paint, say, write, write_json, write_lines
from ingest.cli.session import open_checked
from ingest.cli.texts import plural

_FOUND = 3
OPTIONS = {
    "epilog": """\b
Examples:  ingest audit
           ingest audit --only pages-once --only records-accounted
           ingest audit --json

Read-only, in one snapshot: it may run while everything works. Exits 3 if a promise is broken."""
}


def audit(
    only: Annotated[list[str] | None, typer.Option("--only", help="One promise, by name; may be repeated.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Prove on your own data that nothing was lost, doubled or left half done."""
    from ingest.errors import NotFound
    from ingest.store.invariants import MOST_BREACHES
    from ingest.store.invariants import audit as try_promises

    with open_checked() as (database, _), database.transaction() as conn:
        verdicts = try_promises(conn, only or ())
    if only and len(verdicts) < len(set(only)):
        missing = sorted(set(only) - {verdict.name for verdict in verdicts})
        raise NotFound(f"no promise {', '.join(missing)}: `ingest audit` lists them")
    broken = [verdict for verdict in verdicts if not verdict.holds]
    if as_json:
        write_json("audit", {"ok": not broken, "promises": verdicts})
    else:
        size = max((len(verdict.name) for verdict in verdicts), default=0)
        for verdict in verdicts:
            mark = paint("ok    ", "green") if verdict.holds else paint("BROKEN", "red")
            write(f"{mark}  {verdict.name.ljust(size)}  {verdict.promise}")
            write_lines(f"        {breach}" for breach in verdict.breaches)
            if len(verdict.breaches) == MOST_BREACHES:
                write(f"        ... the first {MOST_BREACHES}")
        say(f"{plural(len(verdicts), 'promise')} tried, {len(broken)} broken.")
    if broken:
        raise typer.Exit(_FOUND)
