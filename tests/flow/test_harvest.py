"""Harvesting a source that misbehaves, by a real executor over real sockets (B3, B4, B12, E4-E7, E9)."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest.db import Database
from ingest.settings import Settings
from ingest.spec.snapshot import Budget, Http, IdPart, Mapping, Moment, Pagination, Rate, Response, Window
from simulator.server import Simulator
from tests.factories import START, crossref_snapshot, make_snapshot, plain_snapshot, queue_tasks
from tests.flow.processes import Crew, all_tasks_ended, crew, rows, scalar, wait_until
from tests.flow.truth import assert_ledger_sound, assert_same


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(sizes={"plain": 600, "crossref": 1200, "github": 250, "pubmed": 400}) as it:
        yield it


@pytest.fixture
def team(database: Database, tmp_path: Path) -> Iterator[Crew]:
    with crew(database.url, tmp_path) as it:
        yield it


def _harvest(database: Database, settings: Settings, team: Crew, *snapshots: Any, workers: int = 2) -> None:
    queue_tasks(database, settings, *snapshots)
    executor = team.executor(workers=workers)
    wait_until(lambda: all_tasks_ended(database), "every task to end")
    assert executor.stop() == 0


def _statuses(database: Database) -> set[str]:
    return {status for (status,) in rows(database, "SELECT DISTINCT status_code FROM ing_task")}


def test_every_pagination_kind_harvests_exactly_the_truth(
    database: Database, settings: Settings, team: Crew, simulator: Simulator
) -> None:
    url, wide = simulator.url, 86400.0 * 5000
    offset = make_snapshot(
        source="pubmed",
        endpoint="search",
        http=Http(
            method="GET",
            base_url=f"{url}/pubmed",
            path="/esearch",
            query={
                "mindate": "{{ window.from }}",
                "maxdate": "{{ window.to }}",
                "retstart": "{{ page.offset }}",
                "retmax": "{{ page.size }}",
            },
        ),
        pagination=Pagination(kind="OFFSET", size=70, stop=("total_reached",)),
        window=Window(
            filter="server", field="mdat", start=START, ends="inclusive", precision="day", format="%Y/%m/%d", max_s=wide
        ),
        response=Response(items="$.esearchresult.items", total="$.esearchresult.count"),
        mapping=Mapping(
            dataset="pubmed_search",
            identity=(IdPart(column="provider_id", path="$.uid"),),
            updated_at=Moment(path="$.lastmodified", format="%Y/%m/%d %H:%M"),
        ),
    )
    link = make_snapshot(
        source="github",
        endpoint="issues",
        http=Http(
            method="GET",
            base_url=f"{url}/github",
            path="/repos/acme/widgets/issues",
            query={"per_page": "{{ page.size }}"},
        ),
        pagination=Pagination(kind="URL", size=60, next_in="link_header", stop=("no_next",)),
        window=Window(filter="none"),
        response=Response(items="$"),
    )
    _harvest(database, settings, team, crossref_snapshot(url, max_days=20), plain_snapshot(url), offset, link)
    assert _statuses(database) == {"SUCCEEDED"}
    assert_ledger_sound(database)
    assert_same(database, simulator, "crossref", "crossref_works")
    assert_same(database, simulator, "plain", "plain_items")
    assert_same(database, simulator, "pubmed", "pubmed_search")
    assert_same(database, simulator, "github", "github_issues")
    assert scalar(database, "SELECT count(*) FROM ing_quarantine") == 0


@pytest.mark.parametrize(
    "fault",
    [
        {"kind": "429", "retry_after": 1, "times": 2},
        {"kind": "429", "times": 3},
        {"kind": "503", "every": 4, "times": 6},
        {"kind": "500", "times": 2, "after": 2},
        {"kind": "truncate", "times": 2, "after": 1},
        {"kind": "disconnect", "times": 2},
        {"kind": "slow", "delay_s": 0.4, "times": 2},
    ],
    ids=lambda fault: "-".join(str(value) for value in fault.values()),
)
def test_a_passing_fault_is_retried_and_nothing_is_lost(
    database: Database, settings: Settings, team: Crew, simulator: Simulator, fault: dict[str, Any]
) -> None:
    simulator.add_fault("plain", **fault)
    # one worker: what another has in flight when a Retry-After is stored cannot be recalled
    _harvest(database, settings, team, plain_snapshot(simulator.url, max_days=30), workers=1)
    assert _statuses(database) == {"SUCCEEDED"}
    assert_same(database, simulator, "plain", "plain_items")
    assert_ledger_sound(database)
    assert simulator.requests("plain")["early"] == 0  # nothing was sent inside a Retry-After


@pytest.mark.parametrize(
    ("fault", "level", "text"),
    [
        ({"kind": "404"}, "L2", "HTTP 404"),
        ({"kind": "401"}, "L4", "HTTP 401"),
        ({"kind": "html_200"}, "L2", "not JSON"),
        ({"kind": "invalid_json"}, "L2", "not JSON"),
        ({"kind": "duplicate_page"}, "L2", "repeats"),
    ],
    ids=lambda value: value["kind"] if isinstance(value, dict) else "",
)
def test_a_final_fault_fails_the_batch_with_its_evidence_and_leaves_the_window_a_gap(
    database: Database,
    settings: Settings,
    team: Crew,
    simulator: Simulator,
    fault: dict[str, Any],
    level: str,
    text: str,
) -> None:
    simulator.add_fault("plain", **fault, after=2, times=1)
    snapshot = plain_snapshot(simulator.url, size=50, max_days=5000)
    _harvest(database, settings, team, snapshot, workers=1)
    ((status, error),) = rows(database, "SELECT status_code, error FROM ing_task")
    assert (status, text in error) == ("PARTIAL", True)
    ((batch, stats, request),) = rows(
        database, "SELECT batch_no, stats, request_digest FROM ing_task_run_batch WHERE status_code = 'FAILED'"
    )
    assert batch == scalar(database, "SELECT max(batch_no) FROM ing_task_run_batch")
    assert stats["level"] == level
    assert request["url"].endswith("/plain/items")
    assert scalar(database, "SELECT count(*) FROM ing_coverage") == 0
    queue_tasks(database, settings, snapshot)  # the next fire plans the gap again
    executor = team.executor()
    wait_until(lambda: all_tasks_ended(database), "the second try")
    executor.stop()
    assert_same(database, simulator, "plain", "plain_items")
    assert_ledger_sound(database)


def test_a_bad_record_is_quarantined_and_never_blocks_its_page(
    database: Database, settings: Settings, team: Crew, simulator: Simulator
) -> None:
    simulator.add_fault("plain", "bad_record", record=3, spoil="id", times=1)
    simulator.add_fault("plain", "bad_record", record=5, spoil="updated_at", times=1)
    _harvest(database, settings, team, plain_snapshot(simulator.url, max_days=5000), workers=1)
    assert scalar(database, "SELECT count(*) FROM data.plain_items") == 598
    found = rows(database, "SELECT field_path, item_no, record FROM ing_quarantine ORDER BY id")
    assert [row[:2] for row in found] == [("$.id", 2), ("$.updated_at", 4)]
    assert all('"title"' in row[2] for row in found)
    assert _statuses(database) == {"SUCCEEDED"}
    assert scalar(database, "SELECT count(*) FROM ing_coverage") == 1


def test_too_many_bad_records_end_the_walk_without_covering(
    database: Database, settings: Settings, team: Crew, simulator: Simulator
) -> None:
    simulator.add_fault("plain", "bad_record", record_every=4, spoil="id", every=1)
    _harvest(database, settings, team, plain_snapshot(simulator.url, max_days=5000), workers=1)
    assert _statuses(database) == {"PARTIAL"}
    assert "quarantined" in scalar(database, "SELECT error FROM ing_task")
    assert scalar(database, "SELECT count(*) FROM ing_coverage") == 0


def test_a_killed_executor_costs_at_most_one_page_and_the_next_lease_goes_on_after_it(
    database: Database, settings: Settings, team: Crew, simulator: Simulator
) -> None:
    simulator.add_fault("plain", "slow", every=1, delay_s=0.05)
    queue_tasks(database, settings, plain_snapshot(simulator.url, size=20, max_days=5000))
    first = team.executor()
    wait_until(lambda: (scalar(database, "SELECT pages_done FROM ing_task") or 0) >= 5, "five pages")
    first.kill()
    done = scalar(database, "SELECT pages_done FROM ing_task")
    team.executor()
    wait_until(lambda: all_tasks_ended(database), "the task to be finished by another")
    assert_same(database, simulator, "plain", "plain_items")
    assert_ledger_sound(database)
    resumed = rows(database, "SELECT first_page, status_code FROM ing_task_run ORDER BY id")
    assert resumed == [(0, "FAILED"), (done, "SUCCEEDED")]
    # 31 pages; a crash repeats the page in flight and at most the one being fetched ahead of it
    assert simulator.requests("plain")["count"] <= 31 + 2


def test_a_graceful_stop_finishes_the_page_and_gives_the_task_back_at_once(
    database: Database, settings: Settings, team: Crew, simulator: Simulator
) -> None:
    simulator.add_fault("plain", "slow", every=1, delay_s=0.05)
    queue_tasks(database, settings, plain_snapshot(simulator.url, size=20, max_days=5000))
    executor = team.executor(INGEST_LEASE_SECONDS="600")
    wait_until(lambda: (scalar(database, "SELECT pages_done FROM ing_task") or 0) >= 3, "three pages")
    assert executor.stop() == 0
    status, owner, checkpoint = rows(database, "SELECT status_code, lease_owner, checkpoint FROM ing_task")[0]
    assert (status, owner) == ("QUEUED", None)
    assert checkpoint["next"]["page"] == scalar(database, "SELECT pages_done + 1 FROM ing_task")
    assert rows(database, "SELECT status_code, error FROM ing_task_run") == [("PARTIAL", "graceful stop")]
    team.executor()
    wait_until(lambda: all_tasks_ended(database), "the rest")
    assert_same(database, simulator, "plain", "plain_items")
    assert_ledger_sound(database)


def test_records_that_change_while_being_read_arrive_in_their_newest_version(
    database: Database, settings: Settings, team: Crew, simulator: Simulator
) -> None:
    simulator.mutate_every("plain", 3, count=5, at="now")
    snapshot = plain_snapshot(simulator.url, size=50, max_days=5000)
    _harvest(database, settings, team, snapshot)
    simulator.mutate_every("plain", 0)
    lag = plain_snapshot(simulator.url, size=50, max_days=5000, window=Window(filter="none"))
    _harvest(database, settings, team, lag)  # a whole walk sees what changed after the window's end
    assert_same(database, simulator, "plain", "plain_items")


def test_the_gate_is_shared_by_all_processes_and_holds_its_window(
    database: Database, settings: Settings, team: Crew, simulator: Simulator
) -> None:
    simulator.limit("plain", (20, 2.0))
    rate = Rate(rate_per_s=None, windows=({"limit": 20, "seconds": 2.0},))  # type: ignore[arg-type]
    snapshot = plain_snapshot(simulator.url, size=10, max_days=7, rate=rate, budget=Budget(concurrency=6))
    queue_tasks(database, settings, snapshot)
    for _ in range(3):
        team.executor(workers=2)
    wait_until(lambda: scalar(database, "SELECT count(*) FROM ing_task_run_batch") >= 60, "sixty pages", 90)
    seen = simulator.requests("plain", window_s=2.0)
    assert seen["worst_window"] <= 20
    assert seen["violations"] == 0


def test_sigint_twice_ends_an_executor_at_once(
    database: Database, settings: Settings, team: Crew, simulator: Simulator
) -> None:
    simulator.add_fault("plain", "slow", every=1, delay_s=20)
    queue_tasks(database, settings, plain_snapshot(simulator.url, max_days=5000))
    executor = team.executor()
    wait_until(lambda: simulator.requests("plain")["in_flight"], "a request in flight")
    executor.signal(signal.SIGINT)
    executor.signal(signal.SIGINT)
    assert executor.process.wait(10) in (130, 0)


def test_a_database_that_drops_its_connections_fails_no_task(
    database: Database, settings: Settings, team: Crew, simulator: Simulator
) -> None:
    """A failover of a second is not the source's fault: tasks go on at their checkpoints."""
    simulator.add_fault("plain", "slow", every=1, delay_s=0.02)
    queue_tasks(database, settings, plain_snapshot(simulator.url, size=10, max_days=20, budget=Budget(concurrency=4)))
    team.executor(workers=4)
    for pages in (3, 8, 13, 18):
        wait_until(lambda n=pages: scalar(database, "SELECT count(*) FROM ing_task_run_batch") >= n, f"{pages} pages")
        scalar(
            database,
            """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
                WHERE application_name = 'ingest-executor' AND datname = current_database()""",
        )
    wait_until(lambda: all_tasks_ended(database), "every task to end", 90)
    assert _statuses(database) == {"SUCCEEDED"}
    assert_same(database, simulator, "plain", "plain_items")
