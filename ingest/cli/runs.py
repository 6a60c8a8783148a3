"""`ingest runs`: what ran, how it ended, and the ledger of its pages."""

from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

import typer

from ingest.cli.names import find_scope, get_run
from ingest.cli.screen import paint, paint_word, plain, say_next, width, write, write_json, write_lines
from ingest.cli.session import reading
from ingest.cli.texts import ago, details, plural, short_moment, short_size, short_span, short_window, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ingest.store.views_runs import BatchView, Lineage, RunView

app = typer.Typer(no_args_is_help=True, help="Runs: what ran, how it ended, and the ledger of its pages.")

Json = Annotated[bool, typer.Option("--json", help="One JSON object.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="Its number, `last`, `last:SOURCE` or `last:SOURCE.ENDPOINT`.")]

_COLOURS = {"SUCCEEDED": "green", "FAILED": "red", "PARTIAL": "yellow", "RUNNING": "bold"}
_NUMBERS = ("RUN", "PAGES", "RECORDS", "NEW", "CHANGED", "QUARANTINED", "TOOK")


@app.command(
    name="list", epilog="\b\nExamples:  ingest runs list\n           ingest runs list crossref --status failed"
)
def list_(
    scope: Annotated[str | None, typer.Argument(metavar="SOURCE[.ENDPOINT]", help="Only these.")] = None,
    status: Annotated[str | None, typer.Option("--status", help="Only those: running, succeeded, failed ...")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000, help="How many at most.")] = 20,
    as_json: Json = False,
) -> None:
    """List runs, newest first."""
    from ingest.states import RunStatus
    from ingest.store.views_runs import list_runs

    if status is not None and status.upper() not in RunStatus.__members__:
        raise typer.BadParameter(f"'{status}' is none of {', '.join(name.lower() for name in RunStatus.__members__)}")
    with reading() as conn:
        source, endpoint = find_scope(conn, scope)
        wanted = status.upper() if status else None
        found = list_runs(conn, source=source, endpoint=endpoint, status=wanted, limit=limit)
    if as_json:
        write_json("runs", {"runs": found})
        return
    write_lines(_describe_list(found))
    if found:
        troubled = next((run for run in found if run.status == "FAILED"), found[0])
        say_next(f"ingest runs show {troubled.id}")


def _describe_list(found: "Sequence[RunView]") -> list[str]:
    headers = ["RUN", "STREAM", "STATUS", "STARTED", "TOOK", "PAGES", "RECORDS", "NEW", "CHANGED", "QUARANTINED"]
    headers += ["WINDOW", "ERROR"]
    rows = [
        [
            str(run.id),
            run.name,
            run.status,
            ago(run.started_at, run.now),
            short_span(run.took),
            f"{run.pages:,}",
            f"{run.records:,}",
            f"{run.inserted:,}",
            f"{run.updated:,}",
            f"{run.quarantined:,}",
            short_window(run.window_from, run.window_to),
            run.error or "",
        ]
        for run in found
    ]
    lines = table(headers, rows, right=_NUMBERS, width=width())
    return [
        lines[0],
        *(paint_word(line, row[2], _COLOURS.get(row[2], "")) for line, row in zip(lines[1:], rows, strict=True)),
    ]


@app.command(epilog="\b\nExamples:  ingest runs show 41\n           ingest runs show last:crossref")
def show(run: Run, as_json: Json = False) -> None:
    """Show one run: where it comes from, what became of every record, and the other attempts at its task."""
    from ingest.store.views_runs import get_lineage, list_runs

    with reading() as conn:
        found = get_run(conn, run)
        lineage = get_lineage(conn, found.id)
        attempts = list_runs(conn, task_id=found.task_id, limit=20)[::-1]
    if as_json:
        write_json("run", {"run": found, "lineage": lineage, "attempts": attempts})
        return
    write_lines(_describe(found, lineage))
    if len(attempts) > 1:
        write("attempts")
        write_lines("  " + line for line in _describe_attempts(attempts, found.id))
    say_next(f"ingest runs batches {found.id}")


def _describe(run: "RunView", lineage: "Lineage") -> list[str]:
    became = ", ".join(f"{lineage.counts[name]:,} {name}" for name in _FATES if lineage.counts.get(name))
    resumed = f" (began at page {lineage.first_page + 1})" if lineage.first_page else ""
    ended = f"{short_moment(run.finished_at)}, after {short_span(run.took)}" if run.finished_at else "not yet"
    throttled = f", of them {run.throttled:,} answered 429" if run.throttled else ""
    stored = f"{plural(lineage.task_pages, 'page')} stored"
    fired = f"fire {lineage.schedule_instance_id} ({lineage.trigger})"
    return details(
        [
            ("run", f"{run.id}  {run.name}  {run.operation}"),
            ("status", paint(run.status, _COLOURS.get(run.status, ""))),
            ("error", run.error or ""),
            ("window", short_window(run.window_from, run.window_to)),
            ("started", f"{short_moment(run.started_at)} ({ago(run.started_at, run.now)})"),
            ("ended", ended),
            ("requests", f"{run.requests:,}{throttled}"),
            ("pages", f"{run.pages:,}{resumed}"),
            ("records", f"{run.records:,} fetched" + (f" = {became}" if became else "")),
            ("task", f"{run.task_id}, attempt {run.attempt_no}, {lineage.task_status}, {stored}"),
            ("lineage", f"{fired} > plan {lineage.plan_id} > slice {lineage.slice_id}"),
            ("worker", lineage.lease_owner),
            ("spec", lineage.spec_fingerprint),
        ]
    )


_FATES = ("inserted", "updated", "unchanged", "stale", "duplicate", "filtered", "quarantined")


def _describe_attempts(attempts: "Sequence[RunView]", shown: int) -> list[str]:
    rows = [
        [
            ("> " if attempt.id == shown else "  ") + str(attempt.id),
            attempt.status,
            short_moment(attempt.started_at),
            short_span(attempt.took),
            f"{attempt.pages:,}",
            attempt.error or "",
        ]
        for attempt in attempts
    ]
    return table(["  RUN", "STATUS", "STARTED", "TOOK", "PAGES", "ERROR"], rows, right=("PAGES", "TOOK"), width=width())


@app.command(
    epilog="\b\nExamples:  ingest runs batches last\n           ingest runs batches 41 --json | jq '.batches[].url'"
)
def batches(
    run: Run,
    after: Annotated[int, typer.Option("--after", min=0, help="Only batches numbered above this.")] = 0,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="How many at most.")] = 100,
    as_json: Json = False,
) -> None:
    """Show the ledger of a run: one line per page asked for."""
    from ingest.store.views_runs import list_batches

    with reading() as conn:
        found = get_run(conn, run)
        listed = list_batches(conn, found.id, after=after, limit=limit)
    if as_json:
        write_json("batches", {"run": found.id, "batches": [plain(batch) for batch in listed]})
        return
    headers = [
        "B",
        "STATUS",
        "HTTP",
        "ITEMS",
        "NEW",
        "CHANGED",
        "SAME",
        "QUARANTINED",
        "SIZE",
        "MS",
        "TRIES",
        "REQUEST",
    ]
    rows = [_describe_batch(batch) for batch in listed]
    write_lines(table(headers, rows, right=[*headers[2:-1], "B"], width=width()))
    if len(listed) == limit:
        say_next(f"ingest runs batches {found.id} --after {listed[-1].batch_no}")
    else:
        say_next(f"ingest runs show {found.id}")


def _describe_batch(batch: "BatchView") -> list[str]:
    stats: dict[str, Any] = batch.stats
    query = urlencode([(name, value) for name, value in batch.query or []], safe="*:,/+")
    request = f"{batch.method or ''} {batch.url or ''}{'?' + query if query else ''}".strip()
    skipped = int(stats.get("skipped", 0))
    return [
        str(batch.batch_no),
        batch.status,
        str(batch.http_status or "-"),
        f"{stats.get('itemsCount', 0):,}",
        f"{stats.get('inserted', 0):,}",
        f"{stats.get('updated', 0):,}",
        f"{skipped:,}",
        f"{stats.get('quarantined', 0):,}",
        short_size(batch.bytes) if batch.bytes else "-",
        str(stats.get("latencyMs", "-")),
        str(int(stats.get("retryCount", 0)) + 1),
        request if batch.error is None else f"{batch.error}  {request}",
    ]
