"""The `ingest` command as a person or a script meets it: the real program, its words, its JSON, its exit codes."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from typer.testing import CliRunner

from ingest.cli.main import NOUNS, make_app
from ingest.db import Database
from ingest.store.schema import head_revision, migrate
from simulator.server import Simulator
from tests.flow.processes import BIN, crew, rows, scalar
from tests.flow.sources import PLAIN, apply_source, ingest

_AWAY = "postgresql://nobody@127.0.0.1:1/none"
_SOURCE = PLAIN.format(url="http://127.0.0.1:9", term="x", columns="{title: text}")


def _run(*arguments: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the program with only these settings of ours in its environment."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("INGEST_")}
    return subprocess.run(
        [str(BIN / "ingest"), *arguments],
        env=inherited | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def _json(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def registered(database_url: str, tmp_path: Path) -> str:
    """The address of a database with one source."""
    apply_source(database_url, _SOURCE, folder=tmp_path)
    return database_url


def test_help_loads_no_heavy_library() -> None:
    program = """
import sys
from ingest.cli.main import NOUNS, make_app
make_app()(["--help"], standalone_mode=False)
heavy = {"sqlalchemy", "pydantic", "rich", "httpx", "alembic", "ruamel", "structlog"} & set(sys.modules)
assert not heavy, heavy
make_app(*NOUNS)
heavy = {"sqlalchemy", "pydantic", "rich", "httpx", "alembic", "ruamel", "structlog"} & set(sys.modules)
assert not heavy, heavy
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Exit codes:" in done.stdout


def test_every_noun_is_a_command_with_help() -> None:
    app = make_app(*NOUNS)
    for noun in NOUNS.keys() - {"sim"}:  # the simulator answers for itself
        result = CliRunner().invoke(app, [noun, "--help"])
        assert result.exit_code == 0, noun
        assert f"Usage: ingest {noun} [OPTIONS]" in result.stdout, noun


def test_an_unknown_command_is_wrong_usage_and_names_the_right_one(tmp_path: Path) -> None:
    done = _run("statsu", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Did you mean 'status'?" in done.stderr


def test_reading_makes_no_database(tmp_path: Path) -> None:
    done = _run("status", folder=tmp_path)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("ingest: no database yet: `ingest db migrate` makes one in .ingest/")
    assert list(tmp_path.iterdir()) == []


def test_a_database_that_is_away_is_one_line_and_exit_5(tmp_path: Path) -> None:
    done = _run("status", folder=tmp_path, INGEST_DATABASE_URL=_AWAY)
    assert (done.returncode, done.stdout) == (5, "")
    assert done.stderr.startswith("ingest: no database at postgresql")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arguments", [("--debug", "status"), ("status", "--debug")])
def test_debug_shows_the_traceback_wherever_it_stands(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = _run(*arguments, folder=tmp_path, INGEST_DATABASE_URL=_AWAY)
    assert done.returncode != 0
    assert "Traceback" in done.stderr


def test_a_database_without_schema_is_told_how_to_get_one(database_url: str, tmp_path: Path) -> None:
    owner = Database(database_url, owner=True)
    migrate(owner, "base")
    owner.close()
    done = _run("status", folder=tmp_path, INGEST_DATABASE_URL=database_url)
    assert done.returncode == 1
    assert done.stderr == "ingest: the database has no schema yet: run `ingest db migrate`\n"
    first = _json(_run("db", "migrate", "--json", folder=tmp_path, INGEST_DATABASE_URL=database_url))
    assert (first["before"], first["after"]) == (None, head_revision())
    again = _run("db", "migrate", folder=tmp_path, INGEST_DATABASE_URL=database_url)
    assert again.stdout == f"schema is current ({head_revision()})\n"


def test_a_wrong_setting_is_named_with_exit_2(tmp_path: Path) -> None:
    done = _run("status", folder=tmp_path, INGEST_LEASE_SECONDS="soon")
    assert done.returncode == 2
    assert "lease_seconds" in done.stderr


def test_an_unknown_source_is_exit_4_with_what_was_meant(registered: str, tmp_path: Path) -> None:
    done = ingest(registered, "status", "plaim", folder=tmp_path)
    assert (done.returncode, done.stdout) == (4, "")
    assert done.stderr == "ingest: no source 'plaim' - did you mean 'plain'?\n"
    done = ingest(registered, "run", "plain.item", folder=tmp_path)
    assert done.returncode == 4
    assert done.stderr == "ingest: source 'plain' has no endpoint 'item' - did you mean 'items'?\n"


def test_without_any_source_the_next_command_is_apply(database_url: str, tmp_path: Path) -> None:
    done = ingest(database_url, "status", folder=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("No source is registered yet.\n")
    assert done.stderr == "Next: ingest registry apply sources/\n"
    assert ingest(database_url, "status", "plain", folder=tmp_path).returncode == 4


_JSON = {
    ("status",): ("status", "streams"),
    ("runs", "list"): ("runs", "runs"),
    ("cursors", "list"): ("cursors", "cursors"),
    ("coverage",): ("coverage", "series"),
    ("quarantine", "list"): ("quarantine", "records"),
    ("doctor",): ("doctor", "findings"),
    ("db", "status"): ("db-status", "revision"),
    ("version",): ("version", "version"),
}


def test_every_read_command_has_json_before_anything_ran(registered: str, tmp_path: Path) -> None:
    for arguments, (schema, key) in _JSON.items():
        document = _json(ingest(registered, *arguments, "--json", folder=tmp_path))
        assert document["schema"] == f"ingest/{schema}/v1"
        assert key in document
    done = ingest(registered, "runs", "show", "last", folder=tmp_path)
    assert (done.returncode, done.stderr) == (4, "ingest: nothing has run yet: see `ingest status`\n")
    assert ingest(registered, "quarantine", "show", "1", folder=tmp_path).returncode == 4
    assert ingest(registered, "cursors", "show", "plain.items", folder=tmp_path).returncode == 4


def test_run_asks_once_says_who_is_missing_and_is_audited(registered: str, database: Database, tmp_path: Path) -> None:
    done = ingest(registered, "run", "plain.items", "--reason", "try", folder=tmp_path)
    assert done.returncode == 0
    assert re.fullmatch(r"plain\.items: asked for \(fire \d+\)\n", done.stdout)
    assert "No planner is alive" in done.stderr
    assert "No executor is alive" in done.stderr
    assert rows(database, "SELECT trigger_type_code, result_code FROM ing_schedule_instance") == [("MANUAL", "FIRED")]
    assert rows(database, "SELECT action, target, reason FROM ing_audit WHERE action = 'run'") == [
        ("run", "plain.items", "try")
    ]


def test_run_is_refused_for_what_is_held_or_disabled(registered: str, database: Database, tmp_path: Path) -> None:
    with database.transaction() as conn:
        conn.execute(
            text("""INSERT INTO ing_hold (scope, kind, provenance_code, reason, held_by)
                    VALUES ('SOURCE', 'MANUAL', 'plain', 'the vendor asked', 'ana')""")
        )
    held = ingest(registered, "run", "plain.items", folder=tmp_path)
    assert (held.returncode, held.stderr) == (6, "ingest: plain.items is held: the vendor asked\n")
    with database.transaction() as conn:
        conn.execute(text("UPDATE reg_prov_endpoint_def SET enabled = false"))
    assert ingest(registered, "run", "plain.items", folder=tmp_path).returncode == 6
    assert scalar(database, "SELECT count(*) FROM ing_schedule_instance") == 0


def test_db_start_and_stop_leave_a_given_server_alone(database_url: str, tmp_path: Path) -> None:
    for verb in ("start", "stop"):
        done = ingest(database_url, "db", verb, folder=tmp_path)
        assert (done.returncode, done.stdout) == (6, "")


def test_db_psql_passes_its_arguments_on(database_url: str, tmp_path: Path) -> None:
    done = ingest(database_url, "db", "psql", "-At", "-c", "SELECT 40 + 2", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, "42\n")


def test_init_writes_a_project_whose_example_is_valid_and_touches_nothing_twice(tmp_path: Path) -> None:
    done = _run("init", "here", folder=tmp_path)
    assert done.returncode == 0
    assert "Next: cd here && ingest db migrate" in done.stderr
    project = tmp_path / "here"
    validated = _run("registry", "validate", folder=project)
    assert validated.returncode == 0, validated.stdout
    assert "0 warnings" in validated.stderr
    (project / "ingest.toml").write_text('home = "mine"\n')
    again = _run("init", folder=project)
    assert (again.returncode, again.stdout) == (0, "")
    assert (project / "ingest.toml").read_text() == 'home = "mine"\n'


def test_doctor_fails_with_the_fix_when_the_database_is_away(tmp_path: Path) -> None:
    done = _run("doctor", folder=tmp_path, INGEST_DATABASE_URL=_AWAY)
    assert done.returncode == 1
    line = next(line for line in done.stdout.splitlines() if line.startswith("fail"))
    assert "start it, or correct INGEST_DATABASE_URL" in line
    assert _run("doctor", folder=tmp_path).returncode == 0  # nothing there yet is a warning, not a failure


def test_a_harvest_can_be_followed_and_looked_at(database: Database, database_url: str, tmp_path: Path) -> None:
    with Simulator(sizes={"plain": 230}) as simulator, crew(database_url, tmp_path) as daemons:
        # The run by hand plans the sliver of time since the schedule's fire: the fault is for the long window alone.
        simulator.add_fault("plain", "bad_record", times=1, match="updated_from=2024-01-01")
        apply_source(database_url, PLAIN.format(url=simulator.url, term="x", columns="{title: text}"), folder=tmp_path)
        daemons.planner()
        daemons.executor(workers=2)
        followed = ingest(database_url, "run", "plain.items", "--follow", folder=tmp_path)
        assert followed.returncode == 0, followed.stderr
        assert followed.stdout.startswith("plain.items: ")
        waited = _json(ingest(database_url, "run", "plain", "--wait", "--json", folder=tmp_path))
        assert waited["ok"] is True
    status = _json(ingest(database_url, "status", "--json", folder=tmp_path))
    assert [(s["name"], s["state"]) for s in status["streams"]] == [("plain.items", "ok")]
    runs = _json(ingest(database_url, "runs", "list", "plain.items", "--json", folder=tmp_path))["runs"]
    assert {run["status"] for run in runs} == {"SUCCEEDED"}
    assert sum(run["inserted"] for run in runs) == 229
    (harvest,) = [str(run["id"]) for run in runs if run["inserted"]]
    shown = ingest(database_url, "runs", "show", harvest, folder=tmp_path)
    assert "fetched = 229 inserted, 1 quarantined" in shown.stdout
    batches = _json(ingest(database_url, "runs", "batches", harvest, "--json", folder=tmp_path))
    assert [batch["batch_no"] for batch in batches["batches"]] == [1, 2, 3, 4, 5]
    coverage = ingest(database_url, "coverage", "plain.items", folder=tmp_path)
    assert "  covered    2024-01-01 .. " in coverage.stdout
    cursor = _json(ingest(database_url, "cursors", "show", "plain.items", "--json", folder=tmp_path))
    assert len(cursor["series"]) == 1
    record = ingest(database_url, "quarantine", "show", "1", folder=tmp_path)
    assert '"ledger_number": 9007199254740993' in record.stdout


def test_check_exits_3_for_a_failed_stream_and_a_follower_exits_1(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    with Simulator(sizes={"plain": 10}) as simulator, crew(database_url, tmp_path) as daemons:
        simulator.add_fault("plain", "404", every=1)
        apply_source(database_url, PLAIN.format(url=simulator.url, term="x", columns="{title: text}"), folder=tmp_path)
        with database.transaction() as conn:  # only what is asked for by hand
            conn.execute(text("UPDATE reg_schedule SET enabled = false"))
        daemons.planner()
        daemons.executor()
        followed = ingest(database_url, "run", "plain.items", "--wait", folder=tmp_path)
    assert followed.returncode == 1
    assert "1 window of 1 failed (Refused: HTTP 404)" in followed.stdout
    checked = ingest(database_url, "status", "--check", folder=tmp_path)
    assert checked.returncode == 3
    assert "! plain.items  Refused: HTTP 404" in checked.stdout
    assert ingest(database_url, "status", folder=tmp_path).returncode == 0
