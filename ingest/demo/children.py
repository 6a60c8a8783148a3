"""Children: the demo's processes, each with a log file of its own, and none left behind.

Invariant: a child is in a session of its own, so a terminal's Ctrl-C reaches the demo alone, which stops its children
in order: SIGTERM, a wait, SIGKILL.
"""

import os
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.errors import OperatorError

if TYPE_CHECKING:
    from io import BufferedWriter

_STOP_SECONDS = 15.0


class Child:
    """One process and where it writes."""

    def __init__(self, name: str, command: list[str], *, folder: Path, environment: Mapping[str, str]) -> None:
        self.name = name
        self.killed = False
        self.log = folder / "logs" / f"{name}.log"
        self.log.parent.mkdir(parents=True, exist_ok=True)
        tethered = [sys.executable, "-m", "ingest.demo.tether", *command]
        with self.log.open("ab") as log:
            self._process = self._start(tethered, folder, dict(environment), log)

    def _start(
        self, command: list[str], folder: Path, environment: dict[str, str], log: "BufferedWriter"
    ) -> "subprocess.Popen[bytes]":
        environment["INGEST_DEMO_PARENT"] = str(os.getpid())
        return subprocess.Popen(  # noqa: S603 -- the demo's own programs, by their paths
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """Its process id."""
        return self._process.pid

    def check(self) -> None:
        """Raise `OperatorError` with its last words if it ended by itself."""
        code = self._process.poll()
        if code is None:
            return
        words = self.log.read_text(errors="replace").strip().splitlines()[-1:] or ["it said nothing"]
        raise OperatorError(f"{self.name} ended with {code}: {words[0][:300]} (see {self.log})")

    def kill(self) -> None:
        """End it as a crash would: SIGKILL, nothing tidied up."""
        self.killed = True
        self._process.kill()
        self._process.wait()

    def ask_to_stop(self) -> None:
        """Send SIGTERM."""
        self._process.terminate()

    def wait(self, deadline: float) -> None:
        """Wait until the deadline (monotonic), then kill."""
        try:
            self._process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()


def stop_all(children: Iterable[Child]) -> None:
    """Stop these together; returns when all are gone."""
    stopping = list(children)
    for child in stopping:
        child.ask_to_stop()
    deadline = time.monotonic() + _STOP_SECONDS
    for child in stopping:
        child.wait(deadline)


def clean_environment() -> dict[str, str]:
    """Return this process' environment without settings of ours: the demo must not reach another database."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("INGEST_", "PG"))}


def find_program(name: str) -> str:
    """Return the path of a program installed beside this python."""
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise OperatorError(f"{path} is not there: install the package (make setup)")
    return str(path)
