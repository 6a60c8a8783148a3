"""Gate rows: what one process reserves no other can have; a throttle is known to all (C1, C2, DESIGN §8)."""

from concurrent.futures import ThreadPoolExecutor

from ingest.db import Database
from ingest.gate import Policy
from ingest.store.gates import read_epoch, report_throttle, reserve_slots

_POLICY = Policy(windows=((50, 60.0),))


def test_reservations_by_many_connections_never_exceed_the_window(database: Database) -> None:
    def take(_: int) -> int:
        granted = 0
        for _ in range(10):
            with database.transaction() as conn:
                waits, _, _ = reserve_slots(conn, "k", _POLICY, count=3, patience=1.0)
            granted += sum(wait <= 1.0 for wait in waits)
        return granted

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(take, range(8))) == 50


def test_a_slot_beyond_patience_is_not_reserved(database: Database) -> None:
    slow = Policy(rate_per_s=0.1, burst=1)
    with database.transaction() as conn:
        first, _, _ = reserve_slots(conn, "k", slow, count=1, patience=1.0)
    for _ in range(3):  # asking again must not push the slot further away
        with database.transaction() as conn:
            waits, _, _ = reserve_slots(conn, "k", slow, count=1, patience=1.0)
        assert 8.0 < waits[0] <= 10.0
    assert first == [0.0]


def test_a_throttle_is_stored_for_everyone_and_voids_what_was_not_sent(database: Database) -> None:
    with database.transaction() as conn:
        _, epoch, _ = reserve_slots(conn, "k", _POLICY, count=1, patience=1.0)
    with database.transaction() as conn:
        report_throttle(conn, "k", _POLICY, retry_after=30.0, slot_epoch=epoch)
    with database.transaction() as conn:
        assert read_epoch(conn, "k") == epoch + 1
        waits, _, _ = reserve_slots(conn, "k", _POLICY, count=1, patience=1.0)
    assert 28.0 < waits[0] <= 30.0


def test_ten_reports_of_the_same_throttle_cut_once(database: Database) -> None:
    rate = Policy(rate_per_s=10.0, burst=1)
    with database.transaction() as conn:
        _, epoch, _ = reserve_slots(conn, "k", rate, count=1, patience=1.0)
    factors = []
    for _ in range(10):
        with database.transaction() as conn:
            factors.append(report_throttle(conn, "k", rate, retry_after=None, slot_epoch=epoch).factor)
    assert set(factors) == {0.5}
