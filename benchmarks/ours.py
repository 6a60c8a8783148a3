"""Ours: the whole path through one real executor process, on work that the real planner made.

A snapshot by hand stands in for the registry. The source has no time filter, so each fire walks it whole: the second
pass is an ordinary second fire. One worker: one walk of all pages. Two workers: two endpoints that write one table,
each walking half of the pages: two tasks at once on one dataset, as two windows of one endpoint would be (two windows
proper could not be walked again, because they are covered). Both endpoints pass one gate.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sqlalchemy import TextClause, text

from benchmarks.columns import TYPED
from benchmarks.places import child_environment
from benchmarks.source import Source, first_page
from ingest.db import Database
from ingest.settings import Settings
from ingest.spec.snapshot import Column, Http, IdPart, Mapping, Moment, Pagination, Rate, Response, Snapshot
from ingest.states import Operation
from ingest.store import datasets, schedules
from planner.tick import Planner

DATASET = "bench_items"
_COLUMN_TYPE = {"text": "text", "date": "date", "bigint": "int", "double precision": "float", "boolean": "bool"}
_STARTED = text("SELECT min(started_at) FROM ing_task_run WHERE id > :after")
_LAST_RUN = text("SELECT coalesce(max(id), 0) FROM ing_task_run")
_LEFT = text("SELECT count(*) FROM ing_task WHERE status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING')")
_ENDED = text("SELECT status_code, error FROM ing_task_run WHERE id > :after")
_ACCOUNTS = text("""
    SELECT (SELECT count(*) FROM ing_task_run_batch), (SELECT sum(cardinality(keys)) FROM ing_outbox),
           (SELECT count(*) FROM ing_cursor_event WHERE kind = 'PAGE'), (SELECT count(*) FROM ing_coverage),
           (SELECT sum((stats ->> 'inserted')::bigint) FROM ing_task_run_batch),
           (SELECT sum((stats ->> 'updated')::bigint) FROM ing_task_run_batch),
           (SELECT sum((stats ->> 'unchanged')::bigint) FROM ing_task_run_batch)
""")


def make_snapshot(source: Source, *, part: int, typed: bool) -> Snapshot:
    """Return the endpoint for one part of the source (0: all of it)."""
    columns = [Column(name=n, path=f"$.{n}", type=_COLUMN_TYPE[k]) for n, k in TYPED.items()]  # type: ignore[arg-type]
    return Snapshot(
        provenance_code="bench",
        endpoint_name="items" if part == 0 else f"items_{part}",
        revision=1,
        http=Http(
            method="GET",
            base_url=source.url,
            path="/items" if part == 0 else f"/part/{part}/items",
            query={"page": "{{ page.token }}"},
        ),
        pagination=Pagination(
            kind="TOKEN",
            size=source.records,
            initial=str(first_page(part, source.pages)),
            next_path="$.next",
            stop=("no_next",),
        ),
        rate=Rate(rate_per_s=100_000, burst=1000, share="source"),
        response=Response(items="$.items"),
        mapping=Mapping(
            dataset=DATASET,
            identity=(IdPart(column="provider_id", path="$.id"),),
            updated_at=Moment(path="$.updated_at"),
            columns=tuple(columns) if typed else (),
            payload="json",
        ),
    )


class Work:
    """What is to be harvested, and the planner that fires it."""

    def __init__(self, database: Database, snapshots: list[Snapshot]) -> None:
        self._database = database
        self._snapshots = {snapshot.endpoint_name: snapshot for snapshot in snapshots}
        settings = Settings(_env_file=None, database_url=database.url)  # type: ignore[call-arg]
        self._planner = Planner(database, settings, self._compile)
        self._fires = 0

    def _compile(self, _conn: object, _source: str, endpoint: str) -> SimpleNamespace:
        return SimpleNamespace(snapshot=self._snapshots[endpoint], degradations=())

    def make_table(self) -> None:
        """Make the dataset's table as `registry apply` would."""
        with self._database.transaction() as conn:
            statements = datasets.plan_table(conn, next(iter(self._snapshots.values())))
        datasets.apply_table(self._database, statements)

    def fire(self) -> None:
        """Ask for a run of every endpoint and plan it."""
        self._fires += 1
        with self._database.transaction() as conn:
            for name in self._snapshots:
                schedules.request_run(
                    conn, source="bench", endpoint=name, operation=Operation.HARVEST,
                    request_id=f"{name}-{self._fires}", params={},
                )  # fmt: skip
        tick = self._planner.tick()
        assert not tick.problems, tick
        assert tick.planned == len(self._snapshots), tick


class Executor:
    """One `ingest-executor run` process."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path, ready_s: float) -> None:
        self._process = process
        self._log = log
        self.pid = process.pid
        self.ready_s = ready_s  # from process start to its first heartbeat in the database

    def last_task_ended(self, tasks: int) -> float:
        """Return when the last of so many tasks ended, by the executor's own log line after its last commit."""
        while True:
            lines = self._log.read_text().split("\n")[:-1]
            entries = [json.loads(line) for line in lines if line.startswith("{")]
            ends = [entry["at"] for entry in entries if entry["event"] == "task ended"]
            if len(ends) >= tasks:
                return max(datetime.fromisoformat(end).timestamp() for end in ends)
            self.check_alive()
            time.sleep(0.01)

    def check_alive(self) -> None:
        """Raise with the log's end if the process died."""
        if self._process.poll() is not None:
            raise RuntimeError(f"the executor ended: {self._log.read_text()[-2000:]}")


def executor_command(workers: int) -> list[str]:
    """Return the command people run, from the virtual environment we run in."""
    return [str(Path(sys.executable).parent / "ingest-executor"), "run", f"--workers={workers}"]


@contextmanager
def run_executor(database: Database, directory: Path, *, workers: int) -> Iterator[Executor]:
    """Run one executor, alive in the database when this yields."""
    log = directory / "executor.log"
    environment = child_environment(
        INGEST_DATABASE_URL=database.url,
        INGEST_OPEN_ORIGINS='["http://127.0.0.1:*"]',
        INGEST_POLL_SECONDS="0.05",
    )
    started = time.time()
    with log.open("wb") as output:
        process = subprocess.Popen(
            executor_command(workers), cwd=directory, env=environment, stdout=output, stderr=output
        )
    try:
        executor = Executor(process, log, 0.0)
        alive = text("SELECT count(*) FROM ing_process WHERE pid = :pid AND stopped_at IS NULL")
        while not _scalar(database, alive, pid=process.pid):
            executor.check_alive()
            time.sleep(0.02)
        executor.ready_s = time.time() - started
        yield executor
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGTERM)
        process.wait(30)


@dataclass(frozen=True, slots=True)
class Harvest:
    """When the work of one fire began and ended."""

    began: float
    ended: float
    fired: float


def harvest(database: Database, work: Work, executor: Executor) -> Harvest:
    """Fire, and wait until every task has ended well."""
    after = _scalar(database, _LAST_RUN)
    fired = time.time()
    work.fire()
    while _scalar(database, _LEFT):
        executor.check_alive()
        time.sleep(0.05)
    with database.transaction() as conn:
        ends = conn.execute(_ENDED, {"after": after}).all()
    assert ends, "no run was started"
    assert all(status == "SUCCEEDED" for status, _ in ends), ends
    began = _scalar(database, _STARTED, after=after).timestamp()
    return Harvest(began=began, ended=executor.last_task_ended(len(ends)), fired=fired)


def read_accounts(database: Database) -> dict[str, int]:
    """Return what the system wrote about its own work: the proof that nothing was switched off."""
    names = ("batches", "outbox_keys", "page_events", "series_covered", "inserted", "updated", "unchanged")
    with database.transaction() as conn:
        return dict(zip(names, (int(value or 0) for value in conn.execute(_ACCOUNTS).one()), strict=True))


def _scalar(database: Database, statement: TextClause, **values: object) -> Any:
    with database.transaction() as conn:
        return conn.execute(statement, values).scalar_one()
