"""Makers of real things for tests: snapshots, queued tasks, leases. Everything goes through the code users run."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from ingest.db import Connection, Database
from ingest.settings import Settings
from ingest.spec.snapshot import (
    Budget,
    Column,
    Http,
    IdPart,
    Mapping,
    Moment,
    Pagination,
    Rate,
    Response,
    Snapshot,
    Window,
)
from ingest.states import Operation
from ingest.store import datasets, schedules
from ingest.store.leases import Lease, lease_tasks
from ingest.store.ledger import Position
from ingest.store.pages import Ending, Page, Reject
from ingest.store.rows import Record
from ingest.store.runs import Run, start_run
from planner.tick import Planner

TTL = timedelta(seconds=30)
START = datetime(2024, 1, 1, tzinfo=UTC)


def make_snapshot(*, source: str = "plain", endpoint: str = "items", **sections: Any) -> Snapshot:
    """Return a small valid snapshot; pass a section (http=..., window=...) to replace it."""
    values: dict[str, Any] = {
        "http": Http(method="GET", base_url="http://127.0.0.1:9/plain", path="/items"),
        "pagination": Pagination(kind="PAGE", size=100, base=1, stop=("short_page",)),
        "window": Window(filter="server", field="updated_at", start=START, max_s=86400.0),
        "rate": Rate(rate_per_s=100_000.0, burst=1000),
        "response": Response(items="$.data", total="$.total"),
        "mapping": Mapping(
            dataset=f"{source}_{endpoint}",
            identity=(IdPart(column="provider_id", path="$.id"),),
            updated_at=Moment(path="$.updated_at"),
            columns=(Column(name="title", path="$.title"),),
        ),
        "budget": Budget(concurrency=4, inventory=100_000),
    }
    return Snapshot(provenance_code=source, endpoint_name=endpoint, revision=1, **(values | sections))


def plain_snapshot(
    url: str, *, source: str = "plain", size: int = 100, max_days: float = 10, **sections: Any
) -> Snapshot:
    """Return a snapshot of the simulator's plain API: pages, half-open windows."""
    query = {
        "page": "{{ page.number }}",
        "size": "{{ page.size }}",
        "updated_from": "{{ window.from }}",
        "updated_to": "{{ window.to }}",
    }
    values: dict[str, Any] = {
        "http": Http(method="GET", base_url=f"{url}/plain", path="/items", query=query),
        "pagination": Pagination(kind="PAGE", size=size, base=1, stop=("short_page",)),
        "window": Window(filter="server", field="updated_at", start=START, max_s=86400.0 * max_days),
    }
    return make_snapshot(source=source, **(values | sections))


def crossref_snapshot(url: str, *, size: int = 500, max_days: float = 5, **sections: Any) -> Snapshot:
    """Return a snapshot of the simulator's Crossref: tokens, inclusive days, a short page ends."""
    query = {
        "filter": "from-index-date:{{ window.from }},until-index-date:{{ window.to }}",
        "rows": "{{ page.size }}",
        "cursor": "{{ page.token }}",
    }
    values: dict[str, Any] = {
        "http": Http(method="GET", base_url=f"{url}/crossref", path="/works", query=query),
        "pagination": Pagination(
            kind="TOKEN", size=size, initial="*", next_path="$.message.next-cursor", stop=("short_page",)
        ),
        "window": Window(
            filter="server", field="indexed", start=START, ends="inclusive", precision="day", max_s=86400.0 * max_days
        ),
        "response": Response(items="$.message.items", total="$.message.total-results"),
        "mapping": Mapping(
            dataset="crossref_works",
            identity=(IdPart(column="provider_id", path="$.DOI", lower=True),),
            updated_at=Moment(path="$.indexed.date-time"),
            columns=(
                Column(name="title", path="$.title[0]"),
                Column(name="issued", path="$.issued.date-parts", type="partial_date"),
            ),
        ),
    }
    return make_snapshot(source="crossref", endpoint="works", **(values | sections))


@dataclass(frozen=True)
class StubCompiled:
    """What a compile returns, without a registry."""

    snapshot: Snapshot
    degradations: Sequence[str] = ()


def make_planner(database: Database, settings: Settings, *snapshots: Snapshot) -> Planner:
    """Return the real planner over hand-made snapshots."""
    by_name = {(s.provenance_code, s.endpoint_name): s for s in snapshots}

    def compile_endpoint(_conn: Connection, source: str, endpoint: str) -> StubCompiled:
        return StubCompiled(by_name[source, endpoint])

    return Planner(database, settings, compile_endpoint)


def make_table(database: Database, snapshot: Snapshot) -> None:
    """Make the snapshot's dataset table."""
    with database.transaction() as conn:
        statements = datasets.plan_table(conn, snapshot)
    datasets.apply_table(database, statements)


def request_run(database: Database, snapshot: Snapshot) -> int:
    """Ask for a harvest by hand; return the fire's id."""
    with database.transaction() as conn:
        return schedules.request_run(
            conn,
            source=snapshot.provenance_code,
            endpoint=snapshot.endpoint_name,
            operation=Operation.HARVEST,
            request_id=uuid.uuid4().hex,
            params={},
        )


def queue_tasks(database: Database, settings: Settings, *snapshots: Snapshot) -> None:
    """Make tables and let the real planner queue a harvest of every snapshot."""
    for snapshot in snapshots:
        make_table(database, snapshot)
        request_run(database, snapshot)
    done = make_planner(database, settings, *snapshots).tick()
    assert done.planned == len(snapshots), done


def lease_all(database: Database, *, owner: str = "worker-a", limit: int = 1, ttl: timedelta = TTL) -> list[Lease]:
    """Lease tasks as an executor does."""
    with database.transaction() as conn:
        return lease_tasks(conn, owner=owner, limit=limit, ttl=ttl)


def start(database: Database, lease: Lease, ttl: timedelta = TTL) -> Run:
    """Start a run on a lease."""
    with database.transaction() as conn:
        return start_run(conn, lease, ttl=ttl)


def make_record(key: str, day: int = 1, title: str = "a title") -> Record:
    """Return a mapped record whose version is a day of January 2024."""
    moment = datetime(2024, 1, day, tzinfo=UTC)
    return Record((key,), moment, None, (title,), f'{{"id": "{key}"}}')


def make_page(
    records: Sequence[Record] = (),
    *,
    number: int = 1,
    ending: Ending | None = None,
    rejects: Sequence[Reject] = (),
    token: str | None = None,
) -> Page:
    """Return a page ready to be written."""
    return Page(
        position=Position(page_no=number, page_size=100, before_token=token, unique=token is not None),
        request={"hash": "h1:request"},
        response={"status": 200},
        stats={"itemsCount": len(records) + len(rejects), "latencyMs": 1, "retryCount": 0, "429Count": 0},
        records=records,
        rejects=rejects,
        duplicate=0,
        filtered=0,
        observed_max=max((r.updated_at for r in records if r.updated_at), default=None),
        cursor_key="updated_at",
        checkpoint={
            "next": {"number": number + 1, "received": 0, "page": number + 1},
            "seen": {"items": 0, "quarantined": 0},
        },
        ending=ending,
    )
