"""Patterns: the regular expressions a source file may hold, compiled and known to end soon.

Python's engine backtracks: one evil pattern on a source's text takes a thread for ever. So a pattern may hold at most
two repeats without an end, none inside another repeat, no back-references, and only the beginning of a text is looked
at; the worst that is left costs well under a second.
"""

import re
from collections.abc import Iterable
from typing import Any

LONGEST_TEXT = 500
_MOST_REPEATS = 2


class PatternInvalid(ValueError):
    """The text is no regular expression, or one that could take for ever."""


def compile_pattern(text: str) -> re.Pattern[str]:
    """Return the pattern; raises `PatternInvalid` for one that could take for ever."""
    try:
        pattern = re.compile(text)
        tree = re._parser.parse(text)  # type: ignore[attr-defined]
    except (re.error, OverflowError, RecursionError) as problem:
        raise PatternInvalid(f"not a regular expression: {problem}") from problem
    if _count_repeats(tree, inside=False) > _MOST_REPEATS:
        raise PatternInvalid(f"more than {_MOST_REPEATS} repeats without an end ('*', '+'): it could take for ever")
    return pattern


def matches(pattern: re.Pattern[str], text: str) -> bool:
    """Say whether the pattern is found in the beginning of the text."""
    return pattern.search(text[:LONGEST_TEXT]) is not None


def _count_repeats(tree: Iterable[Any], *, inside: bool) -> int:
    count = 0
    for operation, argument in tree:
        name = str(operation)
        if name.startswith("GROUPREF"):
            raise PatternInvalid("a back-reference could take for ever")
        repeats = name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
        if repeats and inside and argument[1] > 1:
            raise PatternInvalid("a repeat inside a repeat could take for ever")
        if repeats and argument[1] > LONGEST_TEXT:
            count += 1
        count += sum(_count_repeats(part, inside=inside or repeats) for part in _parts(argument))
    return count


def _parts(argument: Any) -> list[Any]:
    """Return the trees inside an operation's argument, however deep it keeps them."""
    if isinstance(argument, re._parser.SubPattern):  # type: ignore[attr-defined]
        return [argument]
    if isinstance(argument, list | tuple):
        return [tree for item in argument for tree in _parts(item)]
    return []
