"""A PostgreSQL cluster on disk: made whole or not at all, and its server launched so that it outlives us.

PostgreSQL's programs run here as the server's user, with none of our PG* variables (PGPORT would rename the
socket) and in plain English and UTC, whatever the terminal says.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ingest.embedded import home as homes
from ingest.embedded.home import User
from ingest.errors import OperatorError

DATABASE = "ingest"
ROLE = "postgres"

# Written to postgresql.conf when the cluster is made, so that ALTER SYSTEM can change them later.
_DEFAULTS = {
    "listen_addresses": "",
    "log_destination": "stderr",
    "log_timezone": "UTC",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "timezone": "UTC",
}

# The shell goes at once, so the server becomes a child of init: were it ours, it would stay behind as a
# zombie when killed, and a zombie's number looks alive to PostgreSQL. The server's own output goes to the
# log, our standard error.
_LAUNCH = '"$@" >&2 & echo $!'


@dataclass(frozen=True, slots=True)
class Installation:
    """A home, the programs to use in it and the user to run them as (None: ourselves)."""

    home: Path
    binaries: Path
    user: User | None

    @property
    def cluster(self) -> Path:
        return self.home / "pg"

    @property
    def log(self) -> Path:
        return self.home / "postgres.log"


def make_cluster(installation: Installation, settings: Mapping[str, str], *, lock: int, timeout: float) -> None:
    """Make the cluster and its database; the last step is a rename, so a kill leaves only a draft.

    The children inherit the lock: if we are killed and they are not, the next process waits until they are
    done instead of deleting the directory under their feet.
    """
    draft = installation.home / "pg.new"
    if draft.exists():
        shutil.rmtree(draft)
    homes.make_private(draft, installation.user)
    initdb = ["initdb", "-D", str(draft), "-U", ROLE, "--encoding=UTF8", "--locale=C", "--no-instructions"]
    initdb += [
        "--auth-local=trust",
        "--auth-host=reject",
        *(f"--set={name}={_DEFAULTS[name]}" for name in _DEFAULTS),
    ]
    if settings.get("fsync") == "off":
        initdb.append("--no-sync")
    _run(installation, initdb, lock=lock, timeout=timeout)
    # Here and not after the first start: we could be killed in between, and nobody would know that it is
    # missing.
    single = [
        "postgres",
        "--single",
        "-D",
        str(draft),
        *_options({**settings, "exit_on_error": "on"}),
        "template1",
    ]
    _run(installation, single, lock=lock, timeout=timeout, text=f"CREATE DATABASE {DATABASE}\n")
    draft.rename(installation.cluster)
    _sync_directory(installation.home)  # a power cut must not undo the rename: a draft is deleted on sight


def check_version(installation: Installation) -> None:
    """Refuse a cluster that these programs cannot read."""
    try:
        made_by = (installation.cluster / "PG_VERSION").read_text().strip()
    except FileNotFoundError:
        raise OperatorError(f"{installation.cluster} is not a PostgreSQL cluster: move it away to start anew") from None
    present = homes.read_version(installation.binaries)
    if made_by != present.split(".", maxsplit=1)[0]:
        raise OperatorError(
            f"the database {installation.cluster} is of PostgreSQL {made_by}, and {present} cannot read it: "
            f"dump it with the older release of patra-ingest and load it into a new INGEST_HOME"
        )


def launch(installation: Installation, settings: Mapping[str, str], *, stale_process: int | None) -> int:
    """Launch the server in a session of its own, out of reach of Ctrl-C at our terminal; return its process.

    `stale_process` is the number a killed server left in postmaster.pid, known to be no server of this
    cluster. Told that it is its grandparent, PostgreSQL takes the file as stale though the number be in use
    again, and still makes sure that no orphan of the old server uses the shared memory.
    """
    cluster, user = installation.cluster, installation.user
    socket_dir = homes.socket_dir_path(installation.home, user)
    homes.make_private(socket_dir, user)
    # The number names the socket. Taken from the inode, it differs for a cluster made where another was
    # deleted: the old server notices within a minute and, going, removes the socket of its name.
    port = 1024 + cluster.stat().st_ino % 64_000
    ours = {"port": str(port), "unix_socket_directories": str(socket_dir), "unix_socket_permissions": "0700"}
    server = [str(installation.binaries / "postgres"), "-D", str(cluster), *_options({**settings, **ours})]
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    log = os.open(installation.log, flags, 0o600)
    try:
        if user is not None:
            os.fchown(log, user.pw_uid, user.pw_gid)
        started = subprocess.run(  # noqa: S603
            ["/bin/sh", "-c", _LAUNCH, "sh", *server],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            check=True,
            cwd=cluster,
            env=_environment() | ({"PG_GRANDPARENT_PID": str(stale_process)} if stale_process else {}),
            start_new_session=True,
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
        )
    finally:
        os.close(log)
    return int(started.stdout)


def explain(messages: Sequence[str]) -> str:
    """Pick the message that says why a program of PostgreSQL failed."""
    for mark in ("FATAL: ", "PANIC: ", "error: ", "ERROR: "):
        for message in messages:
            if mark in message:
                return message.split(mark, 1)[1].strip()
    return messages[-1].strip() if messages else "it said nothing"


def _run(installation: Installation, command: Sequence[str], *, lock: int, timeout: float, text: str = "") -> None:
    program, *arguments = command
    user = installation.user
    try:
        done = subprocess.run(  # noqa: S603
            [str(installation.binaries / program), *arguments],
            input=text,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
            cwd="/",
            env=_environment(),
            pass_fds=[lock],
            user=user.pw_uid if user else None,
            group=user.pw_gid if user else None,
            extra_groups=[] if user else None,
        )
    except subprocess.TimeoutExpired:
        raise OperatorError(f"{program} did not finish within {timeout:.0f} s: allow it more time") from None
    if done.returncode != 0:
        raise OperatorError(f"{program} failed: {explain(done.stdout.splitlines())}")


def _options(settings: Mapping[str, str]) -> list[str]:
    return [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]


def _environment() -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith(("PG", "LC_", "LANG"))}
    return ours | {"LC_ALL": "C", "TZ": "UTC"}


def _sync_directory(directory: Path) -> None:
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
