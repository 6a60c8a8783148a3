"""Following a fire: live progress on a terminal, one line every ten seconds elsewhere, until nothing more will come."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from ingest.cli.screen import say
from ingest.cli.texts import plural

if TYPE_CHECKING:
    from ingest.db import Database
    from ingest.store.views_runs import FireView

_POLL_SECONDS = 0.5
_LINE_SECONDS = 10.0


class _Show(Protocol):
    def __call__(self, fire: "FireView", rate: float) -> None: ...


def watch_fire(database: "Database", fire_id: int, *, show: bool) -> None:
    """Return when every window of the fire has ended."""
    from ingest.store.views_runs import get_fire

    started = time.monotonic()
    with _progress() if show else _silence() as tell:
        while True:
            with database.transaction() as conn:
                fire = get_fire(conn, fire_id)
            tell(fire, fire.records / max(time.monotonic() - started, 0.001))
            if fire.over:
                return
            time.sleep(_POLL_SECONDS)


def describe_progress(fire: "FireView", rate: float) -> str:
    """Return how far the fire is, on one line."""
    if fire.result == "FIRED":
        return f"{fire.name}  waiting for a planner"
    windows = f"{fire.succeeded + fire.failed}/{plural(fire.tasks, 'window')}{'+' if fire.slicing else ''}"
    return f"{fire.name}  {windows}  {plural(fire.pages, 'page')}  {fire.records:,} rec  {rate:,.0f} rec/s"


def describe_end(fire: "FireView") -> str:
    """Return how the fire ended, in one sentence."""
    match fire.result:
        case "NOTHING":
            reason = str(fire.remarks.get("nothing", "it is all covered")).removeprefix(f"{fire.name} is ")
            return f"{fire.name}: nothing to fetch: {reason}"
        case "SKIPPED":
            return f"{fire.name}: skipped, {fire.remarks.get('skipped', 'no reason given')}"
        case "FAILED":
            problems = fire.remarks.get("errors") or ["no reason given"]
            return f"{fire.name}: could not be planned: " + "; ".join(map(str, problems))
    fetched = (
        f"{plural(fire.records, 'record')} in {plural(fire.pages, 'page')}: {fire.inserted:,} new, "
        f"{fire.updated:,} changed, {fire.quarantined:,} quarantined"
    )
    if fire.failed:
        return f"{fire.name}: {plural(fire.failed, 'window')} of {fire.tasks} failed ({fire.error}); {fetched}"
    return f"{fire.name}: done, {plural(fire.tasks, 'window')}, {fetched}"


def exit_code_of(fire: "FireView") -> int:
    """Return 0 for done, 1 for failed windows, 2 for a spec that does not compile, 6 for a skipped fire."""
    by_result = {"FAILED": 2, "SKIPPED": 6}
    return by_result.get(fire.result, 1 if fire.failed else 0)


@contextmanager
def _silence() -> Iterator[_Show]:
    yield lambda fire, rate: None


@contextmanager
def _progress() -> Iterator[_Show]:
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("", total=None)

        def tell(fire: "FireView", rate: float) -> None:
            done = fire.succeeded + fire.failed
            total = fire.tasks or None
            progress.update(bar, description=describe_progress(fire, rate), completed=done, total=total)

        yield tell


class _Lines:
    """One line at once, then one every ten seconds."""

    def __init__(self) -> None:
        self._next = 0.0

    def __call__(self, fire: "FireView", rate: float) -> None:
        if time.monotonic() >= self._next and not fire.over:
            self._next = time.monotonic() + _LINE_SECONDS
            say(describe_progress(fire, rate))
