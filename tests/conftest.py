"""One PostgreSQL per run, one migrated template, one clone per test: real, and isolated in about 60 ms.

`INGEST_TEST_DATABASE_URL` runs everything on another server; its role needs CREATEDB.
"""

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from sqlalchemy.engine import make_url

from ingest.db import Database
from ingest.embedded import server as embedded
from ingest.settings import Settings
from ingest.store.schema import migrate

_SERVER = "INGEST_TEST_SERVER"  # set by the controller, inherited by xdist's workers
_TEMPLATE = "INGEST_TEST_TEMPLATE"
_FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off", "max_connections": "300"}


def pytest_configure(config: pytest.Config) -> None:
    """Start the server and make the template, once, in the process that starts the run."""
    if hasattr(config, "workerinput") or _SERVER in os.environ:
        return
    given = os.environ.get("INGEST_TEST_DATABASE_URL")
    if given is None:
        home = Path(tempfile.mkdtemp(prefix="ingest-test-"))
        home.chmod(0o711)  # run by root, the server is another user and must be able to enter
        config.stash[_home] = home
        given = embedded.start(home, settings=_FAST).url
    template = f"ingest_template_{uuid.uuid4().hex[:8]}"
    os.environ[_SERVER], os.environ[_TEMPLATE] = given, template
    config.stash[_template] = template
    _execute(f'CREATE DATABASE "{template}"')
    database = Database(_url(template), owner=True)
    migrate(database)
    database.close()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave nothing behind."""
    template = config.stash.get(_template, None)
    if template is not None:
        _execute(f'DROP DATABASE IF EXISTS "{template}" WITH (FORCE)')
    home = config.stash.get(_home, None)
    if home is not None:
        embedded.stop(home, mode="immediate")
        embedded.remove(home)
        shutil.rmtree(home, ignore_errors=True)


_home = pytest.StashKey[Path]()
_template = pytest.StashKey[str]()


def _url(name: str) -> str:
    return make_url(os.environ[_SERVER]).set(database=name).render_as_string(hide_password=False)


def _execute(statement: str) -> None:
    url = make_url(os.environ[_SERVER]).set(drivername="postgresql")
    with psycopg.connect(url.render_as_string(hide_password=False), autocommit=True) as conn:
        conn.execute(statement)  # type: ignore[call-overload]


@pytest.fixture
def database_url() -> Iterator[str]:
    """The address of a fresh, migrated database."""
    name = f"test_{uuid.uuid4().hex[:12]}"
    _execute(f'CREATE DATABASE "{name}" TEMPLATE "{os.environ[_TEMPLATE]}"')
    yield _url(name)
    _execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """A pool on a fresh, migrated database."""
    database = Database(database_url, pool_size=10)
    yield database
    database.close()


@pytest.fixture
def settings(database_url: str) -> Settings:
    """Settings for a test: short leases, loopback opened, nothing read from the machine."""
    return Settings(
        _env_file=None,
        database_url=database_url,
        open_origins=("http://127.0.0.1:*",),
        lease_seconds=3.0,
        poll_seconds=0.05,
        tick_seconds=0.05,
    )


@pytest.fixture(scope="session")
def shared_database() -> Iterator[Database]:
    """A migrated database for tests that only read the schema."""
    name = f"shared_{uuid.uuid4().hex[:12]}"
    _execute(f'CREATE DATABASE "{name}" TEMPLATE "{os.environ[_TEMPLATE]}"')
    database = Database(_url(name), pool_size=2)
    yield database
    database.close()
    _execute(f'DROP DATABASE "{name}" WITH (FORCE)')
