"""Command line: `python -m simulator` serves the stand-in APIs, `python -m simulator bench` bench pages.

Runs in the foreground until SIGTERM or SIGINT, then exits 0; exits 1 with one line if it cannot listen.
"""

import argparse
import errno
import signal
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, closing
from threading import Event

from simulator.bench import make_bench_listener
from simulator.pages import PHASES, BenchPages
from simulator.server import Simulator
from simulator.world import APIS, DEFAULT_REPOS, DEFAULT_SIZES, DEFAULT_SPAN


def main(argv: Sequence[str] | None = None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    bench = arguments[:1] == ["bench"]
    options = _make_bench_parser().parse_args(arguments[1:]) if bench else _make_parser().parse_args(arguments)
    stop = Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    try:
        server, line = _open_bench(options) if bench else _open_simulator(options)
    except OSError as error:
        sys.stderr.write(f"simulator: {_explain(error, options.host, options.port)}\n")
        return 1
    except ValueError as error:
        sys.stderr.write(f"simulator: {error}\n")
        return 1
    with server:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
        stop.wait()
    return 0


def _open_simulator(options: argparse.Namespace) -> tuple[AbstractContextManager[object], str]:
    sizes = {api: getattr(options, api) for api in APIS}
    simulator = Simulator(
        seed=options.seed,
        port=options.port,
        host=options.host,
        sizes=sizes,
        span=(options.start, options.end),
        github_repos=options.github_repos.split(","),
        mutate_every=options.mutate_every,
        mutate_at=options.mutate_at,
        warm=not options.cold,
    )
    told = ", ".join(f"{api} {size}" for api, size in sizes.items())
    line = f"simulator: {told} records (seed {options.seed}) on {simulator.url}, control under /_sim/"
    return simulator, line


def _open_bench(options: argparse.Namespace) -> tuple[AbstractContextManager[object], str]:
    pages = BenchPages(pages=options.pages, records=options.records, seed=options.seed)
    phases = [phase for phase in options.build.split(",") if phase]
    if unknown := sorted(set(phases) - set(PHASES)):
        raise ValueError(f"unknown phase {unknown[0]!r}; known: {', '.join(PHASES)}")
    listener = make_bench_listener(options.host, options.port, pages)
    for phase in phases:
        pages.get_phase(phase)
    listener.start()
    told = f"{options.pages} pages of {options.records} records on {listener.url}/bench/p1/items"
    return closing(listener), f"simulator bench: {told} and {listener.url}/bench/p2/items"


def _explain(error: OSError, host: str, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is taken; stop what listens there or choose another with --port"
    return f"cannot listen on {host} port {port}: {error.strerror or error}"


def _make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m simulator",
        description="Serve stand-ins for real APIs, with the truth and faults under /_sim/.",
        epilog="`python -m simulator bench --help`: pre-built pages for benchmarks.",
    )
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8099, help="0 takes a free one (default %(default)s)")
    parser.add_argument("--seed", type=int, default=7, help="the same seed serves the same records")
    for api in APIS:
        parser.add_argument(
            f"--{api}",
            type=int,
            default=DEFAULT_SIZES[api],
            metavar="N",
            help="records (default %(default)s)",
        )
    parser.add_argument("--start", default=DEFAULT_SPAN[0], help="first updated time (default %(default)s)")
    parser.add_argument("--end", default=DEFAULT_SPAN[1], help="end of updated times (default %(default)s)")
    parser.add_argument("--github-repos", default=",".join(DEFAULT_REPOS), metavar="OWNER/REPO,...")
    parser.add_argument("--mutate-every", type=int, default=0, metavar="K", help="change a record every K requests")
    parser.add_argument("--mutate-at", default="now", metavar="TIME", help="the updated time it gets (default now)")
    parser.add_argument("--cold", action="store_true", help="write records when asked for, not ahead")
    return parser


def _make_bench_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m simulator bench", description="Serve pre-built pages.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8098, help="0 takes a free one (default %(default)s)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--pages", type=int, default=200, metavar="N")
    parser.add_argument("--records", type=int, default=1000, metavar="N", help="per page")
    parser.add_argument(
        "--build",
        default="",
        metavar=",".join(PHASES),
        help="phases to build before serving (default: on first use)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
