"""Sixteen leasers on twenty lanes: C_max holds at every moment and no task is leased twice (E1, E2, DESIGN §4)."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from sqlalchemy import text

from ingest.db import Database
from ingest.settings import Settings
from ingest.spec.snapshot import Budget
from ingest.store.leases import lease_tasks, take_back_expired
from tests.factories import lease_all, make_snapshot, queue_tasks

_LANES, _LEASERS, _ROUNDS = 20, 16, 25
_OVER = text("""
    SELECT l.id, count(*) FROM ing_lane l JOIN ing_task t ON t.lane_id = l.id
     WHERE t.status_code IN ('DISPATCHED', 'EXECUTING') GROUP BY l.id, l.c_now HAVING count(*) > l.c_now
""")
_FINISH = text("UPDATE ing_task SET status_code = 'SUCCEEDED', lease_owner = NULL WHERE id = ANY(:ids)")


def test_c_max_is_never_exceeded_and_no_task_is_leased_twice(database: Database, settings: Settings) -> None:
    snapshots = [
        make_snapshot(source=f"s{n:02d}", budget=Budget(concurrency=1 + n % 3, inventory=400)) for n in range(_LANES)
    ]
    queue_tasks(database, settings, *snapshots)
    crowd = Database(database.url, pool_size=_LEASERS)
    taken: list[tuple[int, int]] = []
    over: list[object] = []
    done = threading.Event()

    def watch() -> None:
        while not done.is_set():
            with database.transaction() as conn:
                over.extend(conn.execute(_OVER).all())

    def work(number: int) -> None:
        for turn in range(_ROUNDS):
            with crowd.transaction() as conn:
                leases = lease_tasks(conn, owner=f"w{number}", limit=1 + turn % 3, ttl=timedelta(seconds=30))
            taken.extend((lease.task_id, lease.count) for lease in leases)
            with crowd.transaction() as conn:
                conn.execute(_FINISH, {"ids": [lease.task_id for lease in leases]})

    watcher = threading.Thread(target=watch)
    watcher.start()
    with ThreadPoolExecutor(_LEASERS) as pool:
        list(pool.map(work, range(_LEASERS)))
    done.set()
    watcher.join()
    crowd.close()
    assert over == []
    assert len(taken) == len(set(taken)) > _LEASERS * _ROUNDS // 4
    assert all(count == 1 for _, count in taken)


def test_reapers_and_leasers_race_for_one_expired_task_and_it_is_leased_once(
    database: Database, settings: Settings
) -> None:
    queue_tasks(database, settings, make_snapshot(budget=Budget(concurrency=1)))
    (lease,) = lease_all(database)
    crowd = Database(database.url, pool_size=5)
    for expected in range(2, 12):
        with database.transaction() as conn:
            conn.execute(
                text("UPDATE ing_task SET leased_until = now() - interval '1 s' WHERE id = :i"), {"i": lease.task_id}
            )
        barrier = threading.Barrier(5)

        def race(number: int, barrier: threading.Barrier = barrier) -> int:
            barrier.wait()
            for _ in range(3):
                with crowd.transaction() as conn:
                    if number < 2:
                        take_back_expired(conn, poison=99, stall=timedelta(days=1))
                    else:
                        found = lease_tasks(conn, owner=f"w{number}", limit=1, ttl=timedelta(seconds=30))
                        if found:
                            return found[0].count
            return 0

        with ThreadPoolExecutor(5) as pool:
            counts = [count for count in pool.map(race, range(5)) if count]
        if not counts:  # nobody was quick enough: take it now
            with database.transaction() as conn:
                take_back_expired(conn, poison=99, stall=timedelta(days=1))
            counts = [lease_all(database)[0].count]
        assert counts == [expected]
    crowd.close()
