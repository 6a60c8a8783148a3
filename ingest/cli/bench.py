"""What the author's bench shares: the snapshot of a stream from its file or the registry, and how checks are shown."""

import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ingest.cli.applying import INVALID, write_problems
from ingest.cli.screen import paint
from ingest.cli.texts import did_you_mean, table
from ingest.errors import NotFound, OperatorError

if TYPE_CHECKING:
    from executor.soundness import Check
    from ingest.db import Database
    from ingest.settings import Settings
    from ingest.spec.snapshot import Snapshot

_MARKS = {"ok": ("ok", "green"), "fail": ("FAIL", "red"), "unseen": ("unseen", "yellow")}


def find_snapshots(written: str, settings: "Settings", file: Path | None) -> "list[Snapshot]":
    """Return the snapshots of `SOURCE` or `SOURCE.ENDPOINT` as its file declares them; a wrong file ends with 2."""
    from registry.builtin import BUILTIN
    from registry.drafts import read_drafts
    from registry.problems import has_errors

    source, dot, endpoint = written.partition(".")
    places = [file or settings.sources]
    drafts = read_drafts(places, BUILTIN, environment=os.environ, open_origins=settings.open_origins)
    draft = next((draft for draft in drafts if draft.source == source), None)
    if draft is None:
        known = {draft.source for draft in drafts}
        raise NotFound(f"no source '{source}' in {places[0]}{did_you_mean(source, known)}")
    if has_errors(draft.problems):
        write_problems(draft.problems, files=1, as_json=False)
        raise typer.Exit(INVALID)
    if dot and endpoint not in draft.compiled:
        raise NotFound(f"source '{source}' has no endpoint '{endpoint}'{did_you_mean(endpoint, draft.compiled)}")
    return [compiled.snapshot for name, compiled in draft.compiled.items() if endpoint in ("", name)]


def find_applied(written: str, database: "Database") -> "list[Snapshot]":
    """Return the snapshot as the registry holds it now."""
    from ingest.cli.names import get_endpoint
    from registry.load import compile_endpoint

    with database.transaction() as conn:
        meant = get_endpoint(conn, written)
        return [compile_endpoint(conn, meant.source, meant.endpoint).snapshot]


def read_moment(text: str | None, option: str) -> datetime | None:
    """Return the moment an option names, UTC unless it says otherwise."""
    if text is None:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise OperatorError(f"{option} '{text}' is not a date: write 2024-01-31 or 2024-01-31T12:00:00Z") from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def check_lines(checks: "Sequence[Check]", *, width: int | None) -> list[str]:
    """Return the checks as a table."""
    lines = table(
        ["CHECK", "IS", "WHAT WAS SEEN"], [[c.name, _MARKS[c.verdict][0], c.text] for c in checks], width=width
    )
    painted = [lines[0]]
    for line, check in zip(lines[1:], checks, strict=False):
        word, colour = _MARKS[check.verdict]
        painted.append(line.replace(f" {word} ", f" {paint(word, colour)} ", 1))
    return painted
