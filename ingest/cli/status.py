"""`ingest status`: every stream's last outcome and what it does now, as two separate marks."""

import sys
import time
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from ingest.cli.names import find_scope
from ingest.cli.screen import paint_word, plain, say, say_next, width, write_json, write_lines
from ingest.cli.session import open_checked
from ingest.cli.texts import ago, next_at, plural, short_count, short_moment, short_span, shorten, table

if TYPE_CHECKING:
    from ingest.db import Connection
    from ingest.store.views import Queue, Stream

OPTIONS = {
    "epilog": """\b
Examples:  ingest status                   all streams
           ingest status crossref.works    one
           ingest status --check           for cron and monitors: exits 3 if a stream is failed or stale
           ingest status --watch           again every two seconds"""
}

_COLOURS = {"ok": "green", "failed": "red", "stale": "yellow", "never": "grey"}
_WATCH_SECONDS = 2.0
_LONGEST_REASON = 60


def status(
    scope: Annotated[str | None, typer.Argument(metavar="SOURCE[.ENDPOINT]", help="Only these.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Exit 3 if a stream is failed or stale.")] = False,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again and again until Ctrl-C.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show how every stream is: its last outcome, what it does now, how far it is, when it runs next."""
    if watch and (check or as_json):
        raise typer.BadParameter("--watch goes with neither --check nor --json")
    with open_checked() as (database, _):
        while True:
            with database.transaction() as conn:
                streams, queue = _read(conn, scope)
            if as_json:
                _write_json(streams, queue)
            else:
                lines = describe(streams, queue, terminal=width())
                if watch and sys.stdout.isatty():
                    lines = ["\x1b[H" + lines[0], *lines[1:]]
                    lines = [line + "\x1b[K" for line in lines[:-1]] + [lines[-1] + "\x1b[K\x1b[J"]
                write_lines(lines)
            if not watch:
                break
            time.sleep(_WATCH_SECONDS)
    bad = [stream for stream in streams if stream.state in ("failed", "stale")]
    if check and bad:
        raise typer.Exit(3)
    if not as_json:
        _suggest(streams, queue)


def _read(conn: "Connection", scope: str | None) -> "tuple[list[Stream], Queue]":
    from ingest.store.views import list_streams, read_queue

    source, endpoint = find_scope(conn, scope)
    return list_streams(conn, source=source, endpoint=endpoint), read_queue(conn)


def describe(streams: "Sequence[Stream]", queue: "Queue", *, terminal: int | None) -> list[str]:
    """Return the table, its summary and one line for each thing that is wrong."""
    headers = ["SOURCE.STREAM", "STATE", "LAST OK", "NOW", "WATERMARK", "LAG", "NEXT"]
    rows = [
        [
            stream.name,
            stream.state,
            ago(stream.last_ok_at, stream.now),
            describe_activity(stream),
            short_moment(stream.watermark),
            "-" if stream.lag is None else short_span(stream.lag),
            describe_next(stream),
        ]
        for stream in streams
    ]
    if not streams:
        return ["No source is registered yet.", summarize(streams, queue)]
    lines = table(headers, rows, width=terminal)
    painted = [paint_word(line, row[1], _COLOURS[row[1]]) for line, row in zip(lines[1:], rows, strict=True)]
    return [lines[0], *painted, summarize(streams, queue), *_describe_troubles(streams, terminal)]


def describe_activity(stream: "Stream") -> str:
    """Return what the stream does now."""
    queued = f", {short_count(stream.queued)} queued" if stream.queued else ""
    if stream.running:
        many = f" {stream.running}:" if stream.running > 1 else ""
        return f"running{many} b{stream.page} {short_count(stream.records)} rec{queued}"
    if stream.held is not None:
        return shorten(f"held: {stream.held}", 40) + queued
    if stream.queued:
        wait = stream.due_at - stream.now if stream.due_at else timedelta()
        if wait > timedelta():
            return f"waiting {short_span(timedelta(seconds=max(1, round(wait.total_seconds()))))}{queued}"
        return f"queued {short_count(stream.queued)}"
    return "idle" if stream.enabled else "disabled"


def describe_next(stream: "Stream") -> str:
    """Return when the stream's schedule fires next; what stops it comes first (a paused time is no promise)."""
    if not stream.enabled:
        return "disabled"
    if not stream.scheduled:
        return "by hand"
    text = next_at(stream.next_fire_at, stream.now) if stream.next_fire_at else "-"
    return f"held, would run {text}" if stream.held is not None else text


def summarize(streams: "Sequence[Stream]", queue: "Queue") -> str:
    """Return one sentence on all streams, the queue and who is alive."""
    counts = Counter(stream.state for stream in streams)
    states = ", ".join(f"{counts[state]} {state}" for state in _COLOURS if counts[state])
    executors, planners = queue.count_alive("EXECUTOR"), queue.count_alive("PLANNER")
    workers = f"{plural(queue.workers, 'worker')} in {plural(executors, 'executor')}" if executors else "no executor"
    more = "+" if queue.ready >= queue.limit else ""
    parts = [
        f"{plural(len(streams), 'stream')}: {states or 'none'}.",
        f"Queue: {queue.ready:,}{more} ready, {queue.running:,} running, {queue.waiting:,} waiting.",
        f"Alive: {workers}, {plural(planners, 'planner') if planners else 'planner SILENT'}.",
    ]
    return " ".join(parts)


def _describe_troubles(streams: "Sequence[Stream]", terminal: int | None) -> list[str]:
    lines = []
    for stream in streams:
        if stream.state == "failed":
            reason = shorten(stream.error or "failed", _LONGEST_REASON if terminal is None else max(30, terminal - 60))
            at = ago(stream.failed_at, stream.now)
            lines.append(f"! {stream.name}  {reason} ({at})  ->  ingest runs list {stream.name}")
        elif stream.state == "stale" and not stream.running and stream.allowance is not None:
            allowed = short_span(stream.allowance)
            lines.append(f"! {stream.name}  is further behind than {allowed}  ->  ingest coverage {stream.name}")
    return lines


def _suggest(streams: "Sequence[Stream]", queue: "Queue") -> None:
    if not streams:
        say_next("ingest registry apply sources/")
    elif not queue.count_alive("PLANNER"):
        say("No planner is alive: nothing new is planned.")
        say_next("ingest-planner run")
    elif not queue.count_alive("EXECUTOR"):
        say("No executor is alive: nothing is fetched.")
        say_next("ingest-executor run --workers 4")


def _write_json(streams: "Sequence[Stream]", queue: "Queue") -> None:
    write_json(
        "status",
        {
            "streams": [
                {
                    "name": stream.name,
                    "state": stream.state,
                    "lag_s": plain(stream.lag),
                    "allowance_s": plain(stream.allowance),
                }
                | plain(stream)
                for stream in streams
            ],
            "queue": {"ready": queue.ready, "running": queue.running, "waiting": queue.waiting},
            "processes": queue.processes,
        },
    )
