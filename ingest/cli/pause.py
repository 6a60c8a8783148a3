"""`ingest pause`: plan and lease nothing of a source, an endpoint or everything."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from ingest.cli.names import find_scope
from ingest.cli.screen import say, say_next, width, write, write_json, write_lines
from ingest.cli.session import name_actor, open_checked
from ingest.cli.texts import ago, plural, short_moment, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ingest.admin.pauses import Target
    from ingest.db import Database
    from ingest.store.pauses import Hold

OPTIONS = {
    "epilog": """\b
Examples:  ingest pause crossref --reason 'vendor maintenance' --until 2h
           ingest pause crossref.works --reason 'wrong search term'
           ingest pause --all --reason 'database upgrade'
           ingest pause                               what is held now

Tasks that are running finish; nothing new is planned or leased. `ingest resume` lifts it."""
}


def pause(
    scope: Annotated[str | None, typer.Argument(metavar="SOURCE[.ENDPOINT]", help="What to pause.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every registered source.")] = False,
    reason: Annotated[str, typer.Option("--reason", help="Why; shown wherever the work is missed.")] = "",
    until: Annotated[str, typer.Option("--until", help="A moment (UTC) or a duration; default: until resumed.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Pause a source, an endpoint or everything; without a name list what is held."""
    from ingest.admin import pauses
    from ingest.errors import ValueRefused
    from ingest.store.pauses import list_holds

    with open_checked() as (database, settings):
        if scope is None and not everything:
            with database.transaction() as conn:
                _show(list_holds(conn), as_json)
            return
        if not reason.strip():
            raise ValueRefused("--reason says why: it is shown wherever the work is missed")
        targets = choose_targets(database, scope, everything)
        pauses.pause(database, targets, actor=name_actor(settings), reason=reason, until=_moment(until))
    names = [f"{source}.{endpoint}" if endpoint else source for source, endpoint in targets]
    if as_json:
        write_json("paused", {"paused": names, "reason": reason})
        return
    write(f"paused: {', '.join(names)}")
    say_next(f"ingest resume {'--all' if everything else scope}")


def choose_targets(database: "Database", scope: str | None, everything: bool) -> "list[Target]":
    """Return what a command names: one source or endpoint, or every source."""
    from ingest.admin.pauses import list_sources
    from ingest.errors import ValueRefused

    if everything == (scope is not None):
        raise ValueRefused("name a source or an endpoint, or say --all")
    if everything:
        return list_sources(database)
    with database.transaction() as conn:
        source, endpoint = find_scope(conn, scope)
    return [(str(source), endpoint)]


def _show(holds: "Sequence[Hold]", as_json: bool) -> None:
    if as_json:
        write_json("holds", {"holds": holds})
        return
    rows = [
        [
            hold.name,
            hold.kind.lower(),
            ago(hold.created_at, hold.now),
            "lifted by hand" if hold.until is None else short_moment(hold.until),
            hold.held_by,
            hold.reason,
        ]
        for hold in holds
    ]
    write_lines(table(["HELD", "KIND", "SINCE", "UNTIL", "BY", "REASON"], rows, width=width()))
    say("Nothing is held." if not holds else f"{plural(len(holds), 'hold')}.")


def _moment(text: str) -> datetime | None:
    from ingest.durations import parse_duration
    from ingest.errors import ValueRefused

    if not text:
        return None
    try:
        return datetime.now(UTC) + parse_duration(text) if not text[:4].isdigit() else datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueRefused(f"'{text}' is no moment and no duration: write 2026-01-31T02:00:00Z or 2h") from error
