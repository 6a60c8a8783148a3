"""Programs: a snapshot compiled to what runs it, once per process and fingerprint (DESIGN §12)."""

import threading
from collections.abc import Callable
from dataclasses import dataclass

from executor.decode import JsonDecoder
from executor.fetch import Fetcher
from executor.gatekeeper import Gatekeeper
from executor.mapping import RecordMapper
from executor.request import RequestBuilder
from executor.transport import Transport
from ingest.db import Database
from ingest.spec.snapshot import Snapshot
from ingest.store.rows import DatasetWriter
from ingest.store.specs import get_spec


@dataclass(frozen=True, slots=True)
class Program:
    """Everything one endpoint needs, ready to run."""

    snapshot: Snapshot
    requests: RequestBuilder
    fetcher: Fetcher
    decoder: JsonDecoder
    mapper: RecordMapper
    writer: DatasetWriter

    @property
    def cursor_key(self) -> str:
        """The watermark's name: the window's field, or `updated_at`."""
        return self.snapshot.window.field or "updated_at"


class Programs:
    """The programs of this process, by fingerprint; a snapshot never changes, so they are kept."""

    def __init__(
        self, database: Database, transport: Transport, gate: Gatekeeper, wait: Callable[[float], bool]
    ) -> None:
        self._database = database
        self._transport = transport
        self._gate = gate
        self._wait = wait
        self._programs: dict[str, Program] = {}
        self._lock = threading.Lock()

    def get(self, fingerprint: str) -> Program:
        """Return the program, compiled now if this process sees it for the first time."""
        with self._lock:
            program = self._programs.get(fingerprint)
            if program is None:
                with self._database.transaction() as conn:
                    snapshot = get_spec(conn, fingerprint)
                program = Program(
                    snapshot=snapshot,
                    requests=RequestBuilder(snapshot),
                    fetcher=Fetcher(snapshot, self._transport, self._gate, self._wait),
                    decoder=JsonDecoder(snapshot),
                    mapper=RecordMapper(snapshot),
                    writer=DatasetWriter(snapshot),
                )
                self._programs[fingerprint] = program
            return program
