"""The keeper: renews every lease of this process in one statement, while their page loops make progress.

Invariant: `Held.deadline` is never later than the lease's end in the database, by our monotonic clock: it counts from
before the renewal was sent. A loop that shows no progress is not renewed, so a hung worker cannot keep its lease.
"""

import threading
import time
from dataclasses import dataclass, field
from datetime import timedelta

from ingest.db import Database
from ingest.logs import get_log
from ingest.store.leases import Lease, renew_leases

_log = get_log("executor")
_MARGIN_SECONDS = 1.0


@dataclass(slots=True)
class Held:
    """A lease in this process' hands."""

    lease: Lease
    deadline: float
    progressed_at: float = field(default_factory=time.monotonic)
    patience_s: float = 180.0

    def remaining(self) -> float:
        """Return the seconds this worker may still count on its lease."""
        return self.deadline - time.monotonic()

    def renewed(self, sent_at: float, ttl: timedelta) -> None:
        """Count on the lease for its whole length from when the renewal was sent, less a margin."""
        seconds = ttl.total_seconds()
        self.deadline = sent_at + seconds - min(_MARGIN_SECONDS, seconds / 4)

    def progress(self) -> None:
        """Say that the page loop is alive."""
        self.progressed_at = time.monotonic()


class Keeper:
    """All leases this process holds."""

    def __init__(self, database: Database, *, owner: str, lease_seconds: float) -> None:
        self._database = database
        self._owner = owner
        self.ttl = timedelta(seconds=lease_seconds)
        self._held: dict[int, Held] = {}
        self._lock = threading.Lock()

    @property
    def renew_seconds(self) -> float:
        """How often to renew: three chances before a lease ends."""
        return self.ttl.total_seconds() / 4

    def start(self) -> None:
        """Renew in a thread of its own until the process ends: leases are needed while it drains, too."""
        threading.Thread(target=self._renew_for_ever, name="keeper", daemon=True).start()

    def _renew_for_ever(self) -> None:
        while True:
            time.sleep(self.renew_seconds)
            try:
                self.renew()
            except Exception as error:
                # unknown is lost: deadlines stand as they are, and workers stop at them
                _log.error("renewal failed", error=str(error).splitlines()[0])

    def hold(self, lease: Lease, *, asked_at: float) -> Held:
        """Take charge of a lease that was asked for at that moment."""
        held = Held(lease, deadline=asked_at)
        held.renewed(asked_at, self.ttl)
        with self._lock:
            self._held[lease.task_id] = held
        return held

    def release(self, held: Held) -> None:
        """Stop renewing it."""
        with self._lock:
            if self._held.get(held.lease.task_id) is held:
                del self._held[held.lease.task_id]

    def renew(self) -> None:
        """Renew what makes progress; what is no longer ours gets no further deadline."""
        with self._lock:
            alive = [h for h in self._held.values() if time.monotonic() - h.progressed_at < h.patience_s]
        if not alive:
            return
        sent_at = time.monotonic()
        pairs = [(held.lease.task_id, held.lease.count) for held in alive]
        with self._database.transaction() as conn:
            renewed, ours = renew_leases(conn, owner=self._owner, held=pairs, ttl=self.ttl)
        for held in alive:
            if held.lease.task_id in renewed:
                held.renewed(sent_at, self.ttl)
            elif held.lease.task_id not in ours:
                held.deadline = time.monotonic()  # lost: its HTTP stops now, and the fence stops its writes
