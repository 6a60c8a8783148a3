"""Finding the database: the address in the settings, or else the embedded PostgreSQL under `home`."""

from collections.abc import Callable

from ingest.db import Database
from ingest.settings import Settings


def find_url(settings: Settings, say: Callable[[str], None] | None = None) -> str:
    """Return the database's address, starting the embedded PostgreSQL if no other is named."""
    if settings.database_url:
        return settings.database_url
    from ingest.embedded.server import start

    return start(settings.home, say=say).url


def open_database(
    settings: Settings, *, application: str = "ingest", pool_size: int = 5, owner: bool = False
) -> Database:
    """Return a pool on the database; nothing is connected yet unless the embedded server had to be started."""
    return Database(find_url(settings), application=application, pool_size=pool_size, owner=owner)
