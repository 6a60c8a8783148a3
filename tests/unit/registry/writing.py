"""A small valid source file, and ways to change it: what the registry's tests write."""

import re
from pathlib import Path
from typing import Any

from registry.builtin import BUILTIN
from registry.compile import Compiled
from registry.drafts import Draft, make_draft
from registry.files import read_text
from registry.problems import Problem

SHIPPED = Path(__file__).parents[3] / "registry" / "sources"

PLAIN = """\
source: plain
base_url: https://api.example.org/v1
vars: {term: cats}
rate: 10/s
schedule: {every: 1h}
endpoints:
  items:
    get: /items
    query:
      q: "{{ vars.term }}"
      from: "{{ window.from }}"
      to: "{{ window.to }}"
      page: "{{ page.number }}"
      size: "{{ page.size }}"
    pagination: {kind: page, base: 1, size: 100}
    window: {filter: server, field: updated, start: 2024-01-01, precision: second, max: 1d}
    records: {items: $.data, id: $.id, updated_at: $.updated, total: $.total}
    columns:
      title: text
"""


def change(text: str, *replacements: tuple[str, str]) -> str:
    """Return the text with each first string replaced by the second; both must be there to be replaced."""
    for old, new in replacements:
        assert old in text, f"{old!r} is not in the file"
        text = text.replace(old, new, 1)
    return text


def draft_of(
    text: str,
    *,
    environment: dict[str, str] | None = None,
    open_origins: tuple[str, ...] = (),
    name: str = "plain.yaml",
) -> Draft:
    """Return the checked draft of a text."""
    return make_draft(read_text(name, text, environment or {}), BUILTIN, open_origins)


def problems_of(*replacements: tuple[str, str], **options: Any) -> list[Problem]:
    """Return the problems of the plain file after the replacements."""
    return draft_of(change(PLAIN, *replacements), **options).problems


def only_problem(*replacements: tuple[str, str], **options: Any) -> Problem:
    """Return the one problem there must be."""
    found = problems_of(*replacements, **options)
    assert len(found) == 1, [str(problem) for problem in found]
    return found[0]


def compiled_of(*replacements: tuple[str, str]) -> Compiled:
    """Return the compiled endpoint of the plain file after the replacements."""
    draft = draft_of(change(PLAIN, *replacements))
    assert "items" in draft.compiled, [problem.message for problem in draft.problems]
    return draft.compiled["items"]


def place_of(text: str, needle: str) -> tuple[int, int]:
    """Return the line and column, from 1, at which a needle begins."""
    for number, line in enumerate(text.splitlines(), start=1):
        found = re.search(re.escape(needle), line)
        if found:
            return number, found.start() + 1
    raise AssertionError(f"{needle!r} is not in the text")
