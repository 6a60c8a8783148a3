"""A worker that freezes inside its page's transaction, right after the fence: run by test_zombie, never by itself.

`mutant` replaces the fence by a plain SELECT of the same condition, to show that the test would notice.
"""

import os
import signal
import sys
from datetime import timedelta
from typing import Any

import psycopg

from ingest.db import Database
from ingest.errors import LeaseLost
from ingest.store import pages
from ingest.store.leases import lease_tasks
from ingest.store.rows import DatasetWriter, Existing, Key
from ingest.store.runs import start_run
from ingest.store.specs import get_spec
from tests.factories import make_page, make_record

_PLAIN_SELECT = """
    SELECT clock_timestamp(), nextval('ing_task_run_batch_id_seq') FROM ing_task
     WHERE id = %(task)s AND lease_owner = %(owner)s AND lease_count = %(count)s AND status_code = 'EXECUTING'
       AND pages_done = %(page)s - 1
"""


def _say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


class _FreezingWriter(DatasetWriter):
    def existing_of(self, cursor: psycopg.Cursor[Any]) -> dict[Key, Existing]:
        _say("inside")
        os.kill(os.getpid(), signal.SIGSTOP)
        return super().existing_of(cursor)


def main(url: str, kind: str) -> None:
    """Lease a task, freeze in its page, and say how it went after waking up."""
    if kind == "mutant":
        pages._FENCE = _PLAIN_SELECT
    database, ttl = Database(url, pool_size=1), timedelta(seconds=2)
    with database.transaction() as conn:
        (lease,) = lease_tasks(conn, owner="zombie", limit=1, ttl=ttl)
        run = start_run(conn, lease, ttl=ttl)
        writer = _FreezingWriter(get_spec(conn, lease.spec_fingerprint))
    try:
        with database.transaction() as conn:
            page = make_page([make_record("z", 20, "zombie")])
            pages.write_page(conn, lease, run, page, writer, task_page=1, ttl=ttl)
        _say("committed")
    except LeaseLost:
        _say("lease lost")
    except Exception as error:
        _say(f"refused: {type(error).__name__}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
