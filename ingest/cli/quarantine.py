"""`ingest quarantine`: records that could not be stored, with the reason and the text as it was sent."""

import json
from typing import Annotated

import typer

from ingest.cli.names import find_scope
from ingest.cli.screen import say, say_next, width, write, write_json, write_lines
from ingest.cli.session import reading
from ingest.cli.texts import ago, details, short_moment, shorten, table

app = typer.Typer(no_args_is_help=True, help="Quarantine: records that could not be stored, and why.")

Json = Annotated[bool, typer.Option("--json", help="One JSON object.")]


@app.command(
    name="list",
    epilog="\b\nExamples:  ingest quarantine list\n           ingest quarantine list shop.items --limit 100",
)
def list_(
    scope: Annotated[str | None, typer.Argument(metavar="SOURCE[.ENDPOINT]", help="Only these.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many at most.")] = 20,
    as_json: Json = False,
) -> None:
    """List open records, newest first."""
    from ingest.store.views_records import list_quarantine

    with reading() as conn:
        source, endpoint = find_scope(conn, scope)
        found = list_quarantine(conn, source=source, endpoint=endpoint, limit=limit)
    if as_json:
        write_json("quarantine", {"records": found})
        return
    if not found:
        say("The quarantine is empty.")
        return
    rows = [
        [
            str(record.id),
            record.name,
            ago(record.created_at, record.now),
            str(record.run_id),
            shorten(record.record_key or "-", 30),
            record.field_path,
            record.reason,
        ]
        for record in found
    ]
    headers = ["ID", "STREAM", "WHEN", "RUN", "KEY", "FIELD", "REASON"]
    write_lines(table(headers, rows, right=("ID", "RUN"), width=width()))
    say_next(f"ingest quarantine show {found[0].id}")


@app.command(epilog="\b\nExample:  ingest quarantine show 3")
def show(
    record: Annotated[int, typer.Argument(metavar="ID", help="As in `ingest quarantine list`.")],
    as_json: Json = False,
) -> None:
    """Show one record: why it was refused, where it came from, and its text."""
    from ingest.errors import NotFound
    from ingest.store.views_records import find_quarantined

    with reading() as conn:
        found = find_quarantined(conn, record)
    if found is None:
        raise NotFound(f"no record {record} in quarantine: see `ingest quarantine list`")
    if as_json:
        write_json("quarantined", {"record": found})
        return
    write_lines(
        details(
            [
                ("record", f"{found.id}  {found.name}  {found.status}"),
                ("reason", f"{found.field_path}: {found.reason}"),
                ("key", found.record_key or "none could be read"),
                ("from", f"run {found.run_id}, batch {found.batch_no}, item {found.item_no}"),
                ("when", f"{short_moment(found.created_at)} ({ago(found.created_at, found.now)})"),
            ]
        )
    )
    write(_indented(found.record))
    say_next(f"ingest runs show {found.run_id}")


def _indented(text: str) -> str:
    """Return JSON laid out for reading, or the text as it is; `--json` gives the exact text."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except ValueError:
        return text
