"""Gate rows: one per rate key, locked, read with the clock *after* the lock, written (C1, C2).

Never SKIP LOCKED and never read-then-write without the lock: peers would each spend the same budget (2.06x over the
limit, measured). Grants may commit asynchronously (a lost one only under-uses); cooldowns may not.
"""

from dataclasses import asdict
from typing import Any

from ingest.db import Connection, pipeline, raw_connection
from ingest.gate import Policy, State, reserve, throttled
from ingest.store.jsontext import dump

# In the FOR UPDATE's own target list the clock was 500 ms old (measured), so it is a statement of its own.
_LOCK = "SELECT state FROM ing_rate_key WHERE rate_key = %s FOR UPDATE"
_CLOCK = "SELECT extract(epoch FROM clock_timestamp())::float8"
_MAKE = "INSERT INTO ing_rate_key (rate_key) VALUES (%s) ON CONFLICT DO NOTHING"
_SAVE = """
    UPDATE ing_rate_key SET state = %(state)s::jsonb, epoch = %(epoch)s, updated_at = clock_timestamp(),
           cooldown_until = to_timestamp(nullif(%(cooldown)s::float8, 0)) WHERE rate_key = %(key)s
"""
_EPOCH = "SELECT epoch FROM ing_rate_key WHERE rate_key = %s"


def _locked(conn: Connection, key: str) -> tuple[State, float]:
    raw = raw_connection(conn)
    for _ in range(2):
        locker, clock = raw.cursor(), raw.cursor()
        with pipeline(raw):
            locker.execute(_LOCK, [key])
            clock.execute(_CLOCK)
        row, moment = locker.fetchone(), clock.fetchone()
        if row is not None and moment is not None:
            return _state(row[0]), moment[0]
        raw.execute(_MAKE, [key])
    raise AssertionError("a rate key that was just made is not there")


def _state(stored: dict[str, Any]) -> State:
    return State(**(stored | {"sent": tuple(stored.get("sent", ()))}))


def _save(conn: Connection, key: str, state: State) -> None:
    values = {"state": dump(asdict(state)), "epoch": state.epoch, "cooldown": state.cooldown, "key": key}
    raw_connection(conn).execute(_SAVE, values)


def reserve_slots(
    conn: Connection, key: str, policy: Policy, *, count: int, patience: float
) -> tuple[list[float], int, State]:
    """Reserve up to `count` slots; return waits from now in seconds, the epoch, and the state.

    If even the first slot is further away than `patience`, nothing is reserved: the one wait returned says how long.
    """
    raw_connection(conn).execute("SET LOCAL synchronous_commit = off")
    state, now = _locked(conn, key)
    after, slots = reserve(policy, state, now, count)
    now = max(now, state.seen)
    waits = [slot - now for slot in slots]
    if waits[0] > patience:
        return waits[:1], state.epoch, state
    _save(conn, key, after)
    return waits, after.epoch, after


def report_throttle(
    conn: Connection, key: str, policy: Policy, *, retry_after: float | None, slot_epoch: int | None
) -> State:
    """Store a cooldown and cut the rate, for every process at once."""
    state, now = _locked(conn, key)
    after = throttled(policy, state, now, retry_after=retry_after, slot_epoch=slot_epoch)
    if after is not state:
        _save(conn, key, after)
    return after


def read_epoch(conn: Connection, key: str) -> int:
    """Return the key's epoch: slots of an older one are void."""
    row = raw_connection(conn).execute(_EPOCH, [key]).fetchone()
    return 0 if row is None else int(row[0])
