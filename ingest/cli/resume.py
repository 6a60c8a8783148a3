"""`ingest resume`: lift what `ingest pause` set."""

from typing import Annotated

import typer

from ingest.cli.pause import choose_targets
from ingest.cli.screen import say_next, write, write_json
from ingest.cli.session import name_actor, open_checked
from ingest.cli.texts import plural

OPTIONS = {
    "epilog": """\b
Examples:  ingest resume crossref
           ingest resume --all"""
}


def resume(
    scope: Annotated[str | None, typer.Argument(metavar="SOURCE[.ENDPOINT]", help="What to resume.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every registered source.")] = False,
    reason: Annotated[str, typer.Option("--reason", help="Kept in the audit trail.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Plan and lease again what was paused by a person."""
    from ingest.admin import pauses

    with open_checked() as (database, settings):
        targets = choose_targets(database, scope, everything)
        lifted = pauses.resume(database, targets, actor=name_actor(settings), reason=reason)
    if as_json:
        write_json("resumed", {"lifted": lifted})
        return
    write(f"resumed: {plural(lifted, 'pause')} lifted")
    say_next("ingest status")
