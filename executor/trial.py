"""A trial: the pages of one endpoint taken with the parts production runs, and nothing stored (DESIGN rule 13).

Where answers come from is the caller's choice: the source itself through the real gate (`live_fetch`), or fixtures
(`executor.fixtures`). An answer that cannot be read ends the trial as it would end the walk; its page holds the error.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from executor.decode import Decoded, JsonDecoder, what_came
from executor.fetch import Fetcher, Tally, judge
from executor.gatekeeper import Gatekeeper
from executor.mapping import Mapped, RecordMapper
from executor.paging import Seen, Step, first_state, next_step, template_values
from executor.request import NO_PARTITION, Request, RequestBuilder
from executor.transport import Answer, Transport
from ingest.db import Database
from ingest.errors import Deferred, IngestError, OperatorError, SourceError
from ingest.settings import Settings
from ingest.spec.snapshot import Retry, Snapshot
from ingest.spec.windows import render_window

Fetch = Callable[[Request, Tally], Answer]
Span = tuple[datetime, datetime]
_LONGEST_WAIT_S = 90.0


@dataclass(frozen=True, slots=True)
class TriedPage:
    """One page of a trial; what is None was not reached, and `error` says why."""

    number: int
    request: Request | None
    tally: Tally
    answer: Answer | None = None
    decoded: Decoded | None = None
    mapped: Mapped | None = None
    step: Step | None = None
    error: IngestError | None = None


def try_pages(
    snapshot: Snapshot, fetch: Fetch, *, span: Span | None, most: int, partition: Mapping[str, str] = NO_PARTITION
) -> Iterator[TriedPage]:
    """Take up to `most` pages; the last one ends the walk, holds an error, or is the `most`-th."""
    requests, decoder, mapper = RequestBuilder(snapshot), JsonDecoder(snapshot), RecordMapper(snapshot)
    start, end = span or (None, None)
    window = render_window(snapshot.window, start, end)
    state = first_state(snapshot.pagination)
    for number in range(1, most + 1):
        tally, request, answer, decoded, mapped = Tally(), None, None, None, None
        try:
            request = requests.build(window, template_values(snapshot.pagination, state), partition)
            answer = fetch(request, tally)
            if tally.verdict is not None and tally.verdict.ends_walk:
                decoded, step = Decoded([], Seen(items=0)), tally.verdict.step()
            else:
                decoded = decoder.decode(answer)
            mapped = mapper.map_items(decoded.items, until=end, partition=partition)
            if tally.verdict is None or not tally.verdict.ends_walk:
                step = next_step(snapshot.pagination, state, decoded.seen)
        except IngestError as error:
            yield TriedPage(number, request, tally, answer, decoded, mapped, error=error)
            return
        yield TriedPage(number, request, tally, answer, decoded, mapped, step)
        if step.following is None:
            return
        state = step.following


@contextmanager
def live_fetch(
    snapshot: Snapshot, database: Database, settings: Settings, say: Callable[[str], None]
) -> Iterator[Fetch]:
    """Yield a way to ask the source itself: address rules, credential, retries and the gate all processes share."""
    transport = Transport(open_origins=settings.open_origins, connections=2)

    def wait(seconds: float) -> bool:
        time.sleep(seconds)
        return False

    fetcher = Fetcher(snapshot, transport, Gatekeeper(database, wait), wait)

    def fetch(request: Request, tally: Tally) -> Answer:
        deadline = time.monotonic() + snapshot.http.total_timeout_s + _LONGEST_WAIT_S
        while True:
            try:
                return fetcher.fetch(request, tally, lease_remaining=lambda: deadline - time.monotonic())
            except Deferred as deferred:
                if time.monotonic() + deferred.wait_seconds > deadline:
                    raise
                say(f"waiting: {deferred}")
                wait(deferred.wait_seconds)

    try:
        yield fetch
    finally:
        transport.close()


def ask_once(url: str, settings: Settings) -> tuple[Any, dict[str, str]]:
    """Ask a URL a person typed, once, under the address rules; return its JSON and its Link header by relation."""
    transport = Transport(open_origins=settings.open_origins, connections=1)
    deadline = time.monotonic() + _LONGEST_WAIT_S
    try:
        answer = transport.send(
            Request("GET", url, (), (("Accept", "application/json"),)),
            connect_s=10.0,
            read_s=30.0,
            remaining=lambda: deadline - time.monotonic(),
            max_body_bytes=64 << 20,
        )
        judge(answer, Retry(), None)
        return msgspec.json.decode(answer.body), answer.links
    except msgspec.DecodeError as error:
        raise OperatorError(f"not JSON: {what_came(answer)}") from error
    except SourceError as error:
        raise OperatorError(f"{url.partition('?')[0]}: {error}") from error
    finally:
        transport.close()
