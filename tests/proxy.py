"""A proxy in front of PostgreSQL that can swallow the answer to the next COMMIT and cut the line (D5 of the faults)."""

import contextlib
import socket
import tempfile
import threading
from pathlib import Path

from sqlalchemy.engine import make_url

_COMMITTED = b"C\x00\x00\x00\x0bCOMMIT\x00"


class CommitSwallower:
    """Listens on a socket of its own and forwards; `arm()` makes it lose the next answer to COMMIT."""

    def __init__(self, url: str) -> None:
        self._target = make_url(url)
        self._folder = Path(tempfile.mkdtemp(prefix="pgp-"))
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(self._folder / ".s.PGSQL.5432"))
        self._listener.listen()
        self._armed = threading.Event()
        self.swallowed = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()
        query = {"host": str(self._folder), "port": "5432"}
        self.url = self._target.set(host=None, port=None, query=query).render_as_string(hide_password=False)

    def arm(self) -> None:
        """Swallow the next answer to COMMIT."""
        self._armed.set()

    def close(self) -> None:
        """Stop listening."""
        self._listener.close()
        (self._folder / ".s.PGSQL.5432").unlink(missing_ok=True)
        self._folder.rmdir()

    def _connect(self) -> socket.socket:
        folder = self._target.query.get("host")
        if isinstance(folder, str) and folder.startswith("/"):
            port = self._target.query.get("port") or self._target.port or 5432
            upstream = socket.socket(socket.AF_UNIX)
            upstream.connect(f"{folder}/.s.PGSQL.{port}")
            return upstream
        return socket.create_connection((self._target.host or "127.0.0.1", self._target.port or 5432))

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                upstream = self._connect()
                threading.Thread(target=self._forward, args=(client, upstream, False), daemon=True).start()
                threading.Thread(target=self._forward, args=(upstream, client, True), daemon=True).start()

    def _forward(self, source: socket.socket, target: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if answers and self._armed.is_set() and _COMMITTED in data:
                    self._armed.clear()
                    self.swallowed.set()
                    break
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
