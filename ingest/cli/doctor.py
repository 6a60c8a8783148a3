"""`ingest doctor`: is everything in place? Each line says ok, warn or fail, and what mends it; nothing is changed."""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ingest.cli.screen import paint, say_next, write, write_json
from ingest.cli.texts import ago, plural

if TYPE_CHECKING:
    from ingest.db import Database
    from ingest.settings import Settings

OPTIONS = {
    "epilog": """\b
Example:  ingest doctor      exits 1 if a line says fail"""
}

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}
_OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at; `fix` says what would mend it."""

    level: str
    what: str
    text: str
    fix: str = ""


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Check the installation: python, settings, database, schema, daemons, source files, open origins."""
    findings = []
    for finding in _look():
        findings.append(finding)
        if not as_json:
            write(_describe(finding))
    failed = any(finding.level == "fail" for finding in findings)
    if as_json:
        write_json("doctor", {"ok": not failed, "findings": findings})
    if failed:
        raise typer.Exit(1)
    if not as_json:
        fixes = [finding.fix for finding in findings if finding.fix.startswith("ingest")]
        say_next(fixes[0] if fixes else "ingest status")


def _describe(finding: Finding) -> str:
    mark = paint(finding.level.ljust(4), _COLOURS[finding.level])
    return f"{mark}  {finding.what.ljust(9)}  {finding.text}" + (f"  ->  {finding.fix}" if finding.fix else "")


def _look() -> Iterator[Finding]:
    from ingest.errors import OperatorError
    from ingest.settings import load_settings

    yield _check_python()
    try:
        settings = load_settings()
    except OperatorError as error:
        yield Finding("fail", "settings", str(error), "mend ingest.toml, .env or the environment")
        return
    yield _check_settings()
    yield from _check_database(settings)
    yield _check_sources(settings.sources)
    yield from _check_origins(settings)


def _check_python() -> Finding:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < _OLDEST_PYTHON:  # pip checks it too, but not `python -m`
        return Finding("fail", "python", f"{version} is too old", "use Python 3.11 or newer")
    return Finding("ok", "python", f"{version} in {sys.prefix}")


def _check_settings() -> Finding:
    found = [name for name in ("ingest.toml", ".env") if Path(name).is_file()]
    if found:
        return Finding("ok", "settings", f"read from {' and '.join(found)} and INGEST_*")
    return Finding("ok", "settings", "no ingest.toml here: defaults and INGEST_*")


def _check_database(settings: "Settings") -> Iterator[Finding]:
    from ingest.db import Database
    from ingest.errors import OperatorError

    url = settings.database_url
    if url is None:
        from ingest.embedded.server import status

        try:
            found = status(settings.home)
        except OperatorError as error:
            yield Finding("fail", "database", str(error))
            return
        if found.url is None:
            known = found.state != "absent"
            text = f"embedded, {found.state} in {found.cluster}" if known else f"none yet in {settings.home}/"
            yield Finding("warn", "database", text, "ingest db start" if known else "ingest db migrate")
            return
        url = found.url
    database = Database(url)
    try:
        kind = f"INGEST_DATABASE_URL ({database.engine.url.host or 'local'})" if settings.database_url else "embedded"
        yield Finding("ok", "database", f"{kind}, PostgreSQL {database.check()}")
        yield from _check_inside(database)
    except OperatorError as error:
        yield Finding("fail", "database", str(error), "start it, or correct INGEST_DATABASE_URL")
    finally:
        database.close()


def _check_inside(database: "Database") -> Iterator[Finding]:
    from ingest.errors import OperatorError
    from ingest.store.schema import head_revision, require_current

    try:
        with database.transaction() as conn:
            require_current(conn)
    except OperatorError as error:
        yield Finding("fail", "schema", str(error).partition(": run")[0], "ingest db migrate")
        return
    yield Finding("ok", "schema", f"revision {head_revision()}, current")
    yield from _check_daemons(database)


def _check_daemons(database: "Database") -> Iterator[Finding]:
    from ingest.store.views import list_endpoints, read_queue

    with database.transaction() as conn:
        queue, endpoints = read_queue(conn), list_endpoints(conn)
    for kind, command in (("PLANNER", "ingest-planner run"), ("EXECUTOR", "ingest-executor run --workers 4")):
        alive = [process for process in queue.processes if process.alive and process.kind == kind]
        name = kind.lower()
        if alive:
            newest = max(alive, key=lambda process: process.last_seen_at)
            seen = f"on {', '.join(sorted({process.host for process in alive}))}, version {newest.version}"
            yield Finding("ok", name, f"{plural(len(alive), name)} alive {seen}")
            continue
        gone = max((p.last_seen_at for p in queue.processes if p.kind == kind), default=None)
        last = f", last seen {ago(gone, queue.now)}" if gone else ""
        yield Finding("warn", name, f"none alive{last}", command)
    if endpoints:
        yield Finding("ok", "registry", f"{plural(len(endpoints), 'endpoint')} registered")
    else:
        yield Finding("warn", "registry", "no source is registered", "ingest registry apply sources/")


def _check_sources(folder: Path) -> Finding:
    if not folder.is_dir():
        return Finding("warn", "sources", f"no folder {folder}/ here", "ingest init")
    count = sum(path.suffix in (".yaml", ".yml") for path in folder.iterdir())
    if not count:
        return Finding("warn", "sources", f"{folder}/ holds no *.yaml", "ingest init")
    return Finding("ok", "sources", f"{plural(count, 'file')} in {folder}/")


def _check_origins(settings: "Settings") -> Iterator[Finding]:
    opened = settings.open_origins
    if not opened:
        yield Finding("ok", "origins", "only public https is opened")
        return
    wide = [origin for origin in opened if origin.endswith(":*")]
    text = f"plain http or private, opened on purpose: {', '.join(opened)}"
    fix = "name the port instead of *" if wide else ""
    yield Finding("warn" if wide else "ok", "origins", text, fix)
