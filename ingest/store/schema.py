"""The schema's version: alembic's revisions, applied by one process at a time."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

import migrations
from ingest.db import Connection, Database
from ingest.errors import OperatorError

_LOCK = 7_215_001  # any constant: two `ingest db migrate` at once must queue, not race


def _config(conn: Connection | None = None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    config.attributes["connection"] = conn
    return config


def head_revision() -> str:
    """Return the newest revision this code knows."""
    head = ScriptDirectory.from_config(_config()).get_current_head()
    assert head is not None  # noqa: S101 -- the package ships revisions
    return head


def list_revisions() -> list[str]:
    """Return every revision, oldest first."""
    return [script.revision for script in ScriptDirectory.from_config(_config()).walk_revisions()][::-1]


def current_revision(conn: Connection) -> str | None:
    """Return the revision the database stands at, or None before the first migration."""
    return MigrationContext.configure(conn).get_current_revision()


def migrate(database: Database, revision: str = "head") -> tuple[str | None, str | None]:
    """Bring the schema to `revision`; return what it was and what it is."""
    with database.transaction() as conn:
        conn.exec_driver_sql("SET LOCAL lock_timeout = '60s'")
        conn.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")
        before = current_revision(conn)
        known = list_revisions()
        if before is not None and before not in known:
            raise OperatorError(
                f"the database is at revision {before}, which this version of ingest does not know: upgrade ingest"
            )
        target = known[-1] if revision == "head" else revision
        goes_down = revision == "base" or (before is not None and known.index(target) < known.index(before))
        (command.downgrade if goes_down else command.upgrade)(_config(conn), revision)
        return before, current_revision(conn)


def require_current(conn: Connection) -> None:
    """Raise unless the schema is the one this code was written for."""
    at, head = current_revision(conn), head_revision()
    if at != head:
        state = "has no schema yet" if at is None else f"is at revision {at}, this code needs {head}"
        raise OperatorError(f"the database {state}: run `ingest db migrate`")
