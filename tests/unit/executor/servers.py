"""Servers for tests: raw sockets in threads that answer with exactly the bytes, and the timing, a test wants."""

import contextlib
import gzip
import socket
from collections.abc import Callable, Iterator
from threading import Event, Thread

Script = Callable[[socket.socket, bytes, Event], None]


class Server:
    """Hands every connection, with the head of each request on it, to a script; keeps the heads."""

    def __init__(self, script: Script, host: str = "127.0.0.1") -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._listener = socket.create_server((host, 0), family=family)
        self.port = int(self._listener.getsockname()[1])
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
        self.requests: list[bytes] = []
        self._script = script
        self._stop = Event()
        self._connections: list[socket.socket] = []
        self._threads = [Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._connections.append(connection)
                thread = Thread(target=self._serve, args=(connection,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            while head := _read_head(connection):
                self.requests.append(head)
                self._script(connection, head, self._stop)

    def close(self) -> None:
        self._stop.set()
        for each in (self._listener, *self._connections):
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join()


def _read_head(connection: socket.socket) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head:
        chunk = connection.recv(65536)
        if not chunk:
            return b""
        head += chunk
    return head


@contextlib.contextmanager
def serve(script: Script | bytes, host: str = "127.0.0.1") -> Iterator[Server]:
    """Serve a script, or always the same bytes."""
    if isinstance(script, bytes):
        server = Server(lambda connection, _head, _stop, answer=script: connection.sendall(answer), host)  # type: ignore[misc]
    else:
        server = Server(script, host)
    try:
        yield server
    finally:
        server.close()


def answer(body: bytes = b"[]", status: int = 200, headers: dict[str, str] | None = None) -> bytes:
    """Return a whole answer with its length."""
    lines = [f"HTTP/1.1 {status} X", f"Content-Length: {len(body)}"]
    lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def zipped(body: bytes) -> bytes:
    """Return an answer compressed by gzip."""
    return answer(gzip.compress(body), headers={"Content-Encoding": "gzip"})


def drip(whole: bytes, at_once: int = 0) -> Script:
    """Send the beginning at once and the rest byte by byte, 20 ms apart, until the client has had enough."""

    def script(connection: socket.socket, _head: bytes, stop: Event) -> None:
        connection.sendall(whole[:at_once])
        for number in range(at_once, len(whole)):
            if stop.wait(0.02):
                return
            connection.sendall(whole[number : number + 1])

    return script


def silence(_connection: socket.socket, _head: bytes, stop: Event) -> None:
    """Say nothing until the test is over."""
    stop.wait(10)


def hang_up(part: bytes) -> Script:
    """Send a part and close the connection."""

    def script(connection: socket.socket, _head: bytes, _stop: Event) -> None:
        connection.sendall(part)
        connection.shutdown(socket.SHUT_RDWR)

    return script
