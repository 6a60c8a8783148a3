"""`ingest coverage`: which stretches of time are there, which are on their way and which are missing."""

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from ingest.cli.names import find_scope
from ingest.cli.screen import paint, plain, say, say_next, write_json, write_lines
from ingest.cli.session import reading
from ingest.cli.texts import plural, short_moment, short_span, short_window, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ingest.store.views_series import CoverageView, Span

OPTIONS = {
    "epilog": """\b
Examples:  ingest coverage                   one line per stream
           ingest coverage crossref.works    every range, every gap
           ingest coverage --json | jq '.series[] | select(.holes != [])'"""
}

_MOST_SHOWN = 40


def coverage(
    scope: Annotated[str | None, typer.Argument(metavar="SOURCE[.ENDPOINT]", help="Only these.")] = None,
    old: Annotated[bool, typer.Option("--old", help="Also selections no longer asked for.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Show what is covered, what is in flight, what is missing in between, and what the next run will ask for."""
    from ingest.store.views_series import list_coverage

    with reading() as conn:
        source, endpoint = find_scope(conn, scope)
        found = [view for view in list_coverage(conn, source=source, endpoint=endpoint) if view.current or old]
    if as_json:
        write_json(
            "coverage",
            {"series": [plain(view) | {"holes": plain(view.holes), "due": plain(view.due)} for view in found]},
        )
        return
    if not found:
        say("Nothing is covered yet.")
        say_next("ingest status")
        return
    if endpoint is None:
        write_lines(_describe_all(found))
        say_next(f"ingest coverage {found[0].name}")
        return
    for view in found:
        write_lines(_describe_one(view))
    say_next(f"ingest run {found[0].name} --follow" if found[0].holes else f"ingest cursors show {found[0].name}")


def _describe_all(found: "Sequence[CoverageView]") -> list[str]:
    headers = ["STREAM", "COVERED", "FROM", "TO", "RANGES", "IN FLIGHT", "HOLES", "DUE", ""]
    rows = [
        [
            _name(view),
            f"{view.share:.1%}" if view.windowed else "walked",
            short_moment(view.covered[0][0]) if view.covered and view.windowed else "-",
            short_moment(view.covered[-1][1]) if view.covered else "-",
            str(len(view.covered)),
            _total(view.in_flight) if view.windowed else plural(len(view.in_flight), "walk") if view.in_flight else "-",
            _total(view.holes),
            short_span(view.due[1] - view.due[0]) if view.due else "-",
            "" if view.current else "old",
        ]
        for view in found
    ]
    return table(headers, rows, right=("COVERED", "RANGES"))


def _name(view: "CoverageView") -> str:
    return view.name + (f"[{view.partition_key}]" if view.partition_key else "")


def _total(spans: "Sequence[Span]") -> str:
    total = sum((end - start for start, end in spans), timedelta())
    return f"{short_span(total)} in {len(spans)}" if spans else "-"


def _describe_one(view: "CoverageView") -> list[str]:
    if not view.windowed:
        last = f"last walk stands for everything up to {short_moment(view.covered[-1][1])}" if view.covered else "never"
        return [f"{_name(view)}  has no time filter: each fire walks it whole; {last}"]
    wanted = short_window(view.anchor, view.wanted_to)
    head = f"{_name(view)}  {view.share:.1%} of {wanted}" + ("" if view.current else "  (old selection)")
    marks = [("covered", span) for span in view.covered]
    marks += [("in flight", span) for span in view.in_flight] + [("MISSING", span) for span in view.holes]
    marks += [("due", view.due)] if view.due else []
    marks.sort(key=lambda mark: mark[1])
    lines = [head]
    for kind, span in marks[:_MOST_SHOWN]:
        line = f"  {kind.ljust(9)}  {short_window(*span)}  ({short_span(span[1] - span[0])})"
        lines.append(paint(line, {"covered": "green", "MISSING": "red"}.get(kind, "yellow")))
    if len(marks) > _MOST_SHOWN:
        lines.append(f"  and {len(marks) - _MOST_SHOWN} more: --json shows all")
    return lines
