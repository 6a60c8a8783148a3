"""Pages written at once: overlapping keys never deadlock, and a commit whose answer was lost counts once."""

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import text

from executor.commit import Committer
from executor.keeper import Keeper
from ingest.db import Database
from ingest.settings import Settings
from ingest.spec.snapshot import Budget
from ingest.states import TaskStatus
from ingest.store.pages import Ending, write_page
from ingest.store.rows import DatasetWriter
from tests.factories import TTL, lease_all, make_page, make_record, make_snapshot, queue_tasks, start
from tests.proxy import CommitSwallower

_WORKERS, _PAGES, _KEYS = 8, 12, 600


def test_two_workers_writing_overlapping_keys_never_deadlock(database: Database, settings: Settings) -> None:
    snapshot = make_snapshot(budget=Budget(concurrency=_WORKERS))
    queue_tasks(database, settings, snapshot)
    leases = lease_all(database, limit=_WORKERS)
    writer = DatasetWriter(snapshot)
    crowd = Database(database.url, pool_size=_WORKERS)

    def work(number: int) -> int:
        chance = random.Random(number)
        run = start(crowd, leases[number])
        written = 0
        for page in range(1, _PAGES + 1):
            keys = chance.sample(range(_KEYS), 200)  # every worker in an order of its own
            records = [make_record(f"k{key}", 1 + page, f"worker {number}") for key in keys]
            with crowd.transaction() as conn:  # no `repeat`: a deadlock would raise
                stats = write_page(
                    conn, leases[number], run, make_page(records, number=page), writer, task_page=page, ttl=TTL
                )
            written += stats["inserted"] + stats["updated"]
        return written

    with ThreadPoolExecutor(_WORKERS) as pool:
        written = sum(pool.map(work, range(_WORKERS)))
    crowd.close()
    with database.transaction() as conn:
        assert conn.execute(text("SELECT count(*) FROM ing_task_run_batch")).scalar_one() == _WORKERS * _PAGES
        promised = conn.execute(text("SELECT sum(cardinality(keys)) FROM ing_outbox")).scalar_one()
    assert written == promised >= _KEYS * 0.9


@pytest.fixture
def swallower(database_url: str) -> Iterator[CommitSwallower]:
    proxy = CommitSwallower(database_url)
    yield proxy
    proxy.close()


def test_a_commit_whose_answer_was_lost_is_counted_once(
    database: Database, settings: Settings, swallower: CommitSwallower
) -> None:
    snapshot = make_snapshot()
    queue_tasks(database, settings, snapshot)
    behind = Database(swallower.url, pool_size=2)
    (lease,) = lease_all(behind)
    run = start(behind, lease)
    keeper = Keeper(behind, owner=lease.owner, lease_seconds=30)
    held = keeper.hold(lease, asked_at=float("inf"))
    committer, writer = Committer(behind), DatasetWriter(snapshot)
    swallower.arm()
    stats = committer.commit(held, run, make_page([make_record("a")]), writer, task_page=1, ttl=TTL)
    assert swallower.swallowed.is_set()
    assert stats["inserted"] == 1  # as the first, unanswered commit stored it
    ending = Ending(TaskStatus.SUCCEEDED, covers=True)
    swallower.swallowed.clear()
    swallower.arm()
    committer.commit(held, run, make_page([make_record("b")], number=2, ending=ending), writer, task_page=2, ttl=TTL)
    assert swallower.swallowed.is_set()
    behind.close()
    with database.transaction() as conn:
        assert conn.execute(text("SELECT batch_no FROM ing_task_run_batch ORDER BY 1")).scalars().all() == [1, 2]
        assert conn.execute(text("SELECT count(*) FROM data.plain_items")).scalar_one() == 2
        assert (
            conn.execute(text("SELECT status_code FROM ing_task WHERE id = :i"), {"i": lease.task_id}).scalar_one()
            == "SUCCEEDED"
        )
