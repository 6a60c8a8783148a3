"""What every command that applies to the registry shares: the way to it, and how problems and reports are shown."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import typer

from ingest.cli.screen import say, write_json, write_lines

if TYPE_CHECKING:
    from ingest.db import Database
    from ingest.settings import Settings
    from registry.report import Report

INVALID = 2


@contextmanager
def open_registry() -> "Iterator[tuple[Settings, Database]]":
    """Yield the settings and a database that answers and has the right schema."""
    from ingest.connect import open_database
    from ingest.settings import load_settings
    from ingest.store.schema import require_current

    settings = load_settings()
    database = open_database(settings, application="ingest-registry")
    try:
        database.check()
        with database.transaction() as conn:
            require_current(conn)
        yield settings, database
    finally:
        database.close()


def or_problems(work: "Callable[[], Report]", *, files: int, as_json: bool) -> "Report":
    """Run `work`; if files are wrong print every problem and end with 2."""
    from registry.problems import FilesInvalid

    try:
        return work()
    except FilesInvalid as error:
        write_problems(error.found, files=files, as_json=as_json)
        say("Nothing was applied.")
        raise typer.Exit(INVALID) from None


def write_problems(problems: Any, *, files: int, as_json: bool) -> None:
    """Show every problem, and how many there are."""
    from registry.problems import format_problem, summarize

    if as_json:
        write_json("problems", {"problems": [problem.as_data() for problem in problems]})
    else:
        write_lines(format_problem(problem) for problem in problems)
    say(summarize(problems, files=files))


def list_changed(database: "Database", sources: Collection[str]) -> list[str]:
    """Return a line for every schedule of these sources that was changed at run time: an apply leaves it so."""
    from ingest.cli.schedules import describe_rhythm
    from ingest.store.views_schedules import list_schedules

    with database.transaction() as conn:
        found = [schedule for schedule in list_schedules(conn) if schedule.source in sources and schedule.overrides]
    return [
        f"{schedule.code}: schedule changed at run time by {schedule.updated_by} ({', '.join(schedule.overrides)}; now "
        f"{describe_rhythm(schedule.rhythm)}); apply leaves it so, `ingest schedules reset {schedule.code}` undoes it"
        for schedule in found
    ]


def write_report(report: "Report", *, as_json: bool) -> None:
    """Show what an apply changed or would change."""
    if as_json:
        write_json("registry-report", {"sources": [source.as_data() for source in report.sources]})
        return
    from registry.report import format_report

    for source in report.sources:
        write_lines(format_report(source))
