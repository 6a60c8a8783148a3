"""The demo proves itself, goes on where it stopped, and leaves nothing running however it ends."""

import json
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from ingest.db import Database
from ingest.demo.project import DemoStream
from ingest.demo.proof import prove
from ingest.demo.world import World
from ingest.embedded import server
from simulator.server import Simulator
from tests.flow.processes import BIN, wait_until

_REGISTER = """
    WITH source AS (INSERT INTO reg_provenance (provenance_code) VALUES ('github'))
    INSERT INTO reg_prov_endpoint_def (provenance_code, endpoint_name, role_code, method_code, path, dataset_name)
    VALUES ('github', 'issues', 'SEARCH', 'GET', '/x', 'github_issues')
"""
_LEDGER = """
    INSERT INTO ing_task_run_batch (run_id, batch_no, schedule_instance_id, plan_id, slice_id, task_id, provenance_code,
           endpoint_name, operation_code, spec_fingerprint, expr_hash, request_digest, stats, status_code,
           idempotent_key)
    VALUES (1, 1, 1, 1, 1, 1, 'github', 'issues', 'HARVEST', 'x', 'x', '{}', CAST(:stats AS jsonb), 'SUCCEEDED', 'x')
"""


def _slow(test: Any) -> Any:
    test = pytest.mark.skipif(not Path("/proc").is_dir(), reason="looks for processes in /proc")(test)
    return pytest.mark.slow(pytest.mark.timeout(400)(test))


@contextmanager
def _demo(folder: Path, *arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Start the demo in a folder; whatever happens, it is gone afterwards."""
    with (folder / "said").open("a") as said:
        process = subprocess.Popen(
            [str(BIN / "ingest"), "demo", *arguments], cwd=folder, stdout=said, stderr=said, text=True
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        wait_until(lambda: not _list_children(folder), "the demo's children to end")
        server.stop(folder / ".demo", mode="immediate")


def _said(folder: Path) -> str:
    return (folder / "said").read_text()


def _list_children(folder: Path) -> list[str]:
    """Return the command lines of processes that work in the demo's folder, PostgreSQL's apart."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            inside = (entry / "cwd").readlink() == folder / ".demo"
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except (OSError, PermissionError):
            continue
        if inside and "postgres" not in command:
            found.append(command)
    return found


def _end(process: "subprocess.Popen[str]") -> int:
    return process.wait(300)


@_slow
def test_the_demo_proves_itself_with_a_worker_killed_and_a_rerun_fetches_only_what_is_new(tmp_path: Path) -> None:
    with _demo(tmp_path, "--check") as process:
        assert _end(process) == 0, _said(tmp_path)
        assert _list_children(tmp_path) == []
        assert not server.status(tmp_path / ".demo").running
    said = _said(tmp_path)
    assert "with SIGKILL and started another" in said
    assert "its lease ran out, the task was taken back" in said
    assert "0 lost, 0 duplicate" in said
    assert "All demo checks passed" in said
    world = (tmp_path / ".demo" / "world.json").read_text()
    (tmp_path / "said").write_text("")
    with _demo(tmp_path, "--check") as process:
        assert _end(process) == 0, _said(tmp_path)
    again = _said(tmp_path)
    assert "pubmed.articles: already covered up to" in again
    assert "crossref.works: 1 new window since" in again
    assert "SIGKILL" not in again
    assert (tmp_path / ".demo" / "world.json").read_text() == world


@_slow
def test_ctrl_c_in_the_middle_leaves_nothing_and_the_next_run_completes_it(tmp_path: Path) -> None:
    with _demo(tmp_path) as process:
        wait_until(lambda: "harvesting" in _said(tmp_path), "the harvest to begin", 120)
        second = subprocess.run(
            [str(BIN / "ingest"), "demo", "--check"], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert second.returncode == 6
        assert "another demo runs in .demo/" in second.stderr
        process.send_signal(signal.SIGINT)
        assert _end(process) == 130, _said(tmp_path)
        assert _list_children(tmp_path) == []
        assert not server.status(tmp_path / ".demo").running
    with _demo(tmp_path, "--check") as process:
        assert _end(process) == 0, _said(tmp_path)


@_slow
def test_a_demo_that_is_itself_killed_takes_its_children_with_it(tmp_path: Path) -> None:
    with _demo(tmp_path) as process:
        wait_until(lambda: "harvesting" in _said(tmp_path), "the harvest to begin", 120)
        assert len(_list_children(tmp_path)) >= 4
        process.kill()
        wait_until(lambda: not _list_children(tmp_path), "the children to end with the demo")


@_slow
def test_a_port_that_is_taken_later_is_refused_with_the_reason(tmp_path: Path) -> None:
    folder = tmp_path / ".demo"
    folder.mkdir()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        plan = {
            "port": taken.getsockname()[1],
            "seed": 7,
            "start": "2024-01-01T00:00:00Z",
            "end": "2024-02-01T00:00:00Z",
        }
        (folder / "world.json").write_text(json.dumps(plan))
        with _demo(tmp_path, "--check") as process:
            assert _end(process) == 6
    assert f"port {plan['port']}, which this demo used before, is taken" in _said(tmp_path)
    assert "logs/*.log" in _said(tmp_path)


@pytest.mark.parametrize(
    ("damage", "found"),
    [
        ("SELECT 1", (0, 0, 0)),
        ("DELETE FROM data.github_issues WHERE provider_id = :first", (1, 0, 0)),
        ("UPDATE data.github_issues SET updated_at = '2020-01-01' WHERE provider_id = :first", (0, 1, 0)),
        ("INSERT INTO data.github_issues VALUES ('more', '2020-01-01')", (0, 1, 0)),
        ("UPDATE ing_task_run_batch SET stats = jsonb_set(stats, '{inserted}', '10')", (0, 0, 1)),
    ],
    ids=["sound", "lost", "old", "invented", "twice"],
)
def test_the_proof_sees_every_damage(
    database: Database, tmp_path: Path, damage: str, found: tuple[int, int, int]
) -> None:
    with Simulator(sizes={"github": 9}) as simulator:
        plan = {"port": simulator.port, "seed": 7, "start": "2024-01-01T00:00:00Z", "end": "2024-02-01T00:00:00Z"}
        (tmp_path / "world.json").write_text(json.dumps(plan))
        records = simulator.truth("github", full=True)["records"]
        with database.transaction() as conn:
            conn.execute(text(_REGISTER))
            conn.execute(text("CREATE TABLE data.github_issues (provider_id text, updated_at timestamptz)"))
            conn.execute(
                text("INSERT INTO data.github_issues VALUES (:id, CAST(:at AS timestamptz))"),
                [{"id": key, "at": record["updated_at"]} for key, record in records.items()],
            )
            conn.execute(text(_LEDGER), {"stats": json.dumps({"inserted": len(records)})})
            conn.execute(text(damage), {"first": min(records)} if ":first" in damage else {})
            stream = DemoStream("github", "issues", "github", windowed=False)
            proof = prove(conn, World(tmp_path), stream)
    assert (proof.lost, proof.wrong, proof.duplicate) == found
    assert proof.holds == (found == (0, 0, 0))
