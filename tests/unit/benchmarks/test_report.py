"""The report states medians and ratios of neighbours, and replaces nothing but its own section."""

from pathlib import Path
from typing import Any

import pytest

from benchmarks.latency import percentile, summarize
from benchmarks.report import BEGIN, END, paired_ratios, render, spread, write_readme


def make_load(variant: str, phase: str, repeat: int, speed: float) -> dict[str, Any]:
    return {
        "variant": variant, "phase": phase, "repeat": repeat, "records": 1000, "seconds": 1000 / speed,
        "records_per_s": speed, "client_cpu_s": 1.0, "server_cpu_s": 1.0, "peak_rss_mb": 90.0, "wal_mb": 2.0,
        "noise": 0.2, "total_wall_s": 3.0, "accounts": {},
    }  # fmt: skip


def make_results(loads: list[dict[str, Any]]) -> dict[str, Any]:
    machine = {
        "cpu": "a cpu", "cores": 2, "memory_gb": 8, "system": "Linux", "python": "3.11", "commit": "abc",
        "postgres": {"server_version": "18.4", "fsync": "on"}, "versions": {"httpx": "0.28"},
    }  # fmt: skip
    pick = {"count": 3, "mean_ms": 1.5, "p50_ms": 1.0, "p95_ms": 2.5, "max_ms": 3.0}
    return {
        "at": "2026-11-18T00:00:00+00:00",
        "options": {"pages": 1, "records": 1000, "repeats": 2},
        "machine": machine,
        "loads": loads,
        "queue": [{"mode": "life", "k": 10, "leasers": 4, "tasks_per_s": 250.0, "pick": pick, "repeat": 0}],
        "writes": [{"records": 100, "phase": "p1", "write": pick, "repeat": 0}],
    }


def test_percentile_is_a_value_that_was_measured() -> None:
    assert percentile([5.0, 1.0, 3.0], 0.5) == 3.0
    assert percentile([1.0], 0.95) == 1.0
    assert percentile([float(n) for n in range(1, 101)], 0.95) == 95.0


def test_summary_is_in_milliseconds() -> None:
    assert summarize([0.001, 0.003])["mean_ms"] == pytest.approx(2.0)


def test_spread_shows_the_range_only_where_there_is_one() -> None:
    assert spread([1200.0]) == "1,200"
    assert spread([1.0, 3.0, 2.0], "{:.1f}") == "2.0 [1.0-3.0]"


def test_ratios_are_taken_between_runs_of_the_same_repeat() -> None:
    ours = [make_load("ours-1", "p1", 0, 200.0), make_load("ours-1", "p1", 1, 90.0)]
    floor = [make_load("F", "p1", 1, 45.0), make_load("F", "p1", 0, 100.0), make_load("F", "p1", 2, 1.0)]
    assert paired_ratios(ours, floor, lambda row: row["records_per_s"]) == [2.0, 2.0]


def test_report_names_every_variant_measured_and_leaves_out_the_others() -> None:
    loads = [make_load(v, p, 0, s) for v, s in (("ours-1", 30.0), ("F", 20.0)) for p in ("p1", "p2")]
    text = render(make_results(loads))
    assert "| ours-1 / F " in text
    assert "1.50" in text
    assert "dlt, nesting" not in text
    assert "4 of 4 runs were noisy" in text


def test_writing_the_readme_keeps_the_prose_around_the_figures(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text(f"before\n{BEGIN}\nold figures\n{END}\nafter\n")
    write_readme(path, make_results([]))
    text = path.read_text()
    assert text.startswith(f"before\n{BEGIN}\n")
    assert text.endswith(f"{END}\nafter\n")
    assert "old figures" not in text
    assert "whole life, k=10" in text


def test_a_readme_without_marks_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    path.write_text("mine")
    with pytest.raises(SystemExit, match="marks"):
        write_readme(path, make_results([]))
    assert path.read_text() == "mine"
