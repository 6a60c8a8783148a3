"""Listener: a listening socket, a thread per connection, and an end to all of them.

`close` returns when nothing listens, no connection is open and no handler runs.
"""

import socket
import sys
import time
from contextlib import suppress
from http.server import ThreadingHTTPServer
from socketserver import BaseRequestHandler, TCPServer
from threading import Lock, Thread
from typing import Any

_JOIN_SECONDS = 5.0
_POLL_SECONDS = 0.01  # how long `close` may wait; a tenth of a percent of a core


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256  # the default of 5 drops connections when a pool of workers starts

    def __init__(self, host: str, port: int, handler: type[BaseRequestHandler]) -> None:
        self._lock = Lock()
        self._open: dict[socket.socket, Thread] = {}
        self._closed = False
        super().__init__((host, port), handler)
        self._thread = Thread(target=self.serve_forever, args=(_POLL_SECONDS,), name="simulator", daemon=True)

    @property
    def url(self) -> str:
        host, port = self.server_address[:2]
        return f"http://{host!s}:{port}"

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop listening, hang up on every client and wait for the handlers; a second call does nothing."""
        if self._closed:
            return
        self._closed = True
        if self._thread.is_alive():
            self.shutdown()
            self._thread.join()
        self.server_close()
        with self._lock:
            left = dict(self._open)
        for connection in left:
            _hang_up(connection)
        deadline = time.monotonic() + _JOIN_SECONDS
        for thread in left.values():
            thread.join(max(0.0, deadline - time.monotonic()))

    def server_bind(self) -> None:
        # HTTPServer would ask DNS for its own name here, which can take seconds and is of no use.
        TCPServer.server_bind(self)
        host, port = self.server_address[:2]
        self.server_name, self.server_port = str(host), int(port)

    def process_request(self, request: Any, client_address: Any) -> None:
        thread = Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        with self._lock:
            self._open[request] = thread
        thread.start()

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError):  # clients may leave; anything else is our bug
            super().handle_error(request, client_address)


def _hang_up(connection: socket.socket) -> None:
    with suppress(OSError):  # the client may have been quicker
        connection.shutdown(socket.SHUT_RDWR)
