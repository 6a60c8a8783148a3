"""Pausing and resuming: a person stops a source, an endpoint or everything, for a while or until further notice."""

from collections.abc import Sequence
from datetime import UTC, datetime

from ingest.db import Database
from ingest.errors import NotFound, ValueRefused
from ingest.store import audit, pauses
from ingest.store.views import list_endpoints

Target = tuple[str, str | None]  # a source, or one endpoint of it


def list_sources(database: Database) -> list[Target]:
    """Return every registered source as a target."""
    with database.transaction() as conn:
        return [(source, None) for source in sorted({found.source for found in list_endpoints(conn)})]


def pause(
    database: Database, targets: Sequence[Target], *, actor: str, reason: str, until: datetime | None = None
) -> list[int]:
    """Hold the targets, all or none; work that is running goes on to its end. Return the holds' ids."""
    moment = until if until is None or until.tzinfo else until.replace(tzinfo=UTC)
    if moment is not None and moment <= datetime.now(UTC):
        raise ValueRefused(f"{moment:%Y-%m-%d %H:%M:%SZ} is past: a pause ends in the future")
    ids = []
    with database.transaction() as conn:
        for source, endpoint in targets:
            ids.append(pauses.pause(conn, source=source, endpoint=endpoint, until=moment, reason=reason, by=actor))
            detail = {"hold_id": ids[-1], "until": None if moment is None else moment.isoformat()}
            audit.record(
                conn, actor=actor, action="pause", target=_name(source, endpoint), detail=detail, reason=reason
            )
    return ids


def resume(database: Database, targets: Sequence[Target], *, actor: str, reason: str = "") -> int:
    """Lift what people hold of the targets; return how many holds that were. Raises `NotFound` if there was none."""
    lifted = 0
    with database.transaction() as conn:
        for source, endpoint in targets:
            ids = pauses.lift_pauses(conn, source=source, endpoint=endpoint, by=actor)
            lifted += len(ids)
            if ids:
                detail = {"hold_ids": ids}
                audit.record(
                    conn, actor=actor, action="resume", target=_name(source, endpoint), detail=detail, reason=reason
                )
        if not lifted:
            held = ", ".join(f"{hold.name} ({hold.kind.lower()})" for hold in pauses.list_holds(conn)) or "nothing"
            raise NotFound(f"not paused by a person: {_names(targets)}; held now: {held}")
    return lifted


def _name(source: str, endpoint: str | None) -> str:
    return f"{source}.{endpoint}" if endpoint else source


def _names(targets: Sequence[Target]) -> str:
    return ", ".join(_name(*target) for target in targets) or "any source"
