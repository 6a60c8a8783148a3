"""`ingest try`: a few pages of a stream through the code production runs; nothing is stored."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ingest.cli.bench import check_lines, find_applied, find_snapshots, read_moment
from ingest.cli.screen import say, say_next, width, write, write_json, write_lines
from ingest.cli.session import open_checked
from ingest.cli.texts import details, short_size, shorten, table

if TYPE_CHECKING:
    from datetime import datetime

    from executor.trial import Span, TriedPage
    from ingest.spec.snapshot import Snapshot

OPTIONS = {
    "epilog": """\b
Examples:  ingest try shop.items                                the first page of the newest window
           ingest try shop.items --pages 5 --from 2024-01-01 --to 2024-01-08
           ingest try shop.items --pages 3 --record fixtures    keep the answers for `ingest test shop`"""
}
_HEADERS_SHOWN = ("content-type", "link", "retry-after", "x-ratelimit-remaining", "etag", "date")


def try_out(
    stream: Annotated[str, typer.Argument(metavar="SOURCE.ENDPOINT", help="What to try.")],
    file: Annotated[Path | None, typer.Option("--file", help="The source file; default: the sources folder.")] = None,
    applied: Annotated[bool, typer.Option("--applied", help="What the registry holds, not the file.")] = False,
    pages: Annotated[int, typer.Option("--pages", min=1, max=1000, help="How many pages at most.")] = 1,
    start: Annotated[str | None, typer.Option("--from", help="The window's start; default: the newest window.")] = None,
    end: Annotated[str | None, typer.Option("--to", help="The window's end, not part of it.")] = None,
    partition: Annotated[list[str] | None, typer.Option("--partition", help="NAME=VALUE, for each name.")] = None,
    rows: Annotated[int, typer.Option("--rows", min=0, max=1000, help="How many records to show of a page.")] = 5,
    record: Annotated[Path | None, typer.Option("--record", help="Keep request and answers in DIR.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Ask a source for a few pages as an executor would, and show all of it; nothing is stored."""
    from executor.fixtures import record_pages
    from executor.soundness import check_pages
    from executor.trial import live_fetch, try_pages
    from ingest.errors import NotFound

    with open_checked() as (database, settings):
        found = find_applied(stream, database) if applied else find_snapshots(stream, settings, file)
        if len(found) != 1:
            raise NotFound(f"say which endpoint: {', '.join(snapshot.name for snapshot in found)}")
        snapshot = found[0]
        span = _choose_span(snapshot, read_moment(start, "--from"), read_moment(end, "--to"))
        parts = _read_parts(partition or [])
        with live_fetch(snapshot, database, settings, say) as fetch:
            tried = []
            for page in try_pages(snapshot, fetch, span=span, most=pages, partition=parts):
                tried.append(page)
                if not as_json:
                    _write_page(snapshot, page, rows)
    checks = check_pages(snapshot, tried, span)
    if as_json:
        shown = [_page_data(snapshot, page, rows) for page in tried]
        content = {
            "stream": snapshot.name,
            "window": span,
            "pages": shown,
            "columns": _inferred(tried),
            "checks": checks,
        }
        write_json("try", content)
    else:
        write_lines(["", *check_lines(checks, width=width())])
        _write_inferred(snapshot, tried)
    if record is not None:
        folder = record / snapshot.name
        files = record_pages(folder, tried, span=span, partition=parts)
        say(f"Kept {len(files)} files in {folder}/.")
        say_next(f"ingest test {snapshot.provenance_code} --fixtures {record}")
    if any(check.verdict == "fail" for check in checks):
        raise typer.Exit(1)


def _choose_span(snapshot: "Snapshot", start: "datetime | None", end: "datetime | None") -> "Span | None":
    """Return the window asked for, or the newest one a planner could plan now."""
    from datetime import UTC, datetime, timedelta

    from ingest.errors import OperatorError
    from ingest.spec.windows import coarsest_unit, floor_to_unit, horizon

    window = snapshot.window
    if window.filter != "server":
        if start or end:
            raise OperatorError(f"{snapshot.name} has no time filter: --from and --to would be ignored")
        return None
    end = end or horizon(window, datetime.now(UTC))
    if start is None:
        start = floor_to_unit(end - timedelta(seconds=window.max_s), coarsest_unit(window), window.zone)
        start = max(start, window.start) if window.start and window.start < end else start
    if start >= end:
        raise OperatorError("--from must be before --to")
    return start, end


def _read_parts(written: list[str]) -> dict[str, str]:
    from ingest.errors import OperatorError

    wrong = [text for text in written if "=" not in text]
    if wrong:
        raise OperatorError(f"--partition '{wrong[0]}': write NAME=VALUE")
    return dict(text.split("=", 1) for text in written)


def _auth_text(snapshot: "Snapshot") -> str:
    auth = snapshot.auth
    if auth.type == "NONE":
        return ""
    return f"{auth.type.lower().replace('_', ' ')} [secret] from {auth.secret_ref}"


def _write_page(snapshot: "Snapshot", page: "TriedPage", rows: int) -> None:
    from executor.secrets import REDACTOR
    from executor.transport import target_of

    write(f"── page {page.number} ──")
    pairs: list[tuple[str, str]] = []
    if page.request is not None:
        pairs.append(("request", REDACTOR.clean(f"{page.request.method} {target_of(page.request)}")))
        pairs += [("", REDACTOR.clean(f"{name}: {value}")) for name, value in page.request.headers]
        pairs.append(("auth", _auth_text(snapshot)))
        if page.request.body is not None:
            pairs.append(("body", shorten(REDACTOR.sample(page.request.body), 400)))
    if page.answer is not None:
        answer = page.answer
        size, spent = short_size(len(answer.body)), f"{answer.latency_s * 1000:.0f} ms"
        pairs.append(("answer", f"HTTP {answer.status}, {size}, {spent}, {page.tally.attempts} attempt(s)"))
        pairs += [("", REDACTOR.clean(f"{n}: {answer.headers[n]}")) for n in _HEADERS_SHOWN if n in answer.headers]
    pairs += [("rule", str(verdict)) for verdict in page.tally.verdicts]
    if page.decoded is not None and page.mapped is not None:
        seen, mapped = page.decoded.seen, page.mapped
        counts = f"{len(mapped.records)} good, {len(mapped.rejects)} rejected, {mapped.duplicate} duplicate"
        pairs.append(("records", f"{seen.items}: {counts}, {mapped.filtered} filtered"))
        pairs.append(("total", "" if seen.total is None else f"{seen.total:,}"))
    if page.step is not None:
        following = page.step.following
        pairs.append(("next", shorten(REDACTOR.clean(_next_text(following)), 400) if following else ""))
        pairs.append(("stop", page.step.reason))
    if page.error is not None:
        pairs.append(("error", REDACTOR.clean(f"{type(page.error).__name__}: {page.error}")))
        pairs.append(("sample", shorten(getattr(page.error, "excerpt", None) or "", 400)))
    write_lines(details(pairs))
    if page.mapped is not None and page.mapped.records and rows:
        names = ["id", "updated_at", *(column.name for column in snapshot.mapping.columns)]
        cells = [[shorten(str(value), 40) for value in _row(record)] for record in page.mapped.records[:rows]]
        write_lines(["", *table([name.upper() for name in names], cells, width=width())])
    if page.mapped is not None and page.mapped.rejects:
        shown = [
            [str(r.item_no + 1), r.path or "", r.reason, shorten(r.record, 60)] for r in page.mapped.rejects[:rows]
        ]
        write_lines(["", *table(["REJECTED", "PATH", "REASON", "RECORD"], shown, width=width())])


def _next_text(state: dict[str, Any]) -> str:
    kept = ("offset", "page", "token", "url")
    return ", ".join(f"{name} {state[name]}" for name in kept if state.get(name) is not None)


def _row(record: Any) -> list[Any]:
    from ingest.store.pages import key_text

    values = (key_text(record.key), record.updated_at, *record.columns)
    return ["" if value is None else value for value in values]


def _page_data(snapshot: "Snapshot", page: "TriedPage", rows: int) -> dict[str, Any]:
    from executor.fetch import response_digest
    from executor.secrets import REDACTOR

    names = ["id", "updated_at", *(column.name for column in snapshot.mapping.columns)]
    answer, mapped, step = page.answer, page.mapped, page.step
    records = [dict(zip(names, map(_plain, _row(r)), strict=True)) for r in mapped.records[:rows]] if mapped else []
    rejects = [{"item": r.item_no + 1, "path": r.path, "reason": r.reason} for r in mapped.rejects] if mapped else []
    return {
        "number": page.number,
        "request": None if page.request is None else page.request.digest(),
        "answer": None if answer is None else response_digest(answer, snapshot.response.items),
        "stats": page.tally.stats(),
        "items": page.decoded.seen.items if page.decoded else None,
        "total": page.decoded.seen.total if page.decoded else None,
        "records": records,
        "rejects": rejects,
        "next": step.following if step else None,
        "stop": step.reason if step else None,
        "error": None if page.error is None else REDACTOR.clean(f"{type(page.error).__name__}: {page.error}"),
    }


def _plain(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) else str(value)


def _inferred(pages: "list[TriedPage]") -> list[Any]:
    import json

    from registry.infer import infer_columns

    return infer_columns([json.loads(bytes(raw)) for page in pages if page.decoded for raw in page.decoded.items])


def _write_inferred(snapshot: "Snapshot", pages: "list[TriedPage]") -> None:
    """Show what the records hold beside what the file declares."""
    declared = {column.path: column.type for column in snapshot.mapping.columns}
    named = {part.path for part in snapshot.mapping.identity}
    named |= {snapshot.mapping.updated_at.path} if snapshot.mapping.updated_at else set()
    cells = []
    for column in _inferred(pages):
        state = "id or time" if column.path in named else declared.get(column.path, "-")
        cells.append([column.name, column.path, column.type, state, str(column.seen), shorten(str(column.example), 40)])
    if cells:
        write_lines(["", *table(["FIELD", "PATH", "LOOKS LIKE", "DECLARED", "SEEN", "EXAMPLE"], cells, width=width())])
