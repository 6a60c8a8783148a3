"""A fire's progress and end in words, and the exit code that goes with them."""

from typing import Any

from ingest.cli.follow import describe_end, describe_progress, exit_code_of
from ingest.store.views_runs import FireView


def _fire(**values: Any) -> FireView:
    zeros = dict.fromkeys(
        ("live", "running", "succeeded", "failed", "pages", "records", "inserted", "updated", "quarantined"), 0
    )
    base: dict[str, Any] = {"id": 1, "source": "a", "endpoint": "b", "result": "PLANNED", "remarks": {}}
    return FireView(**(base | {"slicing": False, "error": None} | zeros | values))


def test_a_fire_is_over_when_planned_sliced_and_without_live_tasks() -> None:
    assert not _fire(result="FIRED").over
    assert not _fire(slicing=True).over
    assert not _fire(live=1).over
    assert _fire(succeeded=3).over
    assert _fire(result="NOTHING").over


def test_a_fire_that_did_its_work_exits_0_and_counts_it() -> None:
    fire = _fire(succeeded=2, pages=5, records=2_400, inserted=2_399, quarantined=1)
    assert describe_end(fire) == "a.b: done, 2 windows, 2,400 records in 5 pages: 2,399 new, 0 changed, 1 quarantined"
    assert exit_code_of(fire) == 0


def test_a_failed_window_exits_1_and_says_why() -> None:
    fire = _fire(succeeded=1, failed=1, error="HTTP 500")
    assert describe_end(fire).startswith("a.b: 1 window of 2 failed (HTTP 500)")
    assert exit_code_of(fire) == 1


def test_nothing_to_fetch_is_not_a_failure() -> None:
    fire = _fire(result="NOTHING", remarks={"nothing": "a.b is covered up to 2026"})
    assert describe_end(fire) == "a.b: nothing to fetch: covered up to 2026"
    assert exit_code_of(fire) == 0


def test_a_spec_that_does_not_compile_exits_2_and_a_hold_exits_6() -> None:
    broken = _fire(result="FAILED", remarks={"errors": ["no path", "no id"]})
    assert describe_end(broken) == "a.b: could not be planned: no path; no id"
    assert exit_code_of(broken) == 2
    held = _fire(result="SKIPPED", remarks={"skipped": "a.b is held: tests"})
    assert describe_end(held) == "a.b: skipped, a.b is held: tests"
    assert exit_code_of(held) == 6


def test_progress_says_who_is_waited_for() -> None:
    assert describe_progress(_fire(result="FIRED"), 0.0) == "a.b  waiting for a planner"
    going = _fire(succeeded=3, live=9, pages=17, records=34_017)
    assert describe_progress(going, 1_210.4) == "a.b  3/12 windows  17 pages  34,017 rec  1,210 rec/s"
