"""A stream's state is its last outcome; what it does now is another mark, and neither hides the other."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ingest.cli.status import describe, describe_activity, describe_next
from ingest.store.views import Queue, Stream

NOW = datetime(2026, 11, 18, 4, 0, tzinfo=UTC)
_WINDOW = {"filter": "server", "field": "updated", "precision": "second", "safety_lag_s": 600.0}


def _stream(**values: Any) -> Stream:
    base: dict[str, Any] = {
        "source": "crossref",
        "endpoint": "works",
        "enabled": True,
        "now": NOW,
        "last_ok_at": NOW - timedelta(minutes=2),
        "failed_at": None,
        "error": None,
        "running": 0,
        "page": 0,
        "records": 0,
        "queued": 0,
        "due_at": None,
        "held": None,
        "watermark": NOW - timedelta(minutes=12),
        "next_fire_at": NOW + timedelta(minutes=58),
        "scheduled": True,
        "every_s": 3600.0,
        "window": _WINDOW,
    }
    return Stream(**(base | values))


_QUEUE = Queue(ready=0, waiting=0, running=0, now=NOW, limit=100, processes=())


def test_a_running_stream_that_never_succeeded_is_not_ok() -> None:
    stream = _stream(last_ok_at=None, watermark=None, running=1, page=17, records=34_017)
    assert stream.state == "never"
    assert describe_activity(stream) == "running b17 34k rec"


def test_a_failed_window_shows_while_the_stream_runs() -> None:
    stream = _stream(error="HTTP 500", failed_at=NOW, running=2, page=3, records=900, queued=4)
    assert stream.state == "failed"
    assert describe_activity(stream) == "running 2: b3 900 rec, 4 queued"


@pytest.mark.parametrize(("behind", "state"), [(timedelta(hours=2, minutes=11), "ok"), (timedelta(hours=3), "stale")])
def test_stale_is_two_intervals_the_safety_lag_and_a_unit(behind: timedelta, state: str) -> None:
    assert _stream(watermark=NOW - behind).state == state


def test_a_source_that_knows_days_only_is_not_stale_for_being_a_day_behind() -> None:
    window = _WINDOW | {"precision": "day"}
    assert _stream(watermark=NOW - timedelta(hours=25), window=window).state == "ok"
    assert _stream(watermark=NOW - timedelta(hours=50), window=window).state == "stale"


def test_without_a_schedule_nothing_is_late() -> None:
    stream = _stream(every_s=None, scheduled=False, next_fire_at=None, watermark=NOW - timedelta(days=9))
    assert stream.state == "ok"
    assert describe_next(stream) == "by hand"


def test_activity_tells_waiting_from_queued_and_held_from_idle() -> None:
    assert describe_activity(_stream()) == "idle"
    assert describe_activity(_stream(queued=3, due_at=NOW - timedelta(seconds=1))) == "queued 3"
    assert describe_activity(_stream(queued=3, due_at=NOW + timedelta(seconds=41))) == "waiting 41s, 3 queued"
    assert describe_activity(_stream(held="vendor asked us to stop")) == "held: vendor asked us to stop"
    assert describe_activity(_stream(enabled=False)) == "disabled"


def test_the_next_run_of_a_held_stream_is_no_promise() -> None:
    assert describe_next(_stream(held="tests")) == "held, would run in 58m"
    assert describe_next(_stream(enabled=False)) == "disabled"


def test_the_summary_says_that_the_planner_is_silent() -> None:
    lines = describe([_stream()], _QUEUE, terminal=None)
    assert lines[0].split() == ["SOURCE.STREAM", "STATE", "LAST", "OK", "NOW", "WATERMARK", "LAG", "NEXT"]
    assert lines[1].split()[:2] == ["crossref.works", "ok"]
    assert lines[2].endswith("Alive: no executor, planner SILENT.")


def test_troubles_come_with_the_command_that_shows_them() -> None:
    lines = describe([_stream(error="HTTP 429 from here", failed_at=NOW)], _QUEUE, terminal=None)
    assert lines[-1] == "! crossref.works  HTTP 429 from here (just now)  ->  ingest runs list crossref.works"
