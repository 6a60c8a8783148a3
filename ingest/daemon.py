"""Daemons: one identity per boot, a stop that signals set, a heartbeat, and loops that survive an error."""

import os
import signal
import socket
import threading
import uuid
from collections.abc import Callable
from importlib.metadata import version
from types import FrameType

from ingest.connect import open_database
from ingest.db import Database
from ingest.errors import OperatorError
from ingest.logs import get_log
from ingest.settings import Settings
from ingest.states import ProcessKind
from ingest.store import processes
from ingest.store.schema import require_current

_HEARTBEAT_SECONDS = 5.0
_SCHEMA_SECONDS = 2.0


class Daemon:
    """A process that runs until it is told to stop.

    `boot_id` is unique per start: a restarted process with the same host and pid is another lease owner.
    """

    def __init__(self, kind: ProcessKind, settings: Settings, *, pool_size: int, capacity: int = 0) -> None:
        self.kind = kind
        self.capacity = capacity
        self.host = socket.gethostname()
        self.boot_id = f"{self.host}:{os.getpid()}:{uuid.uuid4().hex[:12]}"
        self.stop = threading.Event()
        self._settings = settings
        self._pool_size = pool_size
        self._log = get_log(kind.lower())

    def stop_on_signals(self) -> None:
        """SIGTERM and SIGINT ask for a graceful stop; a second one ends the process at once."""

        def handle(number: int, _frame: FrameType | None) -> None:
            if self.stop.is_set():
                os._exit(128 + number)
            self.stop.set()

        signal.signal(signal.SIGTERM, handle)
        signal.signal(signal.SIGINT, handle)

    def connect(self) -> Database | None:
        """Wait for the database and its schema, saying so (G1); None if told to stop meanwhile."""
        application = f"ingest-{self.kind.lower()}"
        database = open_database(self._settings, application=application, pool_size=self._pool_size)
        if not database.wait(stop=self.stop.wait, say=self._log.warning):
            return None
        while True:
            try:
                with database.transaction() as conn:
                    require_current(conn)
                return database
            except OperatorError as error:
                self._log.warning("waiting for the schema", reason=str(error))
            if self.stop.wait(_SCHEMA_SECONDS):
                return None

    def start_heartbeat(self, database: Database) -> None:
        """Beat now, and in a thread of its own until the process stops."""

        def beat() -> None:
            with database.transaction() as conn:
                processes.beat(
                    conn,
                    boot_id=self.boot_id,
                    kind=self.kind,
                    host=self.host,
                    pid=os.getpid(),
                    capacity=self.capacity,
                    version=version("patra-ingest"),
                )

        beat()
        self.spawn("heartbeat", beat, _HEARTBEAT_SECONDS)

    def spawn(self, name: str, work: Callable[[], object], seconds: float) -> threading.Thread:
        """Run `loop` in a thread that does not keep the process alive."""
        thread = threading.Thread(target=self.loop, args=(name, work, seconds), name=name, daemon=True)
        thread.start()
        return thread

    def loop(self, name: str, work: Callable[[], object], seconds: float) -> None:
        """Do the work every so often; an error is logged and the loop goes on, slower while errors last."""
        delay = seconds
        while not self.stop.wait(delay):
            try:
                work()
                delay = seconds
            except Exception as error:
                delay = min(delay * 2, max(seconds, 10.0))
                self._log.error("loop failed", loop=name, error=first_line(error), retry_in_s=delay)

    def say_stopped(self, database: Database) -> None:
        """Leave the list of the living; best effort, the heartbeat's age says it anyway."""
        try:
            with database.transaction() as conn:
                processes.mark_stopped(conn, self.boot_id)
        except Exception as error:
            self._log.warning("could not say goodbye", error=first_line(error))


def first_line(error: BaseException) -> str:
    """Return the error as one line, for logs and tables."""
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__
