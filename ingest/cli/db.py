"""`ingest db`: the database, embedded or given: start, stop, look, migrate, and a psql on the right address."""

import os
import shutil
from typing import TYPE_CHECKING, Annotated
from urllib.parse import unquote, urlsplit, urlunsplit

import typer

from ingest.cli.screen import say, say_next, write, write_json, write_lines
from ingest.cli.texts import details

if TYPE_CHECKING:
    from ingest.settings import Settings

app = typer.Typer(
    no_args_is_help=True,
    help="The database: INGEST_DATABASE_URL if set, else an embedded PostgreSQL under INGEST_HOME (.ingest).",
)

Json = Annotated[bool, typer.Option("--json", help="One JSON object.")]


@app.command(epilog="\b\nExample:  ingest db start      the first time it makes the database, in about two seconds")
def start(as_json: Json = False) -> None:
    """Start the embedded PostgreSQL, made on first use."""
    from ingest.embedded.server import start as start_server
    from ingest.settings import load_settings

    settings = load_settings()
    _require_embedded(settings)
    server = start_server(settings.home, say=say)
    if as_json:
        write_json("db-start", {"libpq": server.libpq, "pid": server.pid, "data_dir": server.data_dir})
        return
    write(f"PostgreSQL runs (process {server.pid}) in {server.data_dir}, socket only")
    write(server.libpq)
    say_next("ingest db migrate")


@app.command(epilog="\b\nExample:  ingest db stop      open transactions are rolled back; nothing committed is lost")
def stop() -> None:
    """Stop the embedded PostgreSQL."""
    from ingest.embedded.server import stop as stop_server
    from ingest.settings import load_settings

    settings = load_settings()
    _require_embedded(settings)
    stopped = stop_server(settings.home)
    write(f"PostgreSQL in {settings.home}/ {'stopped' if stopped else 'was not running'}")


@app.command()
def status(as_json: Json = False) -> None:
    """Show where the database is, whether it answers and how its schema stands; changes nothing."""
    from ingest.embedded.server import status as look
    from ingest.settings import load_settings

    settings = load_settings()
    if settings.database_url:
        facts = {"kind": "given", "state": "", "url": "", "log": ""}
        url: str | None = settings.database_url
    else:
        found = look(settings.home)
        facts = {"kind": "embedded", "state": found.state, "url": "", "log": str(found.log)}
        facts |= {"process": str(found.pid or ""), "folder": str(found.cluster)}
        url = found.url
    facts |= _look_inside(url)
    if as_json:
        write_json("db-status", {name: value for name, value in facts.items() if value})
    else:
        write_lines(details(facts.items()))
    _say_next(facts)


def _look_inside(url: str | None) -> dict[str, str]:
    if url is None:
        return {}
    from ingest.db import Database, redact_url
    from ingest.errors import OperatorError
    from ingest.store.schema import current_revision, head_revision

    database = Database(url)
    shown = {"url": redact_url(url).replace("postgresql+psycopg://", "postgresql://")}
    try:
        shown["version"] = f"PostgreSQL {database.check()}"
        with database.transaction() as conn:
            at = current_revision(conn)
        current = at == head_revision()
        shown["revision"] = f"{at} (current)" if current else f"{at or 'none'} (this code needs {head_revision()})"
        shown["state"] = "ready"
    except OperatorError as error:
        shown["state"] = f"away: {error}"
    finally:
        database.close()
    return shown


def _say_next(facts: dict[str, str]) -> None:
    if facts["state"].startswith("away"):
        raise typer.Exit(5)
    if facts["state"] == "absent" or (facts["state"] == "ready" and "(current)" not in facts.get("revision", "")):
        say_next("ingest db migrate")
    elif facts["state"] == "stopped":
        say_next("ingest db start")
    else:
        say_next("ingest status")


@app.command(epilog="\b\nExample:  ingest db migrate      safe to repeat; starts the embedded PostgreSQL if need be")
def migrate(as_json: Json = False) -> None:
    """Bring the schema to what this version needs; makes the embedded database if there is none."""
    from ingest.connect import find_url
    from ingest.db import Database
    from ingest.settings import load_settings
    from ingest.store.schema import migrate as bring_up

    database = Database(find_url(load_settings(), say=say), owner=True)
    try:
        database.check()
        before, after = bring_up(database)
    finally:
        database.close()
    if as_json:
        write_json("db-migrate", {"before": before, "after": after})
    elif before == after:
        write(f"schema is current ({after})")
    else:
        write(f"schema brought from {before or 'nothing'} to {after}")
    say_next("ingest registry apply sources/")


@app.command(
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    epilog="\b\nExamples:  ingest db psql\n           ingest db psql -c 'SELECT count(*) FROM data.crossref_works'",
)
def psql(context: typer.Context) -> None:
    """Open psql on the database; further arguments are psql's own."""
    from ingest.connect import find_url
    from ingest.embedded.home import psql_path
    from ingest.errors import OperatorError
    from ingest.settings import load_settings

    settings = load_settings()
    address, environment = split_password(find_url(settings, say=say).replace("postgresql+psycopg://", "postgresql://"))
    # the wheel's is of the embedded server's version; on a server of one's own the system's may know more
    program = shutil.which("psql") if settings.database_url else None
    try:
        program = program or str(psql_path())
    except OperatorError:
        program = shutil.which("psql")
    if program is None:
        raise OperatorError("no psql found: install PostgreSQL's client, e.g. apt install postgresql-client")
    os.execve(program, [program, *context.args, address], os.environ | environment)  # noqa: S606 -- psql, by its path


def split_password(url: str) -> tuple[str, dict[str, str]]:
    """Return the address without its password and the environment that carries it: `ps` shows arguments to everyone."""
    parts = urlsplit(url)
    if not parts.password:
        return url, {}
    host = parts.netloc.rpartition("@")[2]
    user = parts.netloc.rpartition("@")[0].partition(":")[0]
    return urlunsplit(parts._replace(netloc=f"{user}@{host}")), {"PGPASSWORD": unquote(parts.password)}


def _require_embedded(settings: "Settings") -> None:
    from ingest.errors import RefusedByState

    if settings.database_url:
        raise RefusedByState("INGEST_DATABASE_URL is set: that server is not ours to start or stop")
