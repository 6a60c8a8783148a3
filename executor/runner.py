"""The page loop: fetch, decode, map, commit, go on; the next page is fetched while this one is written.

Invariant: pages commit strictly in order; if page n does not commit, page n+1 is dropped unrecorded. Two pages are in
memory at the most. Errors pass through: `executor.settle` alone decides what they mean.
"""

import contextlib
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from executor.commit import Committer
from executor.decode import Decoded
from executor.fetch import Tally, response_digest
from executor.keeper import Held
from executor.mapping import Mapped
from executor.paging import Seen, State, Step, first_state, next_step, template_values
from executor.program import Program
from executor.transport import Answer
from ingest.db import Database
from ingest.errors import BrokenInvariant, IngestError, SourceError
from ingest.logs import get_log
from ingest.spec.windows import render_window
from ingest.states import SlicePurpose, TaskStatus
from ingest.store.cursors import advance_cursor
from ingest.store.failures import FailedPage
from ingest.store.ledger import Position
from ingest.store.pages import Ending, Page
from ingest.store.runs import Run

_log = get_log("executor")
_LOG_ONE_IN = 100  # batches; WARN and ERROR are never sampled (H2)


@dataclass(frozen=True, slots=True)
class Ended:
    """The walk is over and everything is stored."""

    pages: int
    status: TaskStatus


@dataclass(frozen=True, slots=True)
class Stopped:
    """The process is stopping: the task goes back with its checkpoint."""

    pages: int


@dataclass(slots=True)
class PageFailed(Exception):
    """A page could not be had; carries the evidence for its FAILED batch."""

    cause: IngestError
    evidence: FailedPage

    def __str__(self) -> str:
        return str(self.cause)


@dataclass(slots=True)
class _Fetched:
    """A page that is complete and mapped, not yet written."""

    state: State
    request: dict[str, Any]
    response: dict[str, Any]
    answer: Answer
    decoded: Decoded
    mapped: Mapped
    step: Step
    tally: Tally


class Walk:
    """One run through one task's pages."""

    def __init__(
        self,
        held: Held,
        run: Run,
        program: Program,
        *,
        database: Database,
        committer: Committer,
        ttl: timedelta,
        stopping: Callable[[], bool],
    ) -> None:
        self._held = held
        self._lease = held.lease
        self._run = run
        self._program = program
        self._database = database
        self._committer = committer
        self._ttl = ttl
        self._stopping = stopping
        self._pages = 0
        snapshot = program.snapshot
        self._span = self._lease.span
        filtered = self._lease.params["purpose"] == SlicePurpose.FILL
        start, end = self._span if self._span and filtered else (None, None)
        self._window = render_window(snapshot.window, start, end)
        self._until: datetime | None = end
        self._partition: dict[str, str] = self._lease.params.get("partition", {})
        checkpoint = self._lease.checkpoint
        if checkpoint and snapshot.pagination.token_kind == "consuming":
            checkpoint = None  # its tokens cannot be asked twice: every resume walks from the start
        self._state: State = checkpoint["next"] if checkpoint else first_state(snapshot.pagination)
        self._seen = checkpoint["seen"] if checkpoint else {"items": 0, "quarantined": 0}

    def run(self, prefetcher: ThreadPoolExecutor) -> Ended | Stopped:
        """Take pages until the walk ends or the process stops; raise `PageFailed` if a page cannot be had."""
        may_prefetch = self._program.snapshot.pagination.token_kind == "repeatable"
        fetched = self._fetch(self._state, self._next_page)
        while True:
            self._held.progress()
            following = fetched.step.following
            ahead: Future[_Fetched] | None = None
            if following is not None and may_prefetch and not self._stopping():
                ahead = prefetcher.submit(self._fetch, following, self._next_page + 1)
            try:
                ending = self._commit(fetched)
            except BaseException:
                if ahead is not None:
                    ahead.cancel()
                    _drain(ahead)
                raise
            if ending is not None:
                return Ended(self._pages, ending.status)
            if following is None:
                raise BrokenInvariant("a walk without an ending has no next page")
            if self._stopping():
                if ahead is not None and not ahead.cancel():
                    _drain(ahead)
                return Stopped(self._pages)
            fetched = ahead.result() if ahead is not None else self._fetch(following, self._next_page)

    @property
    def pages(self) -> int:
        """Pages committed over the task's life."""
        return self._lease.pages_done + self._pages

    @property
    def _next_page(self) -> int:
        return self.pages + 1

    def _fetch(self, state: State, task_page: int) -> _Fetched:
        program, tally = self._program, Tally()
        pagination = program.snapshot.pagination
        request = None
        try:
            request = program.requests.build(self._window, template_values(pagination, state), self._partition)
            digest = request.digest()
            correlation = f"ing-{self._run.id}-{self._run.batch_no(task_page)}"
            sent = request.with_headers(("X-Ingest-Correlation-Id", correlation))
            answer = program.fetcher.fetch(sent, tally, lease_remaining=self._held.remaining)
            self._held.progress()
            if tally.verdict is not None and tally.verdict.ends_walk:
                decoded, step = Decoded([], Seen(items=0)), tally.verdict.step()
            else:
                decoded = program.decoder.decode(answer)
                step = next_step(pagination, state, decoded.seen)
            mapped = program.mapper.map_items(decoded.items, until=self._until, partition=self._partition)
        except IngestError as error:
            raise PageFailed(error, self._evidence(state, request, error, tally)) from error
        # the answer's hash is taken here, while the page before is being written
        return _Fetched(state, digest, self._response(answer, decoded.seen), answer, decoded, mapped, step, tally)

    def _evidence(self, state: State, request: Any, error: IngestError, tally: Tally) -> FailedPage:
        answered = {"status": error.status, "sample": error.excerpt} if isinstance(error, SourceError) else {}
        return FailedPage(
            position=self._position(state, None),
            request={"hash": ""} if request is None else request.digest(),
            response=answered | {"statuses": tally.statuses, "rate": self._program.fetcher.rate_digest},
            stats=tally.stats() | {"itemsCount": 0, "level": error.level},
        )

    def _commit(self, fetched: _Fetched) -> Ending | None:
        mapped = fetched.mapped
        self._seen = {
            "items": self._seen["items"] + fetched.decoded.seen.items,
            "quarantined": self._seen["quarantined"] + len(mapped.rejects),
        }
        ending = self._ending(fetched.step)
        page = Page(
            position=self._position(fetched.state, fetched.step.following),
            request=fetched.request,
            response=fetched.response,
            stats=self._stats(fetched, ending),
            records=mapped.records,
            rejects=mapped.rejects,
            duplicate=mapped.duplicate,
            filtered=mapped.filtered,
            observed_max=mapped.observed_max,
            cursor_key=self._program.cursor_key,
            checkpoint={"next": fetched.step.following, "seen": self._seen},
            ending=ending,
            age_seconds=time.monotonic() - fetched.answer.arrived,
        )
        task_page = self._next_page
        sent_at = time.monotonic()
        stats = self._committer.commit(
            self._held, self._run, page, self._program.writer, task_page=task_page, ttl=self._ttl
        )
        self._pages += 1
        self._held.renewed(sent_at, self._ttl)
        self._log_page(task_page, stats)
        if ending is not None and ending.covers:
            self._advance_cursor()
        return ending

    def _advance_cursor(self) -> None:
        """Event first, the current value after it, in a transaction of its own (E5).

        The task has ended by now: if this is lost the cursor is only late, and the planner recomputes it.
        """
        try:
            with self._database.transaction() as conn:
                advance_cursor(conn, self._lease.series_id)
        except Exception as error:
            _log.warning("cursor not moved", **lineage(self._held, self._run), error=str(error).splitlines()[0])

    def _ending(self, step: Step) -> Ending | None:
        """Say how the walk ends with this page; a window is covered only by a declared end and few rejects."""
        if step.following is not None:
            return None
        share = self._seen["quarantined"] / max(1, self._seen["items"])
        allowed = self._program.snapshot.mapping.quarantine_share
        if share > allowed:
            error = f"{share:.0%} of the records were quarantined, more than {allowed:.0%}: the window is not covered"
            return Ending(TaskStatus.PARTIAL, covers=False, error=error)
        if not step.declared:
            return Ending(TaskStatus.PARTIAL, covers=False, error=step.reason)
        return Ending(TaskStatus.SUCCEEDED, covers=True)

    def _position(self, state: State, following: State | None) -> Position:
        pagination = self._program.snapshot.pagination
        number = state.get("page", state.get("offset", state["number"]))
        token, url = state.get("token"), state.get("url")
        return Position(
            page_no=number,
            page_size=pagination.size,
            before_token=token,
            before_url=url,
            after_token=following.get("token") if following else None,
            next_url=following.get("url") if following else None,
            unique=pagination.token_kind == "repeatable" and bool(token or url),
        )

    def _response(self, answer: Answer, seen: Seen) -> dict[str, Any]:
        digest = response_digest(answer, self._program.snapshot.response.items)
        hints = {"itemsCount": seen.items, "nextHint": seen.next_value, "totalHint": seen.total}
        return digest | hints | {"rate": self._program.fetcher.rate_digest}

    def _stats(self, fetched: _Fetched, ending: Ending | None) -> dict[str, Any]:
        step = fetched.step
        return fetched.tally.stats() | {
            "itemsCount": fetched.decoded.seen.items,
            "hasNext": step.following is not None,
            "stop": step.reason or None,
            "ending": None if ending is None else ending.status,
            "http": {"status": fetched.answer.status, "bytes": len(fetched.answer.body)},
        }

    def _log_page(self, task_page: int, stats: dict[str, Any]) -> None:
        if (self._run.id + task_page) % _LOG_ONE_IN:
            return
        names = ("itemsCount", "inserted", "updated", "skipped", "failed", "latencyMs", "hasNext")
        _log.info(
            "batch", **lineage(self._held, self._run), batch_no=self._run.batch_no(task_page),
            **{name: stats.get(name) for name in names},
        )  # fmt: skip


def _drain(ahead: "Future[_Fetched]") -> None:
    """Wait for a page that will be dropped: its thread must not outlive the lease it fetches under."""
    with contextlib.suppress(BaseException):  # the page is dropped, and so is what went wrong with it
        ahead.result()


def lineage(held: Held, run: Run | None) -> dict[str, Any]:
    """Return what every log line about a task carries (S2 §14.2)."""
    lease = held.lease
    return {
        "source": lease.provenance_code,
        "endpoint": lease.endpoint_name,
        "op": lease.operation_code,
        "plan_id": lease.plan_id,
        "slice_id": lease.slice_id,
        "task_id": lease.task_id,
        "run_id": None if run is None else run.id,
    }
