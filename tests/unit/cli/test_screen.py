"""Output: one JSON shape for every type, colour only where a person looks."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from ingest.cli import screen


@dataclass(frozen=True)
class _Thing:
    at: datetime
    took: timedelta
    where: tuple[Path, ...]


def test_json_names_its_schema_and_writes_times_as_utc(capsys: pytest.CaptureFixture[str]) -> None:
    at = datetime.fromisoformat("2026-11-18T09:00:00+09:00")
    screen.write_json("things", {"things": [_Thing(at, timedelta(minutes=1), (Path("a"),))]})
    assert json.loads(capsys.readouterr().out) == {
        "schema": "ingest/things/v1",
        "things": [{"at": "2026-11-18T00:00:00Z", "took": 60.0, "where": ["a"]}],
    }


def test_piped_output_has_no_colour_and_no_width(capsys: pytest.CaptureFixture[str]) -> None:
    screen.write(screen.paint("failed", "red"))
    screen.write(screen.paint_word("a  failed  b", "failed", "red"))
    assert capsys.readouterr().out == "failed\na  failed  b\n"
    assert screen.width() is None


def test_chat_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    screen.say_next("ingest status")
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "Next: ingest status\n")
