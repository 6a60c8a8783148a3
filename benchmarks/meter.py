"""The meter: what a stretch of work cost, read from /proc and PostgreSQL (Linux only).

CPU of a process tree is exact: living children by their own clocks, dead ones by their parent's. `noise` is the share
of the machine that went to processes that are none of ours, plus what the hypervisor took; above 15 % a run is not
quiet (performance.md §0).
"""

import os
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import psycopg

_TICK = os.sysconf("SC_CLK_TCK")
_CORES = os.cpu_count() or 1
QUIET = 0.15


def process_tree(pid: int) -> list[int]:
    """Return the process and its living descendants."""
    found = [pid]
    for parent in found:  # grows while it is walked
        for children in Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += [int(child) for child in children.read_text().split()]
            except (FileNotFoundError, ProcessLookupError):
                continue
    return found


def tree_cpu(pid: int) -> float:
    """Return the CPU seconds of a process, its living descendants, and those they waited for."""
    total = 0
    for member in process_tree(pid):
        try:
            fields = Path(f"/proc/{member}/stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += sum(int(field) for field in fields[11:15])  # utime, stime, cutime, cstime
    return total / _TICK


def peak_bytes(pid: int) -> int:
    """Return the largest VmHWM of any process of the tree.

    Not ru_maxrss: that one remembers the size of the parent it was forked from.
    """
    peak = 0
    for member in process_tree(pid):
        try:
            for line in Path(f"/proc/{member}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    peak = max(peak, int(line.split()[1]) * 1024)
        except (FileNotFoundError, ProcessLookupError):
            continue
    return peak


def machine_cpu() -> tuple[float, float]:
    """Return the machine's busy and stolen CPU seconds."""
    fields = [int(field) for field in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    user, nice, system, _idle, _iowait, _irq, _softirq, steal = fields
    return (user + nice + system) / _TICK, steal / _TICK


@dataclass(frozen=True, slots=True)
class Cost:
    """What a stretch of work cost."""

    seconds: float
    client_cpu_s: float
    server_cpu_s: float
    peak_rss_mb: float
    wal_mb: float
    noise: float


@dataclass(frozen=True, slots=True)
class _Reading:
    at: float
    client: float
    server: float
    others: float
    busy: float
    steal: float
    lsn: int


class Meter:
    """Measures one client process against one PostgreSQL; use as a context, then read `cost`."""

    def __init__(self, conn: psycopg.Connection, *, postmaster: int, client: int, source: int) -> None:
        self._conn = conn
        self._postmaster = postmaster
        self._client = client
        self._source = source
        self._peak = 0
        self._done = threading.Event()
        self._sampler = threading.Thread(target=self._sample, daemon=True)
        self.cost: Cost | None = None

    def __enter__(self) -> "Meter":
        self._conn.execute("CHECKPOINT")  # so that WAL includes full-page images: the worst case, the same for all
        self._sampler.start()
        self._first = self._read()
        return self

    def __exit__(self, *_: object) -> None:
        last, first = self._read(), self._first
        self._peak = max(self._peak, peak_bytes(self._client))
        self._done.set()
        self._sampler.join()
        seconds = last.at - first.at
        client, server = last.client - first.client, last.server - first.server
        foreign = (last.busy - first.busy) - client - server - (last.others - first.others)
        self.cost = Cost(
            seconds=seconds,
            client_cpu_s=client,
            server_cpu_s=server,
            peak_rss_mb=self._peak / 1e6,
            wal_mb=(last.lsn - first.lsn) / 1e6,
            noise=max(0.0, foreign + last.steal - first.steal) / (seconds * _CORES),
        )

    def _read(self) -> _Reading:
        row = self._conn.execute("SELECT (pg_current_wal_lsn() - '0/0')::bigint").fetchone()
        busy, steal = machine_cpu()
        others = tree_cpu(self._source) + time.process_time()
        client, server = tree_cpu(self._client), tree_cpu(self._postmaster)
        return _Reading(time.time(), client, server, others, busy, steal, row[0] if row else 0)

    def _sample(self) -> None:
        while not self._done.wait(0.1):
            self._peak = max(self._peak, peak_bytes(self._client))
