"""Problems: what is wrong with a source file, where, and what would be right (research/ecosystem.md §9).

Invariant: a secret is never printed. A problem marked `sensitive` shows neither its line nor its value.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

from ingest.errors import SpecInvalid

Severity = Literal["error", "warning"]
Where = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing a check found, in the words of the file but not yet at a line of it.

    `where` is a path in the document; `offset` counts characters into the value there.
    """

    code: str
    where: Where
    message: str
    hint: str = ""
    severity: Severity = "error"
    offset: int | None = None
    sensitive: bool = False

    @property
    def path(self) -> str:
        """The place as people read it: endpoints.works.pagination.next."""
        return ".".join(str(part) for part in self.where)

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.where else self.message
        return f"{text} ({self.hint})" if self.hint else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong in a file, at a line and column counted from 1; 0 when the file as a whole is meant."""

    file: str
    line: int
    column: int
    severity: Severity
    code: str
    path: str
    message: str
    hint: str = ""
    excerpt: str = field(default="", repr=False)  # the offending line, empty when it must not be shown

    def as_data(self) -> dict[str, Any]:
        """Return the JSON form; the line itself stays in the file."""
        return {
            "file": self.file,
            "line": self.line,
            "column": self.column,
            "severity": self.severity,
            "code": self.code,
            "path": self.path,
            "message": self.message,
            "hint": self.hint,
        }


class FilesInvalid(SpecInvalid):
    """Source files are wrong; `found` holds every problem with its place, `problems` the same as text."""

    def __init__(self, found: Sequence[Problem]) -> None:
        errors = [problem for problem in found if problem.severity == "error"]
        super().__init__([first_line(problem) for problem in errors])
        self.found = list(found)


def has_errors(problems: Iterable[Problem]) -> bool:
    """Say whether any of them stops an apply."""
    return any(problem.severity == "error" for problem in problems)


def sort_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Return each problem once, by file and line: a source-level fault is found again by every endpoint."""
    unique = {(p.file, p.line, p.column, p.message): p for p in problems}
    return sorted(unique.values(), key=lambda p: (p.file, p.line, p.column, p.message))


def first_line(problem: Problem) -> str:
    """Return `file:line:col: error: path: message`, the form editors jump to."""
    place = f"{problem.file}:{problem.line}:{problem.column}" if problem.line else problem.file
    subject = f"{problem.path}: " if problem.path else ""
    return f"{place}: {problem.severity}: {subject}{problem.message}"


def format_problem(problem: Problem) -> str:
    """Return the problem with its line, a caret and what would be right."""
    lines = [first_line(problem)]
    if problem.excerpt:
        number = f"{problem.line:>5}"
        caret = " " * (problem.column - 1) + "^"
        lines.append(f"{number} | {problem.excerpt}")
        lines.append(f"      | {caret} {problem.hint}".rstrip())
    elif problem.hint:
        lines.append(f"      | {problem.hint}")
    return "\n".join(lines)


def summarize(problems: Sequence[Problem], *, files: int) -> str:
    """Return the closing sentence: `6 errors, 1 warning in 1 file.`"""
    errors = sum(problem.severity == "error" for problem in problems)
    warnings = len(problems) - errors
    return f"{_count(errors, 'error')}, {_count(warnings, 'warning')} in {_count(files, 'file')}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def suggest(word: str, known: Iterable[str], *, listed: Iterable[str] | None = None) -> str:
    """Return "did you mean 'cursor'? (cursor, offset ...)"; the list is `listed`, or `known` when not given."""
    choices = list(known)
    close = get_close_matches(word.lower(), [choice.lower() for choice in choices], n=1)
    names = ", ".join(choices if listed is None else listed)
    if close:
        written = next(choice for choice in choices if choice.lower() == close[0])
        return f"did you mean '{written}'? ({names})" if names else f"did you mean '{written}'?"
    return f"there is: {names}" if names else ""
