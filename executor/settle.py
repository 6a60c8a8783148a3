"""Settling: from how a walk ended to the task's next state; the only place that decides (D10, E6)."""

from datetime import timedelta
from typing import assert_never

from executor.keeper import Held
from executor.runner import Ended, PageFailed, Stopped, lineage
from executor.secrets import REDACTOR
from ingest.daemon import first_line
from ingest.db import Database, is_connection_lost
from ingest.errors import BrokenInvariant, Deferred, LeaseLost, Refused, Throttled
from ingest.logs import get_log
from ingest.states import TaskStatus
from ingest.store.failures import FailedPage, fail_task
from ingest.store.lanes import block_lane
from ingest.store.ledger import Position
from ingest.store.runs import Run, count_throttled, give_back

_log = get_log("executor")
_DATABASE_PAUSE = timedelta(seconds=1)
_SHORTEST_WAIT = timedelta(milliseconds=100)
# give-backs in a row without a page; at an hour each, half a day of a daily quota
_MOST_THROTTLED = 12
_NO_EVIDENCE = FailedPage(position=Position(), request={"hash": ""}, response={}, stats={"itemsCount": 0})


def settle_outcome(database: Database, held: Held, run: Run, outcome: Ended | Stopped) -> None:
    """Store a walk's ordinary end: a finished one is already stored, a stopped one gives its task back (E9)."""
    match outcome:
        case Ended():
            _log.info("task ended", **lineage(held, run), status=outcome.status, pages=outcome.pages)
        case Stopped():
            with database.transaction() as conn:
                give_back(conn, held.lease, run, reason="graceful stop")
            _log.info("task given back", **lineage(held, run), pages=outcome.pages, reason="graceful stop")
        case _:
            assert_never(outcome)


def settle_error(database: Database, held: Held, run: Run | None, error: Exception, *, pages: int) -> None:
    """Store what an error means: wait, fail, or nothing at all because the task is no longer ours."""
    try:
        _settle(database, held, run, error, pages=pages)
    except LeaseLost as lost:
        # whatever went wrong, the task is another's now: its fence refused to let us say so
        _log.warning("lease lost", **lineage(held, run), reason=str(lost))


def _settle(database: Database, held: Held, run: Run | None, error: Exception, *, pages: int) -> None:
    cause = error.cause if isinstance(error, PageFailed) else error
    match cause:
        case LeaseLost():
            raise cause
        case Throttled() if run is not None and _is_throttled_for_ever(database, held):
            text = f"{cause}; {_MOST_THROTTLED} times in a row without a page"
            failed = Refused(text)
            evidence = error.evidence if isinstance(error, PageFailed) else _NO_EVIDENCE
            _fail(database, held, run, PageFailed(failed, evidence), failed, pages)
        case Deferred():
            _defer(database, held, run, cause)
        case _ if run is not None and is_connection_lost(cause):
            # the source did nothing wrong: the task goes on at its checkpoint once the database is back
            with database.transaction() as conn:
                give_back(conn, held.lease, run, reason="the database was away", delay=_DATABASE_PAUSE)
            _log.warning("task given back", **lineage(held, run), reason="the database was away")
        case _ if run is None:
            # not even started: the lease ends by itself and the task is taken back
            _log.error("run not started", **lineage(held, None), error=REDACTOR.clean(first_line(cause)))
        case _:
            _fail(database, held, run, error, cause, pages)


def _is_throttled_for_ever(database: Database, held: Held) -> bool:
    """A source that only ever says "later" must be seen: the task fails and its window stays a gap."""
    with database.transaction() as conn:
        return count_throttled(conn, held.lease) >= _MOST_THROTTLED - 1


def _defer(database: Database, held: Held, run: Run | None, cause: Deferred) -> None:
    """Not a failure: the task waits in the database, its lane is not scanned meanwhile, no thread is held."""
    wait = max(_SHORTEST_WAIT, timedelta(seconds=cause.wait_seconds))
    with database.transaction() as conn:
        give_back(conn, held.lease, run, reason=str(cause), delay=wait)
        if cause.wait_seconds > 0:
            block_lane(conn, held.lease.lane_id, wait)
    _log.info("task deferred", **lineage(held, run), reason=str(cause), wait_s=wait.total_seconds())


def _fail(database: Database, held: Held, run: Run, error: Exception, cause: Exception, pages: int) -> None:
    """A failed page ends the walk: PARTIAL if a page was committed, else FAILED; the window stays a gap."""
    status = TaskStatus.PARTIAL if pages else TaskStatus.FAILED
    text = REDACTOR.clean(f"{type(cause).__name__}: {first_line(cause)}")
    evidence = error.evidence if isinstance(error, PageFailed) else _NO_EVIDENCE
    with database.transaction() as conn:
        fail_task(conn, held.lease, run, evidence, status=status, error=text)
    level = getattr(cause, "level", "") or "bug"
    if isinstance(cause, BrokenInvariant) or level == "bug":
        _log.error("task failed", **lineage(held, run), status=status, error=text, error_level=level, exc_info=cause)
    else:
        _log.error("task failed", **lineage(held, run), status=status, error=text, error_level=level)
