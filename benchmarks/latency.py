"""Latencies: mean and percentiles of a list of seconds, in milliseconds."""

from collections.abc import Sequence
from statistics import fmean


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that at least this share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, -(-int(len(ordered) * share * 1000) // 1000) - 1)]


def summarize(seconds: Sequence[float]) -> dict[str, float]:
    """Return count, mean, P50, P95 and the largest, in milliseconds."""
    milliseconds = [value * 1000 for value in seconds]
    return {
        "count": len(milliseconds),
        "mean_ms": fmean(milliseconds),
        "p50_ms": percentile(milliseconds, 0.50),
        "p95_ms": percentile(milliseconds, 0.95),
        "max_ms": max(milliseconds),
    }
