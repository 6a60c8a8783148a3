"""`ingest registry` as a person or a script uses it: data on stdout, chat on stderr, exit codes that mean something."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ingest.cli.registry import app
from ingest.errors import DatabaseAway, NotFound
from tests.unit.registry.writing import PLAIN, change


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: str) -> Path:
    """A working directory with one valid source in `sources`, and the test's database in the settings."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("INGEST_DATABASE_URL", database_url)
    monkeypatch.setenv("INGEST_ACTOR", "ana")
    (tmp_path / "sources").mkdir()
    (tmp_path / "sources" / "plain.yaml").write_text(PLAIN)
    return tmp_path


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_validate_needs_no_database(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INGEST_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    result = _run("validate")
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("0 errors, 0 warnings in 1 file.")


def test_validate_prints_every_problem_and_ends_with_2(folder: Path) -> None:
    (folder / "sources" / "plain.yaml").write_text(change(PLAIN, ("rate: 10/s", "rate: x"), ("schedule:", "shedule:")))
    result = _run("validate")
    assert result.exit_code == 2
    assert "sources/plain.yaml:4:7: error: rate: 'x' is not a rate" in result.stdout
    assert "did you mean 'schedule'?" in result.stdout
    assert result.stderr.startswith("2 errors, 0 warnings in 1 file.")
    data = json.loads(_run("validate", "--json").stdout)
    assert data["schema"] == "ingest/problems/v1"
    assert [problem["line"] for problem in data["problems"]] == [4, 5]


def test_diff_ends_with_3_only_when_asked_and_different(folder: Path) -> None:
    assert _run("diff").exit_code == 0
    assert _run("diff", "--exit-code").exit_code == 3
    assert _run("apply", "--reason", "first").exit_code == 0
    assert _run("diff", "--exit-code").exit_code == 0


def test_apply_tells_what_it_changed_and_the_second_time_nothing(folder: Path) -> None:
    first = _run("apply")
    assert "plain  new  revision 0 -> 1" in first.stdout
    assert 'CREATE TABLE data."plain_items"' in first.stdout
    (folder / "sources" / "plain.yaml").write_text(change(PLAIN, ("max: 1d", "max: 6h")))
    second = _run("apply", "--json")
    changes = json.loads(second.stdout)["sources"][0]["endpoints"][0]["changes"]
    assert changes == [{"path": "endpoints.items.window.max", "old": "1d", "new": "6h"}]
    third = _run("apply")
    assert third.stdout == "plain  unchanged (revision 2)\n"
    assert "Applied 0 sources, 1 unchanged." in third.stderr


def test_a_dry_run_writes_nothing(folder: Path) -> None:
    assert "Would apply 1 source" in _run("apply", "--dry-run").stderr
    assert "No endpoint is declared yet" in _run("show").stderr


def test_apply_of_a_wrong_file_applies_nothing_and_ends_with_2(folder: Path) -> None:
    (folder / "sources" / "other.yaml").write_text(change(PLAIN, ("source: plain", "source: Other")))
    result = _run("apply")
    assert result.exit_code == 2
    assert "Nothing was applied." in result.stderr
    assert "No endpoint is declared yet" in _run("show").stderr


def test_show_prints_values_origins_degradations_and_hashes(folder: Path) -> None:
    _run("apply")
    result = _run("show", "plain.items")
    lines = [line.split() for line in result.stdout.splitlines()]
    assert ["window.max_s", "1d", "endpoint", "window_offset_cfg"] in lines
    assert ["retry.max_attempts", "5", "platform"] in lines
    for name in ("spec_fingerprint", "expr_proto_hash", "selection_hash"):
        assert any(line[:1] == [name] and line[1].startswith("h1:") for line in lines)
    assert "degradation: hasNextByPageSize" in result.stdout
    data = json.loads(_run("show", "plain.items", "--json").stdout)
    assert data["spec"]["pagination"]["size"] == 100
    assert data["origins"]["pagination.size"] == "endpoint pagination_cfg"
    assert "plain.items" in _run("show").stdout


def test_show_of_an_unknown_endpoint_is_not_found_with_what_was_meant(folder: Path) -> None:
    _run("apply")
    error = _run("show", "plain.itmes").exception
    assert isinstance(error, NotFound)
    assert (error.exit_code, str(error)) == (4, "no endpoint 'plain.itmes' - did you mean 'plain.items'?")


def test_history_lists_applies_and_prints_the_file_of_each(folder: Path) -> None:
    _run("apply", "--reason", "the first")
    (folder / "sources" / "plain.yaml").write_text(change(PLAIN, ("max: 1d", "max: 6h")))
    _run("apply", "--reason", "narrower")
    listed = _run("history", "plain").stdout.splitlines()
    assert [line.split()[0] for line in listed[1:]] == ["2", "1"]
    assert "ana" in listed[1]
    assert "narrower" in listed[1]
    assert _run("history", "plain", "--revision", "1").stdout == PLAIN
    assert [r["revision"] for r in json.loads(_run("history", "plain", "--json").stdout)["revisions"]] == [2, 1]
    assert isinstance(_run("history", "nobody").exception, NotFound)
    assert isinstance(_run("history", "plain", "--revision", "9").exception, NotFound)


def test_history_shows_what_each_apply_changed(folder: Path) -> None:
    _run("apply", "--reason", "the first")
    (folder / "sources" / "plain.yaml").write_text(change(PLAIN, ("max: 1d", "max: 6h")))
    _run("apply", "--reason", "narrower")
    first, changed, *_ = _run("history", "plain", "--diff").stdout.splitlines()
    assert first.startswith("revision 2 ")
    assert first.endswith("  ana  narrower")
    assert changed == "  ~ endpoints.items.window.max  1d -> 6h"


def test_rollback_applies_an_earlier_revision_as_a_new_one(folder: Path) -> None:
    _run("apply")
    before = json.loads(_run("show", "plain.items", "--json").stdout)
    file = folder / "sources" / "plain.yaml"
    file.write_text(change(PLAIN, ("max: 1d", "max: 6h")) + "      more: {path: $.more, type: text}\n")
    assert _run("apply").exit_code == 0
    assert "Would roll plain back to revision 1." in _run("rollback", "plain", "--to", "1", "--dry-run").stderr
    assert json.loads(_run("show", "plain.items", "--json").stdout) != before
    done = _run("rollback", "plain", "--to", "1", "--reason", "too narrow")
    assert done.exit_code == 0, done.output
    assert "plain  changed  revision 2 -> 3" in done.stdout
    after = json.loads(_run("show", "plain.items", "--json").stdout)
    assert after["spec_fingerprint"] == before["spec_fingerprint"]
    assert after["spec"]["revision"] == 3
    assert _run("history", "plain", "--revision", "3").stdout == PLAIN
    assert "rollback to revision 1: too narrow" in _run("history", "plain").stdout
    assert "already is" in _run("rollback", "plain", "--to", "1").stderr
    missing = _run("rollback", "plain", "--to", "9").exception
    assert isinstance(missing, NotFound)
    assert str(missing) == "plain has no revision 9: the newest is 3"


def test_rollback_restores_the_values_the_environment_had_then(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "sources" / "plain.yaml").write_text(change(PLAIN, ("term: cats", 'term: "${SEARCH}"')))
    monkeypatch.setenv("SEARCH", "cats")
    _run("apply")
    monkeypatch.setenv("SEARCH", "dogs")
    _run("apply")
    monkeypatch.delenv("SEARCH")
    assert _run("rollback", "plain", "--to", "1").exit_code == 0
    assert json.loads(_run("show", "plain.items", "--json").stdout)["spec"]["expr"]["vars"]["term"] == "cats"


def test_a_database_that_is_away_has_its_own_exit_code(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INGEST_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/none")
    error = _run("diff").exception
    assert isinstance(error, DatabaseAway)
    assert error.exit_code == 5


def test_schema_can_be_printed_or_written(folder: Path) -> None:
    printed = json.loads(_run("schema").stdout)
    assert _run("schema", "--out", "deep/source.schema.json").exit_code == 0
    assert json.loads((folder / "deep" / "source.schema.json").read_text()) == printed
    assert "endpoints" in printed["properties"]
