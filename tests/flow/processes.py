"""Real daemons for flow tests: started as users start them, killed with real signals, their logs kept."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import text

from ingest.db import Database

BIN = Path(sys.executable).parent


def wait_until(condition: Callable[[], Any], what: str, seconds: float = 60.0) -> Any:
    """Wait for a fact to become true; fail naming it if it does not."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while time.monotonic() < deadline:
        value = condition()
        if value:
            return value
        pause.wait(0.03)
    raise AssertionError(f"waited {seconds:.0f} s for: {what}")


class Daemon:
    """One daemon process."""

    def __init__(self, command: list[str], url: str, log: Path, **settings: str) -> None:
        self.log = log
        environment = {
            **os.environ,
            "INGEST_DATABASE_URL": url,
            "INGEST_OPEN_ORIGINS": '["http://127.0.0.1:*"]',
            "INGEST_LEASE_SECONDS": "3",
            "INGEST_POLL_SECONDS": "0.05",
            "INGEST_TICK_SECONDS": "0.1",
            **settings,
        }
        self._file = log.open("ab")
        self.process = subprocess.Popen(
            command, env=environment, stderr=self._file, stdout=subprocess.DEVNULL, cwd=log.parent
        )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal if the process is there."""
        if self.process.poll() is None:
            self.process.send_signal(number)

    def kill(self) -> None:
        """SIGKILL and reap."""
        self.signal(signal.SIGKILL)
        self.process.wait(30)
        self._file.close()

    def stop(self, seconds: float = 60) -> int:
        """SIGTERM and wait for a graceful end; return the exit code."""
        self.signal(signal.SIGTERM)
        code = self.process.wait(seconds)
        self._file.close()
        return code

    def events(self, name: str) -> list[dict[str, Any]]:
        """Return the log lines with this event."""
        lines = self.log.read_text(encoding="utf-8").splitlines()
        parsed = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in parsed if line.get("event") == name]


class Crew:
    """Starts daemons on one database and leaves none behind."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url = url
        self._folder = folder
        self._started: list[Daemon] = []

    def executor(self, *, workers: int = 1, **settings: str) -> Daemon:
        """Start an executor."""
        return self._start("executor", [str(BIN / "ingest-executor"), "run", "--workers", str(workers)], settings)

    def planner(self, **settings: str) -> Daemon:
        """Start a planner."""
        return self._start("planner", [str(BIN / "ingest-planner"), "run"], settings)

    def _start(self, kind: str, command: list[str], settings: dict[str, str]) -> Daemon:
        log = self._folder / f"{kind}-{len(self._started)}.log"
        daemon = Daemon(command, self.url, log, **settings)
        self._started.append(daemon)
        return daemon

    def close(self) -> None:
        """Kill what still runs; stopped processes are woken first, or they could not die."""
        for daemon in self._started:
            daemon.signal(signal.SIGCONT)
            daemon.kill()


@contextmanager
def crew(url: str, folder: Path) -> Iterator[Crew]:
    """Yield a crew that is gone afterwards."""
    it = Crew(url, folder)
    try:
        yield it
    finally:
        it.close()


def scalar(database: Database, statement: str, **values: object) -> Any:
    """Return one value."""
    with database.transaction() as conn:
        return conn.execute(text(statement), values).scalar_one_or_none()


def rows(database: Database, statement: str, **values: object) -> list[tuple[Any, ...]]:
    """Return all rows."""
    with database.transaction() as conn:
        return [tuple(row) for row in conn.execute(text(statement), values)]


def all_tasks_ended(database: Database) -> bool:
    """Say whether nothing is queued or running any more."""
    return not scalar(
        database, "SELECT count(*) FROM ing_task WHERE status_code IN ('QUEUED', 'DISPATCHED', 'EXECUTING')"
    )
