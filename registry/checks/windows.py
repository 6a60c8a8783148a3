"""Checks of the time window: who filters, where ends may stand, and how they are written (B5, B6)."""

import re
from collections.abc import Iterator
from datetime import datetime

from ingest.spec.windows import floor_to_unit
from registry.checks.records import check_moment_format, check_zone
from registry.checks.subject import Subject, error, warning
from registry.fields import write_value
from registry.problems import Finding

WINDOW_FORMATS = ("iso", "date", "epoch_s", "epoch_ms", "epoch_us")
_UNITS = {"day": 86400.0, "hour": 3600.0, "minute": 60.0, "second": 1.0, "ms": 1e-3, "us": 1e-6}
# B5's upper bound: a lag beyond a month hides that the source is not being read at all.
_LONGEST_LAG_S = 30 * 86400.0
# The finest unit each format can write; a pattern is read by its directives.
_FINEST = {"iso": 1e-6, "date": 86400.0, "epoch_s": 1.0, "epoch_ms": 1e-3, "epoch_us": 1e-6}
_DIRECTIVES = ((r"%f", 1e-6), (r"%[STscXr+]", 1.0), (r"%[MR]", 60.0), (r"%[HIp]", 3600.0))


def check_window(subject: Subject) -> Iterator[Finding]:
    """Windows cut the source's time into whole units, and the request really asks for one."""
    server = subject.get("window.filter") == "server"
    yield from _check_use(subject, server)
    zone = str(subject.get("window.zone"))
    findings = [
        *check_zone(zone, subject.where("window.zone")),
        *check_moment_format(str(subject.get("window.format")), subject.where("window.format"), WINDOW_FORMATS),
    ]
    yield from findings
    lag = subject.get("window.safety_lag")
    if lag is not None and lag > _LONGEST_LAG_S:
        yield error("above-limit", subject.where("window.safety_lag"), "a safety lag is at most 30d")
    unit = str(subject.get("window.precision"))
    if server and unit in _UNITS and not findings:
        yield from _check_widths(subject, unit)
        yield from _check_start(subject, unit, zone)
        yield from _check_format_width(subject, unit)


def _check_use(subject: Subject, server: bool) -> Iterator[Finding]:
    texts = list(subject.texts())
    uses_from = any(re.search(r"\{\{[^}]*\bwindow\.from\b", text.text) for text in texts)
    uses_to = any(re.search(r"\{\{[^}]*\bwindow\.to\b", text.text) for text in texts)
    if not server:
        for text in texts:
            found = re.search(r"\{\{[^}]*\b(window)\b", text.text)
            if found:
                message = "uses the window, but window.filter is none: there is no window to fill in"
                yield error("window-unused", text.where, message, "write 'filter: server'", offset=found.start(1))
        return
    where = subject.where("window.filter")
    if subject.get("window.start") is None:
        yield error(
            "missing",
            subject.where("window.start"),
            "'start' is missing: the earliest time to harvest",
            "with a server filter it is required, for example start: 2024-01-01",
        )
    if not uses_from:
        yield error(
            "window-unused",
            where,
            "no template uses window.from: every window would ask for the same records",
            'add a parameter such as since: "{{ window.from }}"',
        )
    elif not uses_to:
        yield warning("window-open", where, "no template uses window.to: every window also returns all later records")


def _check_widths(subject: Subject, unit: str) -> Iterator[Finding]:
    size = _UNITS[unit]
    most, least = float(subject.get("window.max")), float(subject.get("window.min"))
    for key, width in (("window.max", most), ("window.min", least)):
        if subject.is_declared(key) and abs(width / size - round(width / size)) > 1e-9:
            written = write_value("seconds", width)
            yield error("misaligned", subject.where(key), f"{written} is not a whole number of units ({unit})")
    if most < size:
        yield error("misaligned", subject.where("window.max"), f"a window is at least one unit ({unit}) wide")
    if least > most:
        where = subject.where("window.min" if subject.is_declared("window.min") else "window.max")
        written = f"min ({write_value('seconds', least)}) is above max ({write_value('seconds', most)})"
        yield error("misaligned", where, written)
    align = subject.get("window.align")
    if align in _UNITS:
        if _UNITS[align] < size:
            where = subject.where("window.align")
            yield error("misaligned", where, f"align {align} is finer than the source's precision ({unit})")
        if _UNITS[align] > most:
            yield error(
                "misaligned",
                subject.where("window.align"),
                f"align {align} is wider than max ({write_value('seconds', most)})",
            )


def _check_start(subject: Subject, unit: str, zone: str) -> Iterator[Finding]:
    start = subject.get("window.start")
    if start is None:
        return
    where = subject.where("window.start")
    try:
        moment = datetime.fromisoformat(str(start))
    except ValueError:
        yield error("wrong-value", where, f"'{start}' is not a time")
        return
    if moment.tzinfo is None:
        yield error("wrong-value", where, f"'{start}' has no zone")
    elif floor_to_unit(moment, unit, zone) != moment:
        yield error("misaligned", where, f"does not begin a {unit} in {zone}", f"write the {unit} only")


def _check_format_width(subject: Subject, unit: str) -> Iterator[Finding]:
    pattern = str(subject.get("window.format"))
    finest = _FINEST.get(pattern)
    if finest is None:
        finest = next((size for directive, size in _DIRECTIVES if re.search(directive, pattern)), 86400.0)
    if finest > _UNITS[unit]:
        yield error(
            "bad-format",
            subject.where("window.format"),
            f"'{pattern}' writes nothing finer than {write_value('seconds', finest)}, but precision is {unit}",
            "set window.precision to what the source understands",
        )
