"""Handler: one HTTP/1.1 connection, from bytes to a `Request` and from an `Answer` back to bytes.

The arrival is stamped when the request line has been read, before anything is parsed. A small
answer leaves in one write, unless a fault delivers it in pieces.
"""

import time
from email.utils import formatdate
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler

from simulator.answers import Answer, Delivery, Request, answer_json, read_params
from simulator.control import answer_control
from simulator.world import World

_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class Handler(BaseHTTPRequestHandler):
    world: World
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def parse_request(self) -> bool:
        self._arrived = time.monotonic()
        return super().parse_request()

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def do_DELETE(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: the journal has it."""

    def _serve(self) -> None:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            self.close_connection = True
            self._send(answer_json({"error": "send a Content-Length"}, 411))
            return
        try:
            request = self._read_request()
        except ValueError as error:
            self._send(answer_json({"error": f"the body cannot be read: {error}"}, 400))
            return
        if request.path.startswith("/_sim/"):
            self._send(answer_control(self.world, request))
            return
        answer, delivery, entry = self.world.answer(request, self._arrived)
        sent = 0
        try:
            sent = self._deliver(answer, delivery)
        finally:
            self.world.journal.finish(entry, sent)

    def _read_request(self) -> Request:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length) if length else b""
        path, _, query = self.path.partition("?")
        is_control = path.startswith("/_sim/")  # whose bodies are orders, not parameters
        content_type = "" if is_control else self.headers.get("Content-Type", "")
        return Request(
            method=self.command,
            path=path,
            target=self.path,
            params=read_params(query, content_type, body),
            host=self.headers.get("Host", ""),
            headers=dict(self.headers.items()),
            body=body,
        )

    def _deliver(self, answer: Answer, delivery: Delivery) -> int:
        """Send the answer as the fault wants it and return how many bytes of the body left."""
        if not delivery.drip and delivery.delay_s and self._wait(delivery.delay_s):
            return 0
        if delivery.hang_up:
            self.close_connection = True
            return 0
        if delivery.cut is not None:
            self.close_connection = True
            self.wfile.write(self._write_head(answer) + answer.body[: delivery.cut])
            return min(delivery.cut, len(answer.body))
        if delivery.drip:
            return self._drip(answer, delivery.delay_s)
        return self._send(answer)

    def _drip(self, answer: Answer, pause_s: float) -> int:
        self.wfile.write(self._write_head(answer))
        for place in range(len(answer.body)):
            if pause_s and self._wait(pause_s):
                return place
            self.wfile.write(answer.body[place : place + 1])
        return len(answer.body)

    def _wait(self, seconds: float) -> bool:
        """Wait; True if the simulator ended meanwhile, and this connection with it."""
        if self.world.stop.wait(seconds):
            self.close_connection = True
            return True
        return False

    def _send(self, answer: Answer) -> int:
        head = self._write_head(answer)
        if len(answer.body) < 65_536:
            self.wfile.write(head + answer.body)
        else:  # a second packet is cheaper than a copy
            self.wfile.write(head)
            self.wfile.write(answer.body)
        return len(answer.body)

    def _write_head(self, answer: Answer) -> bytes:
        lines = [
            f"HTTP/1.1 {answer.status} {_PHRASES.get(answer.status, 'Unknown')}",
            "Server: patra-simulator",
            f"Date: {formatdate(usegmt=True)}",
            f"Content-Type: {answer.content_type}",
            f"Content-Length: {len(answer.body)}",
            *(f"{name}: {value}" for name, value in answer.headers),
        ]
        if self.close_connection:
            lines.append("Connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")
