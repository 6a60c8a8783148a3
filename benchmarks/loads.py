"""Loads: each way of getting the same records into PostgreSQL, first load and second pass, measured alike."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg

from benchmarks import ours
from benchmarks.meter import Meter
from benchmarks.places import DLT_PYTHON, ROOT, child_environment
from benchmarks.postgres import Postgres, fresh_database
from benchmarks.source import PARTS, Source
from ingest.db import Database
from ingest.store.schema import migrate

PHASES = ("p1", "p2")
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to load."""

    name: str
    what: str
    kind: str  # the word --only knows it by
    workers: int = 1
    typed: bool = False


VARIANTS = (
    Variant("ours-1", "one executor, 1 worker; key, updated_at, payload and our 7 system columns", "ours"),
    Variant("F", "httpx + orjson + COPY to staging + upsert; key, updated_at, payload", "floor"),
    Variant("ours-2", "one executor, 2 workers; two tasks at once on one table", "ours", workers=2),
    Variant("ours-typed", "one executor, 1 worker; 6 typed columns more", "ours", typed=True),
    Variant("F-typed", "F with the same 6 typed columns", "floor", typed=True),
    Variant("dlt", "dlt, nesting off, upsert, csv, 2 normalize workers (11 typed columns)", "dlt"),
)


@dataclass(frozen=True, slots=True)
class Load:
    """One phase of one run of one variant."""

    variant: str
    phase: str
    repeat: int
    records: int
    seconds: float
    records_per_s: float
    client_cpu_s: float
    server_cpu_s: float
    peak_rss_mb: float
    wal_mb: float
    noise: float
    total_wall_s: float  # process start included
    accounts: dict[str, int]


@dataclass(slots=True)
class Bench:
    """Everything a load needs."""

    postgres: Postgres
    source: Source
    directory: Path
    say: Say

    def measure(self, variant: Variant, repeat: int) -> list[Load]:
        """Load both phases into a fresh database."""
        run = {"ours": self._ours, "floor": self._peer, "dlt": self._peer}[variant.kind]
        name = f"bench_{variant.name}".replace("-", "_")
        with fresh_database(self.postgres, name) as address, tempfile.TemporaryDirectory(dir=self.directory) as scratch:
            return list(run(variant, repeat, address, Path(scratch)))

    def _meter(self, conn: psycopg.Connection, client: int) -> Meter:
        return Meter(conn, postmaster=self.postgres.pid, client=client, source=self.source.pid)

    def _ours(self, variant: Variant, repeat: int, address: str, scratch: Path) -> Iterator[Load]:
        database = Database(address, pool_size=2, owner=True)
        migrate(database)
        parts = [0] if variant.workers == 1 else list(range(1, PARTS + 1))
        work = ours.Work(database, [ours.make_snapshot(self.source, part=part, typed=variant.typed) for part in parts])
        work.make_table()
        with psycopg.connect(address, autocommit=True) as conn:
            for phase in PHASES:
                self.source.serve(phase)
                with ours.run_executor(database, scratch, workers=variant.workers) as executor:
                    with self._meter(conn, executor.pid) as meter:
                        done = ours.harvest(database, work, executor)
                    startup = executor.ready_s
                self._check(conn, f"data.{ours.DATASET}", "provider_id", phase)
                yield self._load(
                    variant, phase, repeat, meter,
                    seconds=done.ended - done.began,
                    total=startup + done.ended - done.fired,
                    accounts=ours.read_accounts(database),
                )  # fmt: skip
        database.close()

    def _peer(self, variant: Variant, repeat: int, address: str, scratch: Path) -> Iterator[Load]:
        table, key = ("floor_items", "provider_id") if variant.kind == "floor" else ("dlt_bench.items", "id")
        with psycopg.connect(address, autocommit=True) as conn:
            for phase in PHASES:
                self.source.serve(phase)
                with _process(self._command(variant, address, scratch), scratch) as (process, started):
                    with self._meter(conn, process.pid) as meter:
                        began = time.time()
                        ended = _tell(process, self.source.total)
                    _finish(process)
                self._check(conn, table, key, phase)
                yield self._load(
                    variant, phase, repeat, meter, seconds=ended - began, total=started + ended - began, accounts={}
                )

    def _command(self, variant: Variant, address: str, scratch: Path) -> list[str]:
        where = [f"--database={address}", f"--url={self.source.url}"]
        if variant.kind == "dlt":
            script = str(ROOT / "benchmarks/dlt_load.py")
            return [str(DLT_PYTHON), "-P", script, *where, f"--directory={scratch}"]  # -P: our modules are not dlt's
        return [sys.executable, "-m", "benchmarks.floor", *where, *(["--typed"] if variant.typed else [])]

    def _check(self, conn: psycopg.Connection, table: str, key: str, phase: str) -> None:
        """Refuse a figure for work that was not done: every record there, and in p2 a tenth of them newer."""
        newer = f"updated_at > timestamptz '2024-01-01Z' + interval '7 s' * substring({key} from 7)::int"
        row = conn.execute(f"SELECT count(*), count(*) FILTER (WHERE {newer}) FROM {table}").fetchone()
        wanted = (self.source.total, 0 if phase == "p1" else self.source.total // 10)
        assert row == wanted, f"{table} after {phase}: {row}, not {wanted}"

    def _load(
        self, variant: Variant, phase: str, repeat: int, meter: Meter, *, seconds: float, total: float, accounts: Any
    ) -> Load:
        assert meter.cost is not None
        cost = asdict(meter.cost) | {"seconds": seconds}
        load = Load(
            variant=variant.name, phase=phase, repeat=repeat, records=self.source.total,
            records_per_s=self.source.total / seconds, total_wall_s=total, accounts=accounts, **cost,
        )  # fmt: skip
        self.say(
            f"{variant.name:12} {phase} #{repeat + 1}: {load.records_per_s:8,.0f} rec/s  "
            f"client {load.client_cpu_s:5.2f} s  pg {load.server_cpu_s:5.2f} s  rss {load.peak_rss_mb:4.0f} MB  "
            f"wal {load.wal_mb:5.0f} MB  noise {load.noise:4.0%}"
        )
        return load


@contextmanager
def _process(command: list[str], scratch: Path) -> Iterator[tuple["subprocess.Popen[str]", float]]:
    """Start a loader and wait until it says that it is ready; yield it and how long that took."""
    began = time.time()
    process = subprocess.Popen(
        command, cwd=scratch, env=child_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        said = process.stdout.readline().strip()
        assert said == "ready", f"{command[0]}: {said or 'ended'}"
        yield process, time.time() - began
    finally:
        process.kill()
        process.wait()


def _tell(process: "subprocess.Popen[str]", total: int) -> float:
    """Give the word, wait for the count, and return when it came."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    said = process.stdout.readline().strip()
    ended = time.time()
    assert said == str(total), f"loaded {said or 'nothing'}, not {total}"
    return ended


def _finish(process: "subprocess.Popen[str]") -> None:
    process.communicate("bye\n", timeout=60)
