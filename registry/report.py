"""What an apply changes, or would: the same report for `diff`, `apply --dry-run` and `apply`."""

import json
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from ingest.durations import format_duration
from registry.describe import Change

Action = Literal["new", "changed", "unchanged", "removed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LostCoverage:
    """Coverage of the old selection that says nothing about the new one (DESIGN rule 6)."""

    series_id: int
    partition_key: str
    covered_seconds: float
    new_selection_hash: str
    kept: bool = False

    def __str__(self) -> str:
        amount = format_duration(timedelta(seconds=round(self.covered_seconds)))
        partition = f" ({self.partition_key})" if self.partition_key else ""
        if self.kept:
            return f"selection changed: {amount} of coverage{partition} copied to the new selection"
        return f"selection changed: {amount} of coverage{partition} no longer applies (--keep-coverage copies it)"


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointReport:
    """What happens to one endpoint."""

    name: str
    action: Action
    changes: list[Change]
    fingerprint_before: str = ""
    fingerprint_after: str = ""
    statements: list[str] = field(default_factory=list)
    lost: list[LostCoverage] = field(default_factory=list)
    degradations: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def as_data(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "name": self.name,
            "action": self.action,
            "changes": [change.as_data() for change in self.changes],
            "fingerprint_before": self.fingerprint_before,
            "fingerprint_after": self.fingerprint_after,
            "statements": self.statements,
            "lost_coverage": [
                {"partition_key": l.partition_key, "covered_seconds": l.covered_seconds, "kept": l.kept}
                for l in self.lost  # noqa: E741 -- one short line
            ],
            "degradations": self.degradations,
            "notes": self.notes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceReport:
    """What happens to one source; `revision` is the one in force after the apply."""

    source: str
    action: Action
    revision_before: int
    revision: int
    changes: list[Change]  # of the source itself; an endpoint's are in its report
    endpoints: list[EndpointReport]

    @property
    def all_changes(self) -> list[Change]:
        """Every change, the source's and its endpoints'."""
        return [*self.changes, *(change for endpoint in self.endpoints for change in endpoint.changes)]

    def as_data(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "source": self.source,
            "action": self.action,
            "revision_before": self.revision_before,
            "revision": self.revision,
            "changes": [change.as_data() for change in self.changes],
            "endpoints": [endpoint.as_data() for endpoint in self.endpoints],
        }


@dataclass(frozen=True, slots=True)
class Report:
    """What happens to all sources given."""

    sources: list[SourceReport]

    @property
    def differs(self) -> bool:
        """Say whether an apply would do anything at all, tables included."""
        return any(
            source.action != "unchanged" or any(endpoint.statements for endpoint in source.endpoints)
            for source in self.sources
        )

    def as_data(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return {"schema": "ingest/registry-report/v1", "sources": [source.as_data() for source in self.sources]}


def format_report(source: SourceReport) -> list[str]:
    """Return the report as lines for a terminal."""
    if source.action == "unchanged" and not any(endpoint.statements for endpoint in source.endpoints):
        return [f"{source.source}  unchanged (revision {source.revision})"]
    lines = [f"{source.source}  {source.action}  revision {source.revision_before} -> {source.revision}"]
    lines += [format_change(change, 2) for change in source.changes if source.action != "new"]
    for endpoint in source.endpoints:
        hashes = f"{endpoint.fingerprint_before[:9]} -> {endpoint.fingerprint_after[:9]}"
        lines.append(f"  {endpoint.name}  {endpoint.action}" + (f"  {hashes}" if endpoint.action == "changed" else ""))
        # all of something new has changed, and all of something removed: the file and the history have it
        lines += [format_change(change, 4) for change in endpoint.changes if endpoint.action == "changed"]
        lines += [f"    ddl  {line}" for statement in endpoint.statements for line in statement.splitlines()]
        lines += [f"    !  {lost}" for lost in endpoint.lost]
        lines += [f"    note  {note}" for note in endpoint.notes]
    return lines


def format_change(change: Change, indent: int, *, whole: bool = False) -> str:
    """Return one change as a line; below its endpoint's line the path is the rest, unless `whole`."""

    def text(value: Any) -> str:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    inside = change.path.startswith("endpoints.") and not whole
    pad, path = " " * indent, change.path.split(".", 2)[2] if inside else change.path
    if change.old is None:
        return f"{pad}+ {path}  {text(change.new)}"
    if change.new is None:
        return f"{pad}- {path}  {text(change.old)}"
    return f"{pad}~ {path}  {text(change.old)} -> {text(change.new)}"
