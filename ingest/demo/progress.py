"""Progress of the demo's streams: a live table on a terminal, a line now and then elsewhere."""

import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.live import Live

INDENT = "      "
_LINE_SECONDS = 3.0
_BAR = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One stream at one moment; `expected` is what the simulator has for it."""

    name: str
    records: int
    quarantined: int
    expected: int
    pages: int
    activity: str


class Screen(Protocol):
    """Where the demo speaks while it works."""

    def say(self, text: str) -> None:
        """Write a line that stays."""

    def show(self, lines: Sequence[Line]) -> None:
        """Show how far the streams are."""


@contextmanager
def open_screen(*, lines: bool = True) -> Iterator[Screen]:
    """Yield a live screen on a terminal; elsewhere plain lines, or silence without `lines`."""
    if not sys.stdout.isatty():
        yield _Plain(_LINE_SECONDS if lines else math.inf)
        return
    from rich.console import Console
    from rich.live import Live

    with Live("", console=Console(highlight=False), refresh_per_second=8, transient=True) as live:
        yield _Terminal(live)


class _Terminal:
    def __init__(self, live: "Live") -> None:
        self._live = live

    def say(self, text: str) -> None:
        self._live.console.print(text, markup=False, soft_wrap=True)

    def show(self, lines: Sequence[Line]) -> None:
        from rich.text import Text

        self._live.update(Text("\n".join(draw(lines)), no_wrap=True))


class _Plain:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._next = 0.0 if seconds < math.inf else math.inf

    def say(self, text: str) -> None:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()

    def show(self, lines: Sequence[Line]) -> None:
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + self._seconds
        self.say(INDENT + "   ".join(f"{line.name} {line.records:,}" for line in lines))


def draw(lines: Sequence[Line]) -> list[str]:
    """Return the streams with a bar for each, aligned."""
    size = max((len(line.name) for line in lines), default=0)
    return [
        f"{INDENT}{line.name.ljust(size)}  {_bar(line)}  {line.records:>7,} of {line.expected:<7,}"
        f" {line.pages:>5,} pages  {line.activity}"
        for line in lines
    ]


def _bar(line: Line) -> str:
    done = line.records + line.quarantined
    filled = round(_BAR * min(1.0, done / line.expected)) if line.expected else _BAR
    return "█" * filled + "░" * (_BAR - filled)
