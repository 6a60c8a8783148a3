"""Firing: when a schedule fires next (pure; G1, G2)."""

from datetime import UTC, datetime, timedelta

# a `once` that fired never fires again
NEVER = datetime(9999, 1, 1, tzinfo=UTC)
_MISFIRE_GRACE = timedelta(seconds=60)


def next_fire(planned: datetime, every_s: float, now: datetime) -> datetime:
    """Return the first moment after `now` on the grid `planned + n * every`: no drift, missed fires not made up."""
    every = timedelta(seconds=every_s)
    behind = (now - planned) // every
    return planned + every * (max(0, behind) + 1)


def missed_once(planned: datetime, now: datetime) -> str | None:
    """Say why a `once` noticed this late must not fire any more, or None if it may."""
    if now - planned <= _MISFIRE_GRACE:
        return None
    return f"missed: due at {planned.isoformat()}, noticed {(now - planned).total_seconds():.0f} s later"
