"""Texts: how counts, times, spans and tables read on a terminal (pure).

Invariant: nothing here prints or asks the clock; the same values give the same text. Times are UTC and say so.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches

_GAP = "  "
_UNITS = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def plural(count: int, noun: str) -> str:
    """Return `1 run`, `2 runs`, `25,000 records`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def short_count(count: int) -> str:
    """Return a count in at most four characters and a unit: 950, 34k, 1.2M."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if count >= size:
            scaled = count / size
            return f"{scaled:.1f}{unit}" if scaled < 10 and round(scaled, 1) % 1 else f"{scaled:.0f}{unit}"
    return str(count)


def short_size(size: int) -> str:
    """Return a number of bytes as people read it: 512 B, 5.9 MB."""
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"


def short_span(span: timedelta) -> str:
    """Return the span in its two largest units: 41s, 1h12m, 3d4h; below a second 250ms."""
    seconds = span.total_seconds()
    if seconds < 0:
        return "0s"
    if 0 < seconds < 1:
        return f"{seconds * 1000:.0f}ms"
    if seconds < 10 and seconds % 1:
        return f"{seconds:.1f}s"
    rest, parts = int(seconds), []
    for unit, size in _UNITS:
        count, rest = divmod(rest, size)
        if count:
            parts.append(f"{count}{unit}")
        if len(parts) == 2 or (parts and not count):
            break
    return "".join(parts) or "0s"


def ago(moment: datetime | None, now: datetime) -> str:
    """Return `2m ago`, `just now`, or `-` for never."""
    if moment is None:
        return "-"
    span = now - moment
    return (
        "just now" if span < timedelta(seconds=1) else f"{short_span(timedelta(seconds=int(span.total_seconds())))} ago"
    )


def short_moment(moment: datetime | None) -> str:
    """Return the moment in UTC without what is zero: 2026-11-18, 2026-11-18 04:00Z, 2026-11-18 04:00:07Z."""
    if moment is None:
        return "-"
    at = moment.astimezone(UTC)
    if (at.hour, at.minute, at.second, at.microsecond) == (0, 0, 0, 0):
        return at.strftime("%Y-%m-%d")
    return at.strftime("%Y-%m-%d %H:%MZ" if at.second == 0 and at.microsecond == 0 else "%Y-%m-%d %H:%M:%SZ")


def short_window(start: datetime | None, end: datetime | None) -> str:
    """Return `[start .. end)`; the beginning of time, where a walk without a filter starts, is left out."""
    if end is None:
        return "-"
    if start is None or start.year <= 1970:
        return f"all up to {short_moment(end)}"
    first, last = short_moment(start), short_moment(end)
    shared = start.astimezone(UTC).date() == end.astimezone(UTC).date() and " " in last
    return f"{first} .. {last.partition(' ')[2] if shared else last}"


def next_at(moment: datetime | None, now: datetime) -> str:
    """Return when something will happen: `in 41s`, `05:45Z (in 2h)`, `due`."""
    if moment is None:
        return "-"
    wait = moment - now
    if wait <= timedelta():
        return "due"
    text = f"in {short_span(timedelta(seconds=max(1, round(wait.total_seconds()))))}"
    if wait < timedelta(hours=1):
        return text
    at = moment.astimezone(UTC)
    return f"{at.strftime('%H:%MZ' if wait < timedelta(hours=20) else '%Y-%m-%d %H:%MZ')} ({text})"


def shorten(text: str, width: int) -> str:
    """Return the text on one line, cut with an ellipsis if it is longer than `width`."""
    line = " ".join(text.split())
    return line if len(line) <= width else line[: max(0, width - 1)] + "…"


def table(
    headers: Sequence[str], rows: Iterable[Sequence[str]], *, right: Collection[str] = (), width: int | None = None
) -> list[str]:
    """Return aligned lines, the header first; columns named in `right` are flushed right.

    With `width` the last column gives way so that no line is longer.
    """
    cells = [list(row) for row in rows]
    widths = [max(len(header), *(len(row[i]) for row in cells), 0) for i, header in enumerate(headers)]
    if width is not None and len(headers) > 1:
        room = width - sum(widths[:-1]) - len(_GAP) * (len(widths) - 1)
        widths[-1] = min(widths[-1], max(room, 12))
    lines = []
    for row in [list(headers), *cells]:
        shown = [
            shorten(cell, size) if len(cell) > size else cell.rjust(size) if name in right else cell.ljust(size)
            for cell, size, name in zip(row, widths, headers, strict=True)
        ]
        lines.append(_GAP.join(shown).rstrip())
    return lines


def details(pairs: Iterable[tuple[str, str | None]]) -> list[str]:
    """Return `name  value` lines with the values aligned; a pair with an empty value is left out."""
    kept = [(name, value) for name, value in pairs if value]
    size = max((len(name) for name, _ in kept), default=0)
    return [f"{name.ljust(size)}{_GAP}{value}" for name, value in kept]


def did_you_mean(given: str, known: Collection[str]) -> str:
    """Return ` - did you mean 'x'?`, or the short list of what there is, or nothing."""
    close = get_close_matches(given, known, n=1, cutoff=0.6)
    if close:
        return f" - did you mean '{close[0]}'?"
    if 0 < len(known) <= 8:
        return f" (known: {', '.join(sorted(known))})"
    return ""
