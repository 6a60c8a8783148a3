"""Sessions: how a command reaches its database, and what it says when there is none.

Invariant: a command that reads never makes a database: without one it says how to get one and exits 5. An embedded
server that exists but is stopped is started, aloud.
"""

import getpass
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ingest.cli.screen import say

if TYPE_CHECKING:
    from ingest.db import Connection, Database
    from ingest.settings import Settings


@contextmanager
def open_checked(*, schema: bool = True) -> Iterator[tuple["Database", "Settings"]]:
    """Yield a database that answers and, unless told otherwise, has this code's schema."""
    from ingest.db import Database
    from ingest.errors import DatabaseAway
    from ingest.logs import configure_logs
    from ingest.settings import load_settings
    from ingest.store.schema import require_current

    settings = load_settings()
    configure_logs("WARNING", process="cli")  # what a command did is on its own screen and in the audit trail
    url = settings.database_url
    if url is None:
        from ingest.embedded.server import start, status

        found = status(settings.home)
        if found.state == "absent":
            raise DatabaseAway(
                f"no database yet: `ingest db migrate` makes one in {settings.home}/, "
                f"or set INGEST_DATABASE_URL to a PostgreSQL 15 or newer"
            )
        if not found.running:
            say(f"starting the embedded PostgreSQL in {settings.home}/")
        url = start(settings.home, say=say).url
    database = Database(url)
    try:
        database.check()
        if schema:
            with database.transaction() as conn:
                require_current(conn)
        yield database, settings
    finally:
        database.close()


@contextmanager
def reading() -> Iterator["Connection"]:
    """Yield a connection in one transaction that cannot write."""
    from ingest.store.views import forbid_writes

    with open_checked() as (database, _), database.transaction() as conn:
        forbid_writes(conn)
        yield conn


def name_actor(settings: "Settings") -> str:
    """Return who is named in the audit trail."""
    if settings.actor:
        return settings.actor
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in some containers
        return "unknown"
