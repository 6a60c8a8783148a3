"""`ingest init`: the files of a new project; what is already there is never touched."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ingest.cli.screen import say, say_next, write

OPTIONS = {
    "epilog": """\b
Examples:  ingest init               in this folder
           ingest init my-project    in a new one"""
}

_SETTINGS = """\
# Settings of this installation. Every one can also be set as INGEST_<NAME> in the environment or in .env, which win.

# PostgreSQL 15 or newer. Without it an embedded PostgreSQL is kept under `home`.
# database_url = "postgresql://ingest@localhost/ingest"

home = ".ingest"        # the embedded PostgreSQL
sources = "sources"     # one file per source

# Requests go to public https only. What is opened here may also be plain http or private:
open_origins = ["http://127.0.0.1:8099"]    # the bundled simulator (`ingest sim`); remove it in production

# lease_seconds = 30      # how soon a dead worker's task is taken over
# log_level = "INFO"
"""

_SOURCE = """\
# One file describes one API. This one reads the bundled simulator: start it with `ingest sim`.
source: example
description: The simulator's plain API, a list of items by pages
base_url: http://127.0.0.1:8099/plain
rate: 20/s                          # never more requests than this, all workers of all hosts together
schedule: {every: 5m}               # how often to look for what is missing
endpoints:
  items:                            # -> table data.example_items
    get: /items
    query:
      page: "{{ page.number }}"
      size: "{{ page.size }}"
      updated_from: "{{ window.from }}"
      updated_to: "{{ window.to }}"
    pagination: {kind: page, base: 1, size: 500, stop: short_page}
    window: {filter: server, field: updated_at, start: 2024-01-01, precision: second, safety_lag: 1m, max: 90d}
    records: {items: $.data, id: $.id, updated_at: $.updated_at, total: $.total}
    columns:                        # the whole record is kept too, as `payload`
      title: text
      status: text
      amount: numeric
      quantity: int
      owner: {path: $.owner.name, type: text}
"""

_ENVIRONMENT = """\
# Copy to .env (which git does not see). Secrets are referred to in source files as env:NAME.
# INGEST_DATABASE_URL=postgresql://ingest:password@localhost/ingest
# CROSSREF_MAILTO=you@example.org
"""

_IGNORED = """\
.env
.ingest/
"""

_FILES = {
    "ingest.toml": _SETTINGS,
    "sources/example.yaml": _SOURCE,
    ".env.example": _ENVIRONMENT,
    ".gitignore": _IGNORED,
}


def init(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Where; made if it is not there.")] = Path(),
) -> None:
    """Write the files of a new project: settings, one example source, .env.example, .gitignore."""
    from ingest.errors import OperatorError

    made = 0
    for name, content in _FILES.items():
        path = directory / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("x", encoding="utf-8") as file:
                file.write(content)
        except FileExistsError:
            say(f"kept      {path} (it was there)")
            continue
        except OSError as error:
            raise OperatorError(f"cannot write {path}: {error.strerror}") from error
        made += 1
        write(f"made      {path}")
    if not made:
        say("Nothing was changed.")
    elsewhere = "" if directory == Path() else f"cd {shlex.quote(str(directory))} && "
    say_next(f"{elsewhere}ingest db migrate && ingest registry apply sources/")
