"""The report: medians, ranges and ratios as Markdown, for the terminal and for benchmarks/README.md."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.loads import PHASES, VARIANTS
from benchmarks.meter import QUIET

BEGIN, END = "<!-- figures: written by `python -m benchmarks --write-readme` -->", "<!-- end of figures -->"
_PHASE_NAMES = {"p1": "first load", "p2": "second pass, 10 % newer"}
Rows = list[dict[str, Any]]


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table, padded so that it reads in a terminal too."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(lines[0]))]

    def write(cells: list[str]) -> str:
        first, *rest = cells
        padded = [cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True)]
        return "| " + " | ".join([first.ljust(widths[0]), *padded]) + " |"

    rule = "-" * (widths[0] + 2) + "|" + "|".join("-" * (width + 1) + ":" for width in widths[1:])
    return "\n".join([write(lines[0]), f"|{rule}|", *(write(line) for line in lines[1:])])


def spread(values: list[float], form: str = "{:,.0f}") -> str:
    """Return median and range: 21,000 [19,800-22,300]."""
    shown = form.format(median(values))
    return shown if len(values) == 1 else f"{shown} [{form.format(min(values))}-{form.format(max(values))}]"


def _group(rows: Rows, *names: str) -> dict[tuple[Any, ...], Rows]:
    found: dict[tuple[Any, ...], Rows] = defaultdict(list)
    for row in rows:
        found[tuple(row[name] for name in names)].append(row)
    return found


def paired_ratios(ours: Rows, other: Rows, value: Callable[[dict[str, Any]], float]) -> list[float]:
    """Return ours / other for every repeat both have: neighbours in time, so drift of the machine cancels."""
    others = {row["repeat"]: value(row) for row in other}
    return [value(row) / others[row["repeat"]] for row in ours if row["repeat"] in others]


def _speed(row: dict[str, Any]) -> float:
    return float(row["records_per_s"])


def _economy(row: dict[str, Any]) -> float:
    return 1.0 / float(row["client_cpu_s"] + row["server_cpu_s"])


def _loads(rows: Rows) -> list[str]:
    grouped = _group(rows, "phase", "variant")
    parts = []
    for phase in PHASES:
        lines = []
        for variant in VARIANTS:
            found = grouped.get((phase, variant.name))
            if not found:
                continue
            lines.append([
                variant.name,
                spread([row["records_per_s"] for row in found]),
                f"{median(row['client_cpu_s'] for row in found):.1f}",
                f"{median(row['server_cpu_s'] for row in found):.1f}",
                f"{max(row['peak_rss_mb'] for row in found):.0f}",
                f"{median(row['wal_mb'] for row in found):.0f}",
                f"{median(row['total_wall_s'] for row in found):.1f}",
                f"{max(row['noise'] for row in found):.0%}",
            ])  # fmt: skip
        head = ["", "records/s", "client CPU s", "PG CPU s", "peak MB", "WAL MB", "wall s, start incl.", "noise"]
        parts += [f"**{_PHASE_NAMES[phase].capitalize()}**", "", _table(head, lines), ""]
    return parts + _ratios(grouped)


def _ratios(grouped: dict[tuple[Any, ...], Rows]) -> list[str]:
    pairs = [("ours-1", "F"), ("ours-2", "F"), ("ours-typed", "F-typed"), ("ours-1", "dlt"), ("ours-typed", "dlt")]
    lines = []
    for left, right in pairs:
        cells = [f"{left} / {right}"]
        for value in (_speed, _economy):
            for phase in PHASES:
                ours, other = grouped.get((phase, left)), grouped.get((phase, right))
                ratios = paired_ratios(ours, other, value) if ours and other else []
                cells.append(spread(ratios, "{:.2f}") if ratios else "-")
        lines.append(cells)
    head = ["ratio (of each repeat)", "records/s, first", "records/s, second", "per CPU s, first", "per CPU s, second"]
    return [_table(head, lines), ""]


def _queue(rows: Rows) -> list[str]:
    lines = []
    for (mode, k, leasers), found in _group(rows, "mode", "k", "leasers").items():
        lines.append([
            {"leave": "lease + end", "life": "whole life"}[mode] + f", k={k}",
            str(leasers),
            spread([row["tasks_per_s"] for row in found]),
            f"{median(row['pick']['mean_ms'] for row in found):.1f}",
            f"{median(row['pick']['p95_ms'] for row in found):.1f}",
        ])  # fmt: skip
    head = ["queue", "leasers", "tasks/s", "pick mean ms", "pick P95 ms"]
    return [_table(head, lines), "", "Required (I1): pick mean < 10 ms, P95 < 30 ms.", ""]


def _writes(rows: Rows) -> list[str]:
    lines = []
    for (records, phase), found in _group(rows, "records", "phase").items():
        lines.append([
            f"{records} records, {_PHASE_NAMES[phase]}",
            f"{median(row['write']['mean_ms'] for row in found):.1f}",
            f"{median(row['write']['p95_ms'] for row in found):.1f}",
        ])  # fmt: skip
    head = ["one page, one transaction", "mean ms", "P95 ms"]
    return [_table(head, lines), "", "Required (I1): batch of 100, mean < 20 ms, P95 < 80 ms.", ""]


def _machine(results: dict[str, Any]) -> list[str]:
    machine, options = results["machine"], results["options"]
    postgres = ", ".join(f"{name} {value}" for name, value in machine["postgres"].items() if name != "server_version")
    versions = ", ".join(f"{name} {value}" for name, value in machine["versions"].items())
    noisy = sum(row["noise"] > QUIET for row in results["loads"])
    return [
        f"Measured {results['at']}, commit {machine['commit']}. {machine['cores']} cores {machine['cpu']}, "
        f"{machine['memory_gb']} GB, {machine['system']}, Python {machine['python']}. PostgreSQL "
        f"{machine['postgres']['server_version']} ({postgres}), over its socket. {versions}.",
        "",
        f"{options['pages']} pages of {options['records']:,} records of 1,067 bytes, {options['repeats']} repeats, "
        f"interleaved; medians [range]; peak memory and noise are the worst of all repeats. {noisy} of "
        f"{len(results['loads'])} runs were noisy (more than {QUIET:.0%} of the machine taken by others).",
        "",
    ]


def render(results: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    lines = _machine(results)
    if results["loads"]:
        lines += _loads(results["loads"])
    if results["queue"]:
        lines += _queue(results["queue"])
    if results["writes"]:
        lines += _writes(results["writes"])
    return "\n".join(lines).rstrip() + "\n"


def write_readme(path: Path, results: dict[str, Any]) -> None:
    """Put the figures between the marks; the prose around them stays."""
    whole = path.read_text()
    before, begin, rest = whole.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"{path} has lost its marks: {BEGIN} and {END}")
    path.write_text(f"{before}{BEGIN}\n\n{render(results)}\n{END}{after}")
