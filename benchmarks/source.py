"""The source: the simulator's bench pages under one address, so that a second pass asks what the first one asked.

`/bench/items?page=K` answers page K of the phase now served; `/bench/part/N/items?page=K` is the same page, but the
walk of part N ends where part N+1 begins; `/bench/serve/p2` changes the phase. (The simulator's own bench server has
a path per phase; a snapshot with another path is another mapping, and every row would be rewritten.)
"""

import argparse
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from socketserver import StreamRequestHandler

from benchmarks.places import ROOT, child_environment
from simulator.listener import Listener
from simulator.pages import BenchPages

PARTS = 2
_ITEMS = rb"(?:part/(\d)/)?items\?(?:[^ ]*&)?page=(\d{1,9})[^ ]*"
_TARGET = re.compile(rb"GET /bench/(?:serve/(p1|p2)|" + _ITEMS + rb") HTTP/1\.1\r?\n")
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def first_page(part: int, pages: int) -> int:
    """Return the number of the part's first page; parts are numbered from 1, part 0 is everything."""
    return 1 if part == 0 else (part - 1) * pages // PARTS + 1


def end_walk(answer: bytes) -> bytes:
    """Return the answer with no next page."""
    body = answer.partition(b"\r\n\r\n")[2]
    head, _, _ = body.rpartition(b'"next":')
    body = head + b'"next":null}'
    return _HEAD % len(body) + body


class Answers:
    """Every answer of both phases, ready to send."""

    def __init__(self, *, pages: int, records: int) -> None:
        built = BenchPages(pages=pages, records=records)
        self._phases = {name: built.get_phase(name).answers for name in ("p1", "p2")}
        lasts = [first_page(part + 1, pages) - 1 for part in range(1, PARTS)]
        self._ends = {name: {n: end_walk(found[n - 1]) for n in lasts} for name, found in self._phases.items()}
        self._served = "p1"

    def find(self, line: bytes) -> bytes:
        """Return the whole answer to a request line."""
        match = _TARGET.fullmatch(line)
        if match is None:
            return _NOT_FOUND
        if match[1]:
            self._served = match[1].decode()
            return _HEAD % 2 + b"ok"
        number, answers = int(match[3]), self._phases[self._served]
        if match[2] and match[2] != b"0" and number in self._ends[self._served]:
            return self._ends[self._served][number]
        return answers[number - 1] if 1 <= number <= len(answers) else _NOT_FOUND


class _Handler(StreamRequestHandler):
    answers: Answers
    disable_nagle_algorithm = True

    def handle(self) -> None:
        while line := self.rfile.readline(65_537):
            while self.rfile.readline(65_537) not in (b"\r\n", b"\n", b""):
                pass
            self.connection.sendall(self.answers.find(line))


@dataclass(frozen=True, slots=True)
class Source:
    """A running source server."""

    url: str  # http://127.0.0.1:port/bench
    pid: int
    pages: int
    records: int

    @property
    def total(self) -> int:
        """How many records a whole walk returns."""
        return self.pages * self.records

    def serve(self, phase: str) -> None:
        """Serve this phase from now on."""
        with urllib.request.urlopen(f"{self.url}/serve/{phase}") as answer:  # noqa: S310 -- our own server
            answer.read()


@contextmanager
def run_source(*, pages: int, records: int) -> Iterator[Source]:
    """Run the source in a process of its own: its CPU is nobody's."""
    command = [sys.executable, "-m", "benchmarks.source", f"--pages={pages}", f"--records={records}"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=child_environment())
    try:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        if not url:
            raise RuntimeError("the source server did not start")
        yield Source(url, process.pid, pages, records)
    finally:
        process.terminate()
        process.wait()


def main() -> None:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--pages", type=int, required=True)
    parser.add_argument("--records", type=int, required=True)
    options = parser.parse_args()
    answers = Answers(pages=options.pages, records=options.records)
    listener = Listener("127.0.0.1", 0, type("Handler", (_Handler,), {"answers": answers}))
    listener.start()
    print(f"{listener.url}/bench", flush=True)
    signal.sigwait({signal.SIGTERM, signal.SIGINT})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT})
    main()
