"""Bench server: hand out pages that were built before, with as little work per request as possible.

`/bench/p1/items?page=K` and `/bench/p2/items?page=K` answer `{"items":[...],"next":K+1 or null}`;
`/bench/p1/build` builds a phase ahead of the clock. Only the request line is read: no header but
`Connection: close` has a meaning here.
"""

import re
import time
from socketserver import StreamRequestHandler

from simulator.dataset import encode_json
from simulator.listener import Listener
from simulator.pages import BenchPages

_TARGET = re.compile(rb"GET /bench/(p1|p2)/(?:(build)|items(?:\?(?:[^ ]*&)?page=(\d{1,9}))?[^ ]*) HTTP/1\.[01]\r?\n")
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


class BenchHandler(StreamRequestHandler):
    pages: BenchPages
    disable_nagle_algorithm = True

    def handle(self) -> None:
        while line := self.rfile.readline(65_537):
            closing = line.rstrip().endswith(b"HTTP/1.0")
            while (header := self.rfile.readline(65_537)) not in (b"\r\n", b"\n", b""):
                closing = closing or header.lower().rstrip() == b"connection: close"
            self.connection.sendall(find_answer(self.pages, line))
            if closing:
                return


def find_answer(pages: BenchPages, line: bytes) -> bytes:
    """Return the whole answer to a request line."""
    match = _TARGET.fullmatch(line)
    if match is None:
        return _NOT_FOUND
    started = time.perf_counter()
    phase = pages.get_phase(match[1].decode())
    if match[2]:
        told = {
            "phase": match[1].decode(),
            "pages": len(phase.answers),
            "records": phase.records,
            "newer": phase.newer,
            "body_bytes": phase.body_bytes,
            "seconds": round(time.perf_counter() - started, 3),
        }
        body = encode_json(told).encode()
        return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body
    number = int(match[3] or 1)
    return phase.answers[number - 1] if 1 <= number <= len(phase.answers) else _NOT_FOUND


def make_bench_listener(host: str, port: int, pages: BenchPages) -> Listener:
    """Bind a listener that serves `pages`; it is not started yet."""
    return Listener(host, port, type("BoundBenchHandler", (BenchHandler,), {"pages": pages}))
