"""Batch writes: how long `write_page` takes, commit included, the source left out (I1)."""

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

from benchmarks.latency import summarize
from benchmarks.ours import Work, make_snapshot
from benchmarks.postgres import Postgres, fresh_database
from benchmarks.source import Source
from executor.decode import JsonDecoder
from executor.mapping import RecordMapper
from executor.transport import Answer
from ingest.db import Database
from ingest.store.leases import lease_tasks
from ingest.store.ledger import Position
from ingest.store.pages import Page, write_page
from ingest.store.rows import DatasetWriter
from ingest.store.runs import start_run
from ingest.store.schema import migrate
from simulator.pages import BenchPages

_TTL = timedelta(seconds=60)
_SIZES = {100: 200, 1000: 60}  # records a page -> pages


def _pages(source: Source, phase: str) -> Iterator[Page]:
    """Yield the source's pages as the page loop would hand them over."""
    snapshot = make_snapshot(source, part=0, typed=True)
    decoder, mapper = JsonDecoder(snapshot), RecordMapper(snapshot)
    answers = BenchPages(pages=source.pages, records=source.records).get_phase(phase).answers
    for number, whole in enumerate(answers, start=1):
        body = whole.partition(b"\r\n\r\n")[2]
        answer = Answer(200, {}, body, {}, len(body), 0.0, 0.0)
        mapped = mapper.map_items(decoder.decode(answer).items, until=None)
        yield Page(
            position=Position(page_no=number, before_token=str(number), unique=True),
            request={"hash": "h1:request"}, response={"status": 200, "bytes": len(body)},
            stats={"itemsCount": len(mapped.records)}, records=mapped.records, rejects=mapped.rejects,
            duplicate=0, filtered=0, observed_max=mapped.observed_max, cursor_key="updated_at",
            checkpoint={"next": {"token": str(number + 1)}}, ending=None,
        )  # fmt: skip


def _measure_size(postgres: Postgres, records: int, pages: int) -> Iterator[dict[str, Any]]:
    source = Source("http://127.0.0.1:1/bench", 0, pages, records)
    snapshot = make_snapshot(source, part=0, typed=True)
    with fresh_database(postgres, "bench_writes") as url:
        database = Database(url, pool_size=1, owner=True)
        migrate(database)
        work, writer = Work(database, [snapshot]), DatasetWriter(snapshot)
        work.make_table()
        work.fire()
        with database.transaction() as conn:
            lease = lease_tasks(conn, owner="bench", limit=1, ttl=_TTL)[0]
        with database.transaction() as conn:
            run = start_run(conn, lease, ttl=_TTL)
        task_page = 0
        for phase in ("p1", "p2"):
            taken = []
            for page in list(_pages(source, phase)):
                task_page += 1
                if phase == "p2":  # the ledger would rightly refuse the first pass' tokens in the same run
                    page = _renumbered(page, task_page)
                began = time.monotonic()
                with database.transaction() as conn:
                    write_page(conn, lease, run, page, writer, task_page=task_page, ttl=_TTL)
                taken.append(time.monotonic() - began)
            yield {"records": records, "phase": phase, "write": summarize(taken)}
        database.close()


def _renumbered(page: Page, number: int) -> Page:
    return replace(page, position=Position(page_no=number, before_token=str(number), unique=True))


def measure(postgres: Postgres, options: argparse.Namespace, say: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Measure pages of 100 and of 1,000 records, new ones and a second pass with a tenth of them newer."""
    for repeat in range(options.repeats):
        for records, pages in _SIZES.items():
            for cell in _measure_size(postgres, records, pages):
                write = cell["write"]
                say(
                    f"write {records:4} records {cell['phase']}: mean {write['mean_ms']:.1f} ms, "
                    f"P95 {write['p95_ms']:.1f} ms"
                )
                yield cell | {"repeat": repeat}
