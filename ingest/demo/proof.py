"""The proof: what is in the tables against what the simulator says a complete copy holds.

A stream is proved if the hash over its keys and versions, computed by the database, equals the simulator's; where
records were quarantined it is proved if every missing record is one of those. A record counts as duplicate if the
ledger inserted it more often than the table holds it.
"""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ingest.demo.project import DemoStream
from ingest.demo.world import World
from ingest.store.views import list_streams
from ingest.store.views_records import hash_dataset, list_quarantine, list_versions, sum_ledger

if TYPE_CHECKING:
    from ingest.db import Connection

_MOST_QUARANTINED = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """How one stream compares with the truth."""

    name: str
    records: int
    requests: int
    throttled: int
    quarantined: int
    watermark: datetime | None
    lost: int
    wrong: int
    duplicate: int

    @property
    def holds(self) -> bool:
        """The table is the truth."""
        return self.lost == self.wrong == self.duplicate == 0


def prove(conn: "Connection", world: World, stream: DemoStream) -> Proof:
    """Compare one stream, up to its watermark, with the simulator's truth."""
    view = list_streams(conn, source=stream.source, endpoint=stream.endpoint)[0]
    totals = sum_ledger(conn, source=stream.source, endpoint=stream.endpoint)
    content = hash_dataset(conn, stream.dataset)
    until = view.watermark if stream.windowed else None
    truth = world.tell_truth(stream.api, until=until)
    lost = wrong = 0
    quarantined = _count_quarantined(conn, stream)
    if (content.count, content.sha256) != (truth["count"], truth["ids_sha256"]):
        lost, wrong = _compare(conn, world, stream, until, quarantined)
    return Proof(
        name=stream.name,
        records=content.count,
        requests=totals.requests,
        throttled=totals.throttled,
        quarantined=quarantined,
        watermark=view.watermark,
        lost=lost,
        wrong=wrong,
        duplicate=max(0, totals.inserted - content.count - lost),
    )


def _compare(
    conn: "Connection", world: World, stream: DemoStream, until: datetime | None, quarantined: int
) -> tuple[int, int]:
    """Return how many records are lost, and how many have the wrong version or should not be there."""
    truth = world.tell_truth(stream.api, until=until, full=True)["records"]
    stored = {
        key: f"{at.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ}" for key, at in list_versions(conn, stream.dataset).items()
    }
    missing = len(truth.keys() - stored.keys())
    other = sum(truth.get(key, {}).get("updated_at") != at for key, at in stored.items())
    return max(0, missing - quarantined), other


def _count_quarantined(conn: "Connection", stream: DemoStream) -> int:
    """Count records, not rows: one that changes is refused again; spoilt ones may lack an id, so by another field."""
    found = list_quarantine(conn, source=stream.source, endpoint=stream.endpoint, limit=_MOST_QUARANTINED)
    return len({json.loads(record.record).get("ledger_number", record.record) for record in found})
