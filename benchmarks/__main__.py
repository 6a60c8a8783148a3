"""`python -m benchmarks`: ours, the floor and dlt on the same data in one run, the queue, and batch writes."""

import argparse
import json
import signal
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks import leases, report, writes
from benchmarks.loads import VARIANTS, Bench, Load, Variant
from benchmarks.machine import describe_machine
from benchmarks.places import DLT_PYTHON, README, RESULTS
from benchmarks.postgres import Postgres, run_postgres
from benchmarks.source import run_source
from ingest.logs import configure_logs

KINDS = ("ours", "floor", "dlt", "leases", "writes")


def say(line: str) -> None:
    """Show progress; the results alone go to stdout."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def parse(arguments: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--pages", type=int, default=200)
    parser.add_argument("--records", type=int, default=1000, help="per page")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default=",".join(KINDS), help="of %(default)s; or names of variants: ours-2")
    parser.add_argument("--pending", type=int, default=100_000, help="tasks waiting in the queue benchmark")
    parser.add_argument("--seconds", type=float, default=3.0, help="per cell of the queue benchmark")
    parser.add_argument("--directory", type=Path, help="where the database goes (default: a temporary directory)")
    parser.add_argument("--write-readme", action="store_true", help="put the figures into benchmarks/README.md")
    parser.add_argument("--from-json", type=Path, help="do not measure: report a result file again")
    return parser.parse_args(arguments)


def choose_variants(only: str) -> list[Variant]:
    """Return the variants named, or of a kind named."""
    words = {word.strip() for word in only.split(",")}
    known = {*KINDS, *(variant.name for variant in VARIANTS)}
    if unknown := sorted(words - known):
        raise SystemExit(f"python -m benchmarks: unknown {unknown[0]!r}; known: {', '.join(sorted(known))}")
    return [variant for variant in VARIANTS if {variant.name, variant.kind} & words]


def drop_missing(chosen: list[Variant]) -> list[Variant]:
    """Return the variants that can be measured here; say of the others how they could be."""
    missing = _missing()
    for kind in sorted({variant.kind for variant in chosen} & set(missing)):
        say(missing[kind])
    return [variant for variant in chosen if variant.kind not in missing]


def _missing() -> dict[str, str]:
    """Return what cannot be measured here, and how it could be."""
    found = {}
    if not DLT_PYTHON.exists():
        found["dlt"] = (
            "dlt is left out: it is not installed. To add it: python3 -m venv benchmarks/.venv-dlt && "
            "benchmarks/.venv-dlt/bin/pip install 'dlt[postgres]'"
        )
    if find_spec("orjson") is None:
        found["floor"] = "the floor is left out: orjson is not installed. To add it: pip install orjson"
    return found


def run_loads(options: argparse.Namespace, postgres: Postgres, directory: Path) -> Iterator[Load]:
    """Interleave the variants and turn their order with each repeat: drift of the machine falls on all of them."""
    variants = options.variants
    if not variants:
        return
    say(f"building {options.pages} pages of {options.records} records ...")
    with run_source(pages=options.pages, records=options.records) as source:
        bench = Bench(postgres, source, directory, say)
        for repeat in range(options.repeats):
            shift = repeat % len(variants)
            for variant in variants[shift:] + variants[:shift]:
                yield from bench.measure(variant, repeat)


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run what was asked for and return it as plain data."""
    words = set(options.only.split(","))
    with tempfile.TemporaryDirectory(prefix="ingest-bench-", dir=options.directory) as scratch:
        directory = Path(scratch)
        with run_postgres(directory / "postgres") as postgres:
            return {
                "at": datetime.now(UTC).isoformat(timespec="seconds"),
                "options": {"pages": options.pages, "records": options.records, "repeats": options.repeats,
                            "pending": options.pending},
                "machine": describe_machine(postgres),
                "loads": [asdict(load) for load in run_loads(options, postgres, directory)],
                "queue": list(leases.measure(postgres, options, say)) if "leases" in words else [],
                "writes": list(writes.measure(postgres, options, say)) if "writes" in words else [],
            }  # fmt: skip


def main() -> None:
    """Measure, store, show."""
    options = parse()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # unwinds: the server and every process are stopped
    configure_logs("WARNING", process="benchmark")  # the planner's lines about every fire are not ours to show
    options.variants = drop_missing(choose_variants(options.only))
    if options.from_json:
        results = json.loads(options.from_json.read_text())
    else:
        results = measure(options)
        RESULTS.mkdir(exist_ok=True)
        path = RESULTS / f"{results['at'].replace(':', '').replace('+0000', 'Z')}.json"
        path.write_text(json.dumps(results, indent=1))
        say(f"stored in {path}")
    print(report.render(results))
    if options.write_readme:
        report.write_readme(README, results)
        say(f"wrote {README}")


if __name__ == "__main__":
    main()
