"""`ingest cursors`: how far each series has come without a hole; read-only, because a cursor is derived."""

from datetime import datetime
from typing import Annotated

import typer

from ingest.cli.names import find_scope, get_endpoint
from ingest.cli.screen import say_next, width, write, write_json, write_lines
from ingest.cli.session import reading
from ingest.cli.texts import ago, details, short_moment, short_span, short_window, table

app = typer.Typer(no_args_is_help=True, help="Cursors: how far each stream has come without a hole (read-only).")

Json = Annotated[bool, typer.Option("--json", help="One JSON object.")]


@app.command(name="list", epilog="\b\nExamples:  ingest cursors list\n           ingest cursors list crossref --json")
def list_(
    scope: Annotated[str | None, typer.Argument(metavar="SOURCE[.ENDPOINT]", help="Only these.")] = None,
    as_json: Json = False,
) -> None:
    """List cursors; one marked `old` belongs to a selection the endpoint no longer asks for."""
    from ingest.store.views_series import list_cursors

    with reading() as conn:
        source, endpoint = find_scope(conn, scope)
        found = list_cursors(conn, source=source, endpoint=endpoint)
    if as_json:
        write_json("cursors", {"cursors": found})
        return
    headers = ["STREAM", "FIELD", "VALUE", "LAG", "NEWEST SEEN", "MOVED", "VERSION", ""]
    rows = [
        [
            cursor.name + (f"[{cursor.partition_key}]" if cursor.partition_key else ""),
            cursor.cursor_key,
            short_moment(cursor.instant) if cursor.instant else cursor.value,
            short_span(cursor.now - cursor.instant) if cursor.instant else "-",
            _shorten_instant(cursor.observed_max),
            ago(cursor.updated_at, cursor.now),
            str(cursor.version),
            "" if cursor.current else "old",
        ]
        for cursor in found
    ]
    write_lines(table(headers, rows, right=("VERSION",), width=width()))
    if found:
        say_next(f"ingest cursors show {found[0].name}")


@app.command(epilog="\b\nExample:  ingest cursors show crossref.works")
def show(
    stream: Annotated[str, typer.Argument(metavar="SOURCE.ENDPOINT")],
    as_json: Json = False,
) -> None:
    """Show a stream's cursor and the finished windows it was derived from."""
    from ingest.errors import NotFound
    from ingest.store.views_series import list_cursors, list_window_events

    with reading() as conn:
        endpoint = get_endpoint(conn, stream)
        found = list_cursors(conn, source=endpoint.source, endpoint=endpoint.endpoint)
        if not found:
            raise NotFound(f"{endpoint.name} has no cursor yet: no window of it is finished; see `ingest status`")
        events = [(cursor, list_window_events(conn, cursor.series_id)) for cursor in found if cursor.current]
    if as_json:
        content = [{"cursor": cursor, "events": listed} for cursor, listed in events]
        write_json("cursor", {"stream": endpoint.name, "series": content})
        return
    for cursor, listed in events:
        moved = f"{short_moment(cursor.updated_at)} ({ago(cursor.updated_at, cursor.now)})"
        write_lines(
            details(
                [
                    ("cursor", f"{cursor.name}  {cursor.cursor_key}  {cursor.type}"),
                    ("partition", cursor.partition_key),
                    ("value", cursor.value),
                    ("newest seen", _shorten_instant(cursor.observed_max)),
                    ("moved", f"{moved}, version {cursor.version}"),
                    ("series", f"{cursor.series_id}, selection {cursor.selection_hash}"),
                ]
            )
        )
        write("last finished windows")
        rows = [
            [short_window(event.window_from, event.window_to), str(event.run_id), ago(event.created_at, cursor.now)]
            for event in listed
        ]
        write_lines("  " + line for line in table(["WINDOW", "RUN", "FINISHED"], rows, right=("RUN",)))
    say_next(f"ingest coverage {endpoint.name}")


def _shorten_instant(stored: str | None) -> str:
    """Return a stored value as a moment if it is one: a cursor may also be a number or a token."""
    try:
        return short_moment(datetime.fromisoformat(stored)) if stored else "-"
    except ValueError:
        return str(stored)
