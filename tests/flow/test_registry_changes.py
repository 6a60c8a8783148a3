"""Changing a source while it runs: running plans keep their snapshot, the next one uses the change (A6, rule 6)."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.db import Database
from simulator.server import Simulator
from tests.flow.processes import Crew, all_tasks_ended, crew, rows, scalar, wait_until
from tests.flow.sources import PLAIN, apply_source, ingest
from tests.flow.truth import assert_same


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(sizes={"plain": 600}) as it:
        yield it


@pytest.fixture
def team(database: Database, tmp_path: Path) -> Iterator[Crew]:
    with crew(database.url, tmp_path) as it:
        yield it


def _source(simulator: Simulator, *, term: str = "all", columns: str = "{title: $.title}") -> str:
    return PLAIN.format(url=simulator.url, term=term, columns=columns)


def _wait_for_fires(database: Database, count: int) -> None:
    wait_until(
        lambda: (
            scalar(database, "SELECT count(*) FROM ing_schedule_instance WHERE result_code = 'PLANNED'") >= count
            and all_tasks_ended(database)
        ),
        f"{count} fires to be planned and done",
    )


def test_a_change_during_a_run_does_not_touch_it_and_the_next_plan_uses_it(
    database: Database, simulator: Simulator, team: Crew, tmp_path: Path
) -> None:
    simulator.add_fault("plain", "slow", every=1, delay_s=0.8)  # until the change is applied
    apply_source(database.url, _source(simulator), folder=tmp_path)
    team.planner()
    team.executor()
    wait_until(lambda: (scalar(database, "SELECT max(pages_done) FROM ing_task") or 0) >= 2, "two pages")
    said = apply_source(database.url, _source(simulator, columns="{title: $.title, status: $.status}"), folder=tmp_path)
    assert "status" in said
    assert not all_tasks_ended(database)
    simulator.clear_faults()
    _wait_for_fires(database, 1)
    specs = rows(database, "SELECT DISTINCT spec_fingerprint FROM ing_task_run_batch")
    assert len(specs) == 1
    assert scalar(database, "SELECT count(*) FROM data.plain_items WHERE status IS NOT NULL") == 0
    rerun = ingest(database.url, "run", "plain.items", folder=tmp_path)
    assert rerun.returncode == 0, rerun.stderr
    _wait_for_fires(database, 2)
    first, second = rows(database, "SELECT spec_fingerprint FROM ing_plan ORDER BY id")
    assert first != second


def test_a_changed_search_term_starts_with_empty_coverage_and_apply_says_so(
    database: Database, simulator: Simulator, team: Crew, tmp_path: Path
) -> None:
    apply_source(database.url, _source(simulator), folder=tmp_path)
    team.planner()
    team.executor()
    _wait_for_fires(database, 1)
    assert_same(database, simulator, "plain", "plain_items")
    said = apply_source(database.url, _source(simulator, term="other"), folder=tmp_path)
    assert "coverage" in said
    assert "no longer applies" in said
    assert ingest(database.url, "run", "plain.items", folder=tmp_path).returncode == 0
    _wait_for_fires(database, 2)
    assert scalar(database, "SELECT count(*) FROM ing_series") == 2
    assert scalar(database, "SELECT count(*) FROM ing_coverage") == 2
    plans = rows(database, "SELECT window_from, spec_fingerprint FROM ing_plan ORDER BY id")
    assert plans[0][0] == plans[1][0]  # from the anchor again
    assert plans[0][1] != plans[1][1]


def test_a_changed_column_keeps_coverage(database: Database, simulator: Simulator, team: Crew, tmp_path: Path) -> None:
    apply_source(database.url, _source(simulator), folder=tmp_path)
    team.planner()
    team.executor()
    _wait_for_fires(database, 1)
    said = apply_source(database.url, _source(simulator, columns="{title: $.title, amount: numeric}"), folder=tmp_path)
    assert "no longer applies" not in said
    assert ingest(database.url, "run", "plain.items", folder=tmp_path).returncode == 0
    done = "SELECT count(*) FROM ing_schedule_instance WHERE result_code <> 'FIRED'"
    wait_until(lambda: scalar(database, done) == 2, "the second fire")
    assert scalar(database, "SELECT count(*) FROM ing_series") == 1
    # only the stretch since the first fire is new, not the whole history
    windows = rows(database, "SELECT window_from FROM ing_plan ORDER BY id")
    assert len(windows) == 1 or windows[1][0] > windows[0][0]


def test_a_source_file_that_does_not_compile_makes_no_plan_and_says_why(
    database: Database, simulator: Simulator, team: Crew, tmp_path: Path
) -> None:
    apply_source(database.url, _source(simulator), folder=tmp_path)
    with database.transaction() as conn:  # someone edited the registry by hand: compile is the second line of defence
        conn.exec_driver_sql("UPDATE reg_prov_pagination_cfg SET pagination_type_code = 'SIDEWAYS'")
    team.planner()
    failed = "SELECT record_remarks FROM ing_schedule_instance WHERE result_code = 'FAILED'"
    remarks = wait_until(lambda: scalar(database, failed), "the fire to fail")
    assert "SIDEWAYS" in str(remarks["errors"])
    assert scalar(database, "SELECT count(*) FROM ing_plan") == 0
