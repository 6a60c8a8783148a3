"""Checks of rates, retries and budgets against each other and against what the vendor allows (B12, C2)."""

from collections.abc import Iterator

from registry.checks.subject import Subject, error
from registry.fields import write_value
from registry.problems import Finding


def check_limits(subject: Subject) -> Iterator[Finding]:
    """The declared windows are the vendor's limit; nothing else declared may pass them."""
    windows = subject.get("rate.windows") or []
    steady, burst = subject.get("rate.per_second"), subject.get("rate.burst")
    for window in windows:
        written = write_value("rates", [window])[0]
        if steady is not None and steady * window["seconds"] > window["limit"]:
            yield error("above-limit", subject.where("rate.per_second"), f"{steady:g}/s is above the limit {written}")
        if burst is not None and burst > window["limit"]:
            yield error("above-limit", subject.where("rate.burst"), f"a burst of {burst} is above the limit {written}")
    least = subject.get("rate.minimum")
    if steady is not None and least is not None and least > steady:
        where = subject.where("rate.minimum" if subject.is_declared("rate.minimum") else "rate.per_second")
        yield error("above-limit", where, f"the minimum {least:g}/s is above the rate {steady:g}/s")
    base, cap = subject.get("retry.base"), subject.get("retry.cap")
    if base is not None and cap is not None and base > cap:
        where = subject.where("retry.base" if subject.is_declared("retry.base") else "retry.cap")
        yield error(
            "above-limit",
            where,
            f"the first wait ({write_value('seconds', base)}) is above cap ({write_value('seconds', cap)})",
        )
    share = subject.get("quarantine")
    if share is not None and not 0 <= share <= 1:
        yield error("wrong-value", subject.where("quarantine"), "a share is between 0% and 100%")
    concurrency = subject.get("concurrency")
    if concurrency is not None and concurrency < 1:
        yield error("wrong-value", subject.where("concurrency"), "at least one request at a time")
