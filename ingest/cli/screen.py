"""The screen: data to stdout, chat to stderr, colour only where a person looks and NO_COLOR does not forbid it.

Invariant: what a command prints on stdout is its data and nothing else, so that it can be piped.
"""

import json
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TextIO

_COLOURS = {"green": "32", "red": "31", "yellow": "33", "grey": "90", "bold": "1"}


def write(line: str = "") -> None:
    """Write one line of data."""
    sys.stdout.write(line + "\n")


def write_lines(lines: Iterable[str]) -> None:
    """Write lines of data."""
    for line in lines:
        write(line)
    sys.stdout.flush()


def say(line: str) -> None:
    """Write one line of chat."""
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def say_next(command: str) -> None:
    """Name the likely next command."""
    say(f"Next: {command}")


def has_colour(stream: TextIO) -> bool:
    """Say whether colour is welcome there (no-color.org)."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(text: str, colour: str, stream: TextIO | None = None) -> str:
    """Return the text in the colour, or as it is where colour is not welcome."""
    if not colour or not has_colour(stream or sys.stdout):
        return text
    return f"\x1b[{_COLOURS[colour]}m{text}\x1b[0m"


def paint_word(line: str, word: str, colour: str) -> str:
    """Return the line with the first whole `word` in the colour: alignment was done before."""
    before, found, after = line.partition(f" {word} ")
    return before + " " + paint(word, colour) + " " + after if found else line


def width() -> int | None:
    """Return the terminal's width, or None where output is not looked at but piped."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


def write_json(name: str, content: Mapping[str, Any]) -> None:
    """Write one object; `schema` names its shape, so that scripts can tell when it changes."""
    document = {"schema": f"ingest/{name}/v1"} | {key: plain(value) for key, value in content.items()}
    write(json.dumps(document, indent=2, ensure_ascii=False))
    sys.stdout.flush()


def plain(value: Any) -> Any:
    """Return the value as JSON can write it: times in UTC with a Z, spans in seconds, dataclasses as objects."""
    match value:
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case timedelta():
            return value.total_seconds()
        case Path():
            return str(value)
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case _ if is_dataclass(value) and not isinstance(value, type):
            return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        case _:
            return value
