"""Committing a page, whatever the database does meanwhile (DESIGN rules 2, 3).

A deadlock repeats the whole transaction from memory. A commit whose answer was lost is normal: on a new connection the
task is locked and the batch looked for; if it is there the page is done, if not it is written again, fenced as ever.
"""

import json
import time
from dataclasses import replace
from datetime import timedelta
from typing import Any

from executor.keeper import Held
from ingest.db import Connection, Database, is_connection_lost, sqlstate_of
from ingest.errors import LeaseLost, Unreadable
from ingest.logs import get_log
from ingest.store.arrays import Text
from ingest.store.pages import Page, Reject, find_committed, write_page
from ingest.store.rows import DatasetWriter
from ingest.store.runs import Run

_log = get_log("executor")
_PAUSE_SECONDS = 0.2
# what PostgreSQL's own parsers refuse although ours took it: bad JSON text, untranslatable character, invalid encoding
_BAD_TEXT = {"22P02", "22P05", "22021", "22032"}


class Committer:
    """Writes pages for one process."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def commit(
        self, held: Held, run: Run, page: Page, writer: DatasetWriter, *, task_page: int, ttl: timedelta
    ) -> dict[str, Any]:
        """Commit the page exactly once; return its stats as stored. Raises `LeaseLost` if the task is not ours."""

        def write(conn: Connection) -> dict[str, Any]:
            return write_page(conn, held.lease, run, page, writer, task_page=task_page, ttl=ttl)

        def look(conn: Connection) -> dict[str, Any] | None:
            return find_committed(conn, held.lease, run, task_page=task_page)

        doubt = False
        while True:
            try:
                if doubt:
                    stored = self._database.repeat(look)
                    if stored is not None:
                        _log.warning("commit confirmed", task_id=held.lease.task_id, page=task_page)
                        return stored
                return self._database.repeat(write)
            except Exception as error:
                if sqlstate_of(error) in _BAD_TEXT and (cleaned := quarantine_unstorable(page)) is not page:
                    page = cleaned
                    continue
                if not is_connection_lost(error):
                    raise _named(error) from error
                doubt = True
                _log.warning(
                    "database lost in a page", task_id=held.lease.task_id, page=task_page, error=str(error)[:200]
                )
            if held.remaining() <= 0:
                # unknown is lost: someone else may have the task by now, and the fence knows
                raise LeaseLost(f"task {held.lease.task_id}: the database stayed away longer than the lease")
            time.sleep(_PAUSE_SECONDS)


def _named(error: Exception) -> Exception:
    """Return the error by its own name: a token that comes twice in a run is the source going in circles."""
    if sqlstate_of(error) == "23505" and "uk_run_before_tok" in str(error):
        return Unreadable("the source's next token leads back to a page of this walk")
    return error


def quarantine_unstorable(page: Page) -> Page:
    """Return the page with records whose text is not JSON after all moved to quarantine; the page itself if none is."""
    good, bad = [], []
    for number, record in enumerate(page.records):
        try:
            json.loads(_bytes(record.payload).decode() or "null")  # strict: json.loads itself lets surrogates pass
            good.append(record)
        except ValueError as error:
            # PostgreSQL stores no NUL and no broken UTF-8; the evidence keeps everything else
            text = _bytes(record.payload).decode("utf-8", "replace").replace("\x00", "\ufffd")
            bad.append(Reject(number, str(record.key[0]), text, "$", f"not JSON: {error}"))
    if not bad:
        return page
    return replace(page, records=good, rejects=[*page.rejects, *bad])


def _bytes(payload: Text | None) -> bytes:
    return payload.encode() if isinstance(payload, str) else payload or b""
