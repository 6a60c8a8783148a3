"""The pool: N threads; leases as many tasks as it has free threads, in one statement, and never more (E1, E2)."""

import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from executor.commit import Committer
from executor.gatekeeper import Gatekeeper
from executor.keeper import Held, Keeper
from executor.program import Programs
from executor.runner import Walk
from executor.settle import settle_error, settle_outcome
from executor.transport import Transport
from ingest.daemon import Daemon, first_line
from ingest.db import Database
from ingest.logs import get_log
from ingest.settings import Settings
from ingest.store.leases import lease_tasks
from ingest.store.runs import start_run

_log = get_log("executor")


class Pool:
    """The workers of one executor process."""

    def __init__(self, daemon: Daemon, database: Database, settings: Settings, *, workers: int) -> None:
        self._daemon = daemon
        self._database = database
        self._workers = workers
        self._poll_seconds = settings.poll_seconds
        self._transport = Transport(open_origins=settings.open_origins, connections=workers * 2)
        gate = Gatekeeper(database, daemon.stop.wait)
        self._programs = Programs(database, self._transport, gate, daemon.stop.wait)
        self._committer = Committer(database)
        self.keeper = Keeper(database, owner=daemon.boot_id, lease_seconds=settings.lease_seconds)
        self._threads = ThreadPoolExecutor(workers, thread_name_prefix="worker")
        self._prefetcher = ThreadPoolExecutor(workers, thread_name_prefix="prefetch")
        self._busy = 0
        self._lock = threading.Lock()
        self._changed = threading.Event()

    def run(self) -> None:
        """Lease and work until told to stop; then let every worker finish its page and give its task back."""
        delay = self._poll_seconds
        while not self._daemon.stop.is_set():
            try:
                found = self._lease()
                delay = self._poll_seconds
            except Exception as error:
                found, delay = 0, min(delay * 2, 10.0)
                _log.error("lease failed", error=first_line(error), retry_in_s=delay)
            if not found:
                # wake when a thread is free again, when told to stop, or when it is time to look
                self._changed.wait(delay * random.uniform(0.75, 1.25))  # noqa: S311 -- spreads pollers
                self._changed.clear()
        self._threads.shutdown(wait=True)
        self._prefetcher.shutdown(wait=True)
        self._transport.close()

    def wake(self) -> None:
        """Look for work, or for the stop, now."""
        self._changed.set()

    def _lease(self) -> int:
        with self._lock:
            free = self._workers - self._busy
        if free <= 0:
            return 0
        asked_at = time.monotonic()
        with self._database.transaction() as conn:
            leases = lease_tasks(conn, owner=self._daemon.boot_id, limit=free, ttl=self.keeper.ttl)
        for lease in leases:
            held = self.keeper.hold(lease, asked_at=asked_at)
            with self._lock:
                self._busy += 1
            self._threads.submit(self._work, held)
        return len(leases)

    def _work(self, held: Held) -> None:
        try:
            self._walk(held)
        except Exception as error:
            # settling itself failed (the database is away): the lease ends by itself and the task is taken back
            _log.error("not settled", task_id=held.lease.task_id, error=first_line(error))
        finally:
            self.keeper.release(held)
            with self._lock:
                self._busy -= 1
            self._changed.set()

    def _walk(self, held: Held) -> None:
        run, walk = None, None
        try:
            with self._database.transaction() as conn:
                run = start_run(conn, held.lease, ttl=self.keeper.ttl)
            walk = Walk(
                held,
                run,
                self._programs.get(held.lease.spec_fingerprint),
                database=self._database,
                committer=self._committer,
                ttl=self.keeper.ttl,
                stopping=self._daemon.stop.is_set,
            )
            outcome = walk.run(self._prefetcher)
        except Exception as error:
            settle_error(self._database, held, run, error, pages=walk.pages if walk else held.lease.pages_done)
        else:
            settle_outcome(self._database, held, run, outcome)
