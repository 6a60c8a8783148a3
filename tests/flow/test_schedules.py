"""Schedules changed under a running planner, by the real command: effective at once, kept through a restart (G3)."""

import json
from pathlib import Path
from typing import Any

from ingest.db import Database
from tests.flow.processes import crew, scalar, wait_until
from tests.flow.sources import PLAIN, apply_source, ingest

_SOURCE = PLAIN.format(url="http://127.0.0.1:9", term="x", columns="{title: text}")


def _say(url: str, folder: Path, *arguments: str) -> Any:
    done = ingest(url, "schedules", *arguments, "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_running_planner_follows_every_change_and_a_new_one_finds_them(
    database: Database, database_url: str, tmp_path: Path
) -> None:
    apply_source(database_url, _SOURCE, folder=tmp_path)
    fires = "SELECT count(*) FROM ing_schedule_instance WHERE scheduler_job_id = 'plain.items'"
    with crew(database_url, tmp_path) as daemons:
        planner = daemons.planner()
        wait_until(lambda: scalar(database, fires) == 1, "the first fire")
        assert _say(database_url, tmp_path, "set", "plain.items", "--every", "10m")["interval_seconds"] == 600
        _say(database_url, tmp_path, "next", "plain.items", "--in", "1s", "--reason", "now please")
        wait_until(lambda: scalar(database, fires) == 2, "the fire that was asked for")
        paused = _say(database_url, tmp_path, "pause", "plain.items")
        assert (paused["enabled"], paused["next_run_time"], paused["scheduler_running"]) == (False, None, True)
        planner.stop()
        stored = _say(database_url, tmp_path, "set", "plain.items", "--every", "20m")
        assert (stored["scheduler_running"], stored["message"] is not None) == (False, True)
        daemons.planner()
        shown = _say(database_url, tmp_path, "list")["schedules"][0]
        assert (shown["interval_seconds"], shown["enabled"]) == (1200, False)
        assert _say(database_url, tmp_path, "resume", "plain.items")["next_run_time"] is not None
        assert _say(database_url, tmp_path, "reset", "plain.items")["overrides"] == []
    history = _say(database_url, tmp_path, "history", "plain.items")["fires"]
    assert [fire["trigger"] for fire in history] == ["SCHEDULE", "SCHEDULE"]


def test_bad_values_are_one_line_with_the_range_and_exit_2(database_url: str, tmp_path: Path) -> None:
    apply_source(database_url, _SOURCE, folder=tmp_path)
    for arguments, said in (
        (("set", "plain.items", "--every", "10s"), "300 to 604800 seconds"),
        (("set", "plain.items", "--every", "soon"), "is not a duration"),
        (("next", "plain.items", "--at", "2020-01-01"), "in the future"),
        (("next", "plain.items", "--in", "31d"), "30 days"),
        (("next", "plain.items"), "say when"),
        (("next", "plain.items", "--at", "tomorrow"), "is not a moment"),
    ):
        done = ingest(database_url, "schedules", *arguments, folder=tmp_path)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), done.stderr
        assert said in done.stderr
    assert ingest(database_url, "schedules", "pause", "plain.none", folder=tmp_path).returncode == 4


def test_a_diff_names_what_was_changed_at_run_time_and_an_apply_leaves_it(database_url: str, tmp_path: Path) -> None:
    apply_source(database_url, _SOURCE, folder=tmp_path)
    _say(database_url, tmp_path, "set", "plain.items", "--every", "10m", "--reason", "busy")
    changed = _SOURCE.replace("{every: 1h}", "{every: 2h}")
    path = tmp_path / "plain.yaml"
    path.write_text(changed, encoding="utf-8")
    diff = ingest(database_url, "registry", "diff", str(path), folder=tmp_path)
    assert "plain.items: schedule changed at run time" in diff.stderr
    apply_source(database_url, changed, folder=tmp_path)
    assert _say(database_url, tmp_path, "show", "plain.items")["interval_seconds"] == 600
