"""The demo's world: the simulator with its port, its time span, and every change made to its records.

Invariant: the world is the same after a restart. Port, seed and span are chosen once and kept in world.json; each
change is written to changes.jsonl before it is made, and made again in the same order at the next start. Another port
would be another origin, whose coverage starts empty; other records would not be what was harvested.
"""

import http.client
import json
import socket
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from ingest.demo.children import Child
from ingest.errors import OperatorError, RefusedByState

HOST = "127.0.0.1"
_PORT = 8099
_DAYS = 30
_START_SECONDS = 30.0
# what goes wrong on the first harvest, so that it can be seen to do no harm
_FAULTS = [
    {"api": "plain", "kind": "429", "after": 15, "times": 1, "retry_after": 1},
    {"api": "crossref", "kind": "503", "after": 20, "times": 1},
    {"api": "pubmed", "kind": "truncate", "after": 25, "times": 1},
]
# what changes while one watches; PubMed's open day is not read before it is over, so it is left alone
_CHANGES = [
    {"api": "crossref", "count": 2, "add": 3},
    {"api": "github", "count": 1, "add": 1},
    {"api": "plain", "count": 1, "add": 2},
]


@dataclass(frozen=True, slots=True)
class Plan:
    """What the world is made from."""

    port: int
    seed: int
    start: str
    end: str


class World:
    """The simulated sources of one demo folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._changes = folder / "changes.jsonl"
        stored = folder / "world.json"
        self.is_new = not stored.exists()
        if self.is_new:
            end = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
            start = end - timedelta(days=_DAYS)
            self.plan = Plan(_choose_port(), 7, f"{start:%Y-%m-%dT00:00:00Z}", f"{end:%Y-%m-%dT00:00:00Z}")
            stored.write_text(json.dumps(asdict(self.plan), indent=2) + "\n")
        else:
            self.plan = Plan(**json.loads(stored.read_text()))
        self.last_change: datetime | None = None

    @property
    def origin(self) -> str:
        """Where the simulator listens."""
        return f"http://{HOST}:{self.plan.port}"

    @property
    def start(self) -> datetime:
        """The time of the oldest record."""
        return datetime.fromisoformat(self.plan.start)

    def serve(self, environment: Mapping[str, str]) -> Child:
        """Start the simulator; the caller stops it. Answers are there after `wait`."""
        plan = self.plan
        if not _is_free(plan.port):
            raise RefusedByState(
                f"port {plan.port}, which this demo used before, is taken: stop what listens there, "
                f"or remove {self._folder}/ to begin anew"
            )
        command = [sys.executable, "-m", "simulator", "--port", str(plan.port), "--seed", str(plan.seed)]
        command += ["--start", plan.start, "--end", plan.end, "--cold"]
        return Child("simulator", command, folder=self._folder, environment=environment)

    def wait(self, child: Child) -> None:
        """Return when the simulator answers and its records are as they were."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            child.check()
            try:
                self.ask("GET", "/_sim/health")
                break
            except OSError:
                if time.monotonic() > deadline:
                    raise OperatorError(f"the simulator does not answer (see {child.log})") from None
                time.sleep(0.05)
        for line in self._changes.read_text().splitlines() if self._changes.exists() else []:
            change = json.loads(line)
            self.ask("POST", "/_sim/mutate", change)
            self.last_change = datetime.fromisoformat(change["at"])

    def plant_faults(self) -> None:
        """Order the faults of the first harvest."""
        self.ask("POST", "/_sim/faults", _FAULTS)

    def change(self) -> None:
        """Change and add a few records, stamped with this second."""
        at = datetime.now(UTC).replace(microsecond=0)
        for change in _CHANGES:
            dated = change | {"at": f"{at:%Y-%m-%dT%H:%M:%SZ}"}
            with self._changes.open("a") as file:
                file.write(json.dumps(dated) + "\n")
            self.ask("POST", "/_sim/mutate", dated)
        self.last_change = at

    def tell_truth(self, api: str, *, until: datetime | None = None, full: bool = False) -> dict[str, Any]:
        """Return what a complete copy of `api` holds, of records updated before `until`."""
        bound = f"&to={until.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" if until else ""
        answer: dict[str, Any] = self.ask("GET", f"/_sim/truth/{api}?full={int(full)}{bound}")
        return answer

    def ask(self, method: str, path: str, body: object = None) -> Any:
        """Ask the control surface; raises OSError if nothing answers."""
        connection = http.client.HTTPConnection(HOST, self.plan.port, timeout=20)
        try:
            connection.request(method, path, None if body is None else json.dumps(body))
            answer = connection.getresponse()
            content = answer.read()
        finally:
            connection.close()
        if answer.status != 200:
            raise OperatorError(f"the simulator refused {method} {path}: {content[:300].decode(errors='replace')}")
        return json.loads(content)


def _choose_port() -> int:
    if _is_free(_PORT):
        return _PORT
    with socket.socket() as free:
        free.bind((HOST, 0))
        return int(free.getsockname()[1])


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the simulator does
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True
