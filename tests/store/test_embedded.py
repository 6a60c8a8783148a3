"""The embedded PostgreSQL, with real servers, real kills and, when run as root, real other users."""

import contextlib
import fcntl
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import psycopg
import pytest

from ingest.embedded import home as homes
from ingest.embedded import server as embedded
from ingest.errors import OperatorError

FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
ROOT = Path(__file__).parents[2]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")

# Python itself may be out of the other user's reach (below /root), so all is imported before the change.
_AS_USER = """
import os, pathlib, psutil, psycopg, subprocess, sys
from ingest.embedded import server as embedded
data_dir, uid = pathlib.Path(sys.argv[1]), int(sys.argv[2])
FAST = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
if uid != os.geteuid():
    os.setgroups([]); os.setgid(uid); os.setuid(uid)
"""


@pytest.fixture
def open_dir() -> Iterator[Path]:
    """A directory that every user can pass through, unlike pytest's tmp_path."""
    path = Path(tempfile.mkdtemp(prefix="embedded-"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


@pytest.fixture
def new_dir(open_dir: Path) -> Iterator[Path]:
    """Where a data directory may be made; its server is stopped and deleted in the end."""
    yield open_dir / "d"
    embedded.remove(open_dir / "d")


@pytest.fixture(scope="module")
def shared_dir() -> Iterator[Path]:
    parent = Path(tempfile.mkdtemp(prefix="embedded-"))
    parent.chmod(0o755)
    start(parent / "d")
    yield parent / "d"
    embedded.remove(parent / "d")
    shutil.rmtree(parent)


@pytest.fixture
def data_dir(shared_dir: Path) -> Iterator[Path]:
    """A data directory that exists, its server stopped; shared, as every initdb costs a second."""
    embedded.stop(shared_dir)
    yield shared_dir
    embedded.stop(shared_dir)


def start(data_dir: Path, **arguments: object) -> embedded.Server:
    return embedded.start(data_dir, settings=FAST, **arguments)  # type: ignore[arg-type]


def spawn(code: str, data_dir: Path, uid: int | None = None, *, new_session: bool = False) -> "subprocess.Popen[str]":
    uid = os.geteuid() if uid is None else uid
    return subprocess.Popen(
        [sys.executable, "-c", _AS_USER + code, str(data_dir), str(uid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        start_new_session=new_session,
    )


def output_of(process: "subprocess.Popen[str]") -> str:
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return out.strip()


def wait_for(condition: Callable[[], bool], process: "subprocess.Popen[str]") -> None:
    """Wait until the condition holds; fail if the process ends first."""
    while not condition():
        try:
            process.wait(timeout=0.005)
        except subprocess.TimeoutExpired:
            continue
        pytest.fail(f"it ended before that: {process.communicate()[1]}")


def query(server: embedded.Server, statement: str) -> object:
    with psycopg.connect(server.libpq, autocommit=True) as conn:
        cursor = conn.execute(statement.encode())
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def kill(pid: int, number: int) -> None:
    """Kill the process and wait until it is gone, as it may be already."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        process.send_signal(number)
        process.wait(timeout=30)


def list_postmasters(cluster: Path) -> list[int]:
    return [
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if str(cluster) in (process.info["cmdline"] or []) and "-D" in process.info["cmdline"]
    ]


def test_looking_makes_nothing(open_dir: Path) -> None:
    data_dir = open_dir / "d"
    assert embedded.status(data_dir).state == "absent"
    assert not embedded.stop(data_dir)
    embedded.remove(data_dir)
    assert not data_dir.exists()


def test_start_stop_and_status_tell_the_same_story(data_dir: Path) -> None:
    server = start(data_dir)
    status = embedded.status(data_dir)
    assert (status.running, status.state, status.version) == (True, "ready", "18")
    assert (status.pid, status.url, status.libpq) == (server.pid, server.url, server.libpq)

    assert embedded.stop(data_dir)
    status = embedded.status(data_dir)
    assert (status.running, status.state, status.pid, status.url) == (False, "stopped", None, None)
    assert not embedded.stop(data_dir)
    assert list_postmasters(status.cluster) == []


def test_addresses_serve_sqlalchemy_psycopg_and_psql_whatever_the_environment_says(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sqlalchemy import create_engine, text

    monkeypatch.setenv("PGPORT", "1")
    monkeypatch.setenv("PGDATA", "/nowhere")
    server = start(data_dir)
    engine = create_engine(server.url)
    with engine.connect() as conn:
        assert conn.execute(text("SELECT current_database()")).scalar_one() == "ingest"
    engine.dispose()
    command = [str(homes.psql_path()), server.libpq, "-Atc", "SELECT 6 * 7"]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "42\n"


def test_defaults_are_safe_and_can_be_changed_by_alter_system_and_by_the_caller(data_dir: Path) -> None:
    server = embedded.start(data_dir, settings={"work_mem": "5MB"})
    expected = {
        "fsync": "on",
        "listen_addresses": "",
        "log_timezone": "UTC",
        "max_connections": "200",
        "server_encoding": "UTF8",
        "shared_buffers": "128MB",
        "timezone": "UTC",
        "unix_socket_permissions": "0700",
        "work_mem": "5MB",
    }
    assert {name: query(server, f"SHOW {name}") for name in expected} == expected
    query(server, "ALTER SYSTEM SET max_connections = 50")
    embedded.stop(data_dir)
    again = embedded.start(data_dir)
    assert query(again, "SHOW max_connections") == "50"
    query(again, "ALTER SYSTEM RESET max_connections")


def test_start_of_a_running_server_returns_it_without_any_child_process(
    data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = start(data_dir)
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: pytest.fail("it started a process"))
    assert start(data_dir) == server


def test_six_processes_at_once_make_one_server(new_dir: Path) -> None:
    code = "print(embedded.start(data_dir, settings=FAST).pid)"
    processes = [spawn(code, new_dir) for _ in range(6)]
    pids = {int(output_of(process)) for process in processes}
    assert list_postmasters(embedded.status(new_dir).cluster) == list(pids)
    assert embedded.status(new_dir).log.read_text().count("starting PostgreSQL") == 1


def test_the_server_outlives_its_starter_killed_or_interrupted(data_dir: Path) -> None:
    code = "print(embedded.start(data_dir, settings=FAST).pid, flush=True); sys.stdin.read()"
    starter = spawn(code, data_dir, new_session=True)
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    os.killpg(starter.pid, signal.SIGINT)  # what Ctrl-C does: to all the terminal's processes
    os.killpg(starter.pid, signal.SIGKILL)
    starter.communicate()
    server = start(data_dir)
    assert server.pid == pid
    assert query(server, "SELECT 1") == 1


def test_start_recovers_a_killed_server_with_its_data(data_dir: Path) -> None:
    server = embedded.start(data_dir)  # not FAST: an asynchronous commit may be lost
    query(server, "CREATE TABLE kept AS SELECT 42 AS n")
    kill(server.pid, signal.SIGKILL)
    again = start(data_dir)
    assert again.pid != server.pid
    assert query(again, "SELECT n FROM kept") == 42


def test_start_waits_for_the_last_process_of_a_killed_server(data_dir: Path) -> None:
    server = start(data_dir)
    orphan = psutil.Process(server.pid).children()[0]
    orphan.suspend()
    kill(server.pid, signal.SIGKILL)
    heard: list[str] = []

    def release(word: str) -> None:
        heard.append(word)
        orphan.kill()

    try:
        assert query(start(data_dir, say=release), "SELECT 1") == 1
    finally:
        with contextlib.suppress(psutil.NoSuchProcess):
            orphan.kill()
    assert len(heard) == 1
    assert "Terminate any old server processes" in heard[0]


def test_start_is_not_fooled_by_a_process_that_got_the_dead_servers_number(data_dir: Path) -> None:
    server = start(data_dir)
    embedded.stop(data_dir, mode="immediate")
    cluster = embedded.status(data_dir).cluster
    stranger = subprocess.Popen(["cat"], stdin=subprocess.PIPE, user=cluster.stat().st_uid)
    try:
        lines = [str(stranger.pid), str(cluster), "0", "5432", "/nowhere", "", "0 0", "ready"]
        (cluster / "postmaster.pid").write_text("\n".join(lines) + "\n")
        assert embedded.status(data_dir).state == "stopped"
        assert not embedded.stop(data_dir)
        assert start(data_dir).pid not in {server.pid, stranger.pid}
        assert stranger.poll() is None
    finally:
        stranger.communicate()


@pytest.mark.parametrize("survivors", ["initdb goes on", "all killed"])
def test_a_kill_in_the_middle_of_initdb_is_made_good(new_dir: Path, survivors: str) -> None:
    draft = new_dir / "pg.new"
    starter = spawn("embedded.start(data_dir, settings=FAST)", new_dir)
    wait_for((draft / "PG_VERSION").exists, starter)
    children = psutil.Process(starter.pid).children(recursive=True)
    starter.kill()
    if survivors == "all killed":
        for child in children:
            child.kill()
    starter.communicate()
    assert embedded.status(new_dir).state == "absent"
    assert query(start(new_dir), "SELECT current_database()") == "ingest"
    assert not draft.exists()


def test_start_waits_for_a_recovering_server_and_says_so(data_dir: Path) -> None:
    server = start(data_dir)
    pid_file = embedded.status(data_dir).cluster / "postmaster.pid"
    as_ready = pid_file.read_text()
    with pid_file.open("r+") as file:  # in place, as the server does
        file.write(as_ready.replace("ready   ", "starting"))
    assert embedded.status(data_dir).state == "starting"

    with pytest.raises(OperatorError, match=r"does not take connections after 0\.1 s .* goes on by itself"):
        start(data_dir, timeout=0.1)
    heard: list[str] = []

    def become_ready(word: str) -> None:
        heard.append(word)
        pid_file.write_text(as_ready)

    assert start(data_dir, say=become_ready) == server
    assert len(heard) == 1
    assert heard[0].startswith("waiting for PostgreSQL: ")


def test_start_gives_up_on_a_lock_that_is_never_released(new_dir: Path) -> None:
    new_dir.mkdir()
    with (new_dir / ".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(OperatorError, match=r"another process has held .*\.lock for 0\.1 s"):
            start(new_dir, timeout=0.1)


def test_a_cluster_made_where_another_was_deleted_keeps_its_socket(data_dir: Path) -> None:
    old = start(data_dir)
    shutil.rmtree(embedded.status(data_dir).cluster)
    shutil.rmtree(data_dir / "s")
    new = start(data_dir)
    assert new.libpq != old.libpq
    kill(old.pid, signal.SIGQUIT)  # it notices by itself too, within a minute
    assert query(new, "SELECT 1") == 1


def test_a_server_whose_socket_was_removed_is_explained(data_dir: Path) -> None:
    start(data_dir)
    shutil.rmtree(data_dir / "s")
    with pytest.raises(OperatorError, match=r"runs, but its socket .* is gone: stop it"):
        start(data_dir)
    assert embedded.stop(data_dir)
    assert query(start(data_dir), "SELECT 1") == 1


def test_a_cluster_of_another_major_version_and_a_bad_setting_are_explained(data_dir: Path) -> None:
    with pytest.raises(OperatorError, match=r'did not start: unrecognized configuration parameter "no_such"'):
        embedded.start(data_dir, settings={"no_such": "1"})
    version = data_dir / "pg" / "PG_VERSION"
    version.write_text("17\n")
    try:
        with pytest.raises(OperatorError, match=r"is of PostgreSQL 17, and 18\.\d+ cannot read it: dump it"):
            start(data_dir)
    finally:
        version.write_text("18\n")


def test_a_path_too_long_for_a_socket_works(open_dir: Path) -> None:
    data_dir = open_dir / ("a rather long name, " * 6) / "d"
    try:
        server = start(data_dir)
        assert query(server, "SELECT 1") == 1
        socket_dir = homes.socket_dir_path(data_dir, homes.choose_user(data_dir))
        assert socket_dir.parent == Path("/tmp")  # noqa: S108
        assert socket_dir.stat().st_mode & 0o777 == 0o700
    finally:
        embedded.remove(data_dir)
    assert not socket_dir.exists()


def test_default_data_dir_is_ingest_home_or_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("INGEST_HOME", raising=False)
    assert homes.default_data_dir() == tmp_path / ".ingest"
    monkeypatch.setenv("INGEST_HOME", "/srv/ingest")
    assert homes.default_data_dir() == Path("/srv/ingest")


@needs_root
def test_an_ordinary_user_has_a_server_that_root_can_use_and_a_third_cannot(open_dir: Path) -> None:
    user, third = pwd.getpwnam("nobody"), pwd.getpwnam("daemon")
    data_dir = open_dir / "d"
    data_dir.mkdir(mode=0o755)
    os.chown(data_dir, user.pw_uid, user.pw_gid)
    try:
        own = """
server = embedded.start(data_dir, settings=FAST)
psycopg.connect(server.libpq).close()
print(server.pid)
"""
        pid = int(output_of(spawn(own, data_dir, user.pw_uid)))
        assert psutil.Process(pid).uids().effective == user.pw_uid
        server = start(data_dir)
        assert server.pid == pid
        assert query(server, "SELECT 1") == 1

        others = f"""
for attempt in (lambda: psycopg.connect({server.libpq!r}), lambda: embedded.start(data_dir)):
    try:
        attempt()
    except Exception as error:
        print(type(error).__name__, "Permission denied" in str(error))
"""
        refused = "OperationalError True\nOperatorError True"
        assert output_of(spawn(others, data_dir, third.pw_uid)) == refused
        (data_dir / "s").chmod(0o755)  # even then the socket itself is closed to them
        assert output_of(spawn(others, data_dir, third.pw_uid)) == refused

        embedded.stop(data_dir)
        again = start(data_dir)  # by root, for its owner, who can go on with it
        assert psutil.Process(again.pid).uids().effective == user.pw_uid
        output_of(spawn("assert embedded.stop(data_dir); embedded.start(data_dir)", data_dir, user.pw_uid))
    finally:
        embedded.remove(data_dir)


@needs_root
def test_below_a_closed_directory_root_keeps_the_cluster_and_a_copy_of_the_binaries_elsewhere(
    tmp_path: Path,
) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    package = homes.binaries_path().parents[1]
    for part in (package / "pginstall18", package.with_name(f"{package.name}.libs")):
        target = closed / "site-packages" / part.relative_to(package.parent)
        shutil.copytree(part, target, copy_function=os.symlink)
    binaries = closed / "site-packages" / package.name / "pginstall18" / "bin"
    modes = {path: path.stat().st_mode for path in (closed, *closed.parents)}

    data_dir = closed / "d"
    heard: list[str] = []
    try:
        server = start(data_dir, say=heard.append, binaries=binaries)
        assert output_of(spawn("print(embedded.start(data_dir).pid)", data_dir)) == str(server.pid)
        home = embedded.status(data_dir).cluster.parent
        assert home.parent == Path("/var/tmp")  # noqa: S108
        assert (home / "pg").stat().st_mode & 0o777 == 0o700
        assert Path(psutil.Process(server.pid).exe()).is_relative_to(home)
        assert any("cannot enter" in word for word in heard)
        query(server, "CREATE TABLE kept AS SELECT 42 AS n")
        embedded.stop(data_dir)
        assert query(start(data_dir, binaries=binaries), "SELECT n FROM kept") == 42
        assert {path: path.stat().st_mode for path in modes} == modes, "no directory was opened up"
    finally:
        embedded.remove(data_dir)
    assert not home.exists()


@needs_root
def test_root_follows_no_pointer_that_root_did_not_write(open_dir: Path) -> None:
    user = pwd.getpwnam("nobody")
    data_dir, victim = open_dir / "d", open_dir / "victim"
    data_dir.mkdir()
    victim.mkdir()
    pointer = data_dir / "moved-to"
    pointer.write_text(f"{victim}\n")
    os.chown(pointer, user.pw_uid, user.pw_gid)
    try:
        with pytest.raises(OperatorError, match="not written by root"):
            start(data_dir)
        assert list(victim.iterdir()) == []
    finally:
        pointer.unlink()
