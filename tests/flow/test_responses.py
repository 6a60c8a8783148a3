"""Response rules through a real executor over real sockets, to the ledger and the coverage (B13, DESIGN rule 7)."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from executor.keeper import Held
from executor.settle import settle_error
from ingest.db import Database
from ingest.errors import Throttled
from ingest.settings import Settings
from ingest.spec.rules import BodyTest, Rule
from ingest.spec.snapshot import Http, Pagination, Response
from ingest.store.leases import Lease
from tests.factories import lease_all, make_page, make_record, make_snapshot, queue_tasks, start
from tests.flow.processes import Crew, all_tasks_ended, crew, rows, scalar, wait_until
from tests.unit.executor.servers import answer, serve
from tests.unit.executor.test_fetch import in_turn

_PAGE = answer(json.dumps({"data": [{"id": "1", "updated_at": "2024-01-01T00:00:00Z", "title": "a"}]}).encode())


@pytest.fixture
def team(database: Database, tmp_path: Path) -> Iterator[Crew]:
    with crew(database.url, tmp_path) as it:
        yield it


def _harvest(database: Database, settings: Settings, team: Crew, rule: Rule, last: bytes) -> tuple[Any, ...]:
    """Harvest a page and what comes after it; return the task's status and error."""
    with serve(in_turn(_PAGE, last)) as server:
        snapshot = make_snapshot(
            http=Http(method="GET", base_url=server.url, path="/items", query={"page": "{{ page.number }}"}),
            pagination=Pagination(kind="PAGE", size=1, base=1, stop=("empty_page",)),
            response=Response(items="$.data", rules=(rule,)),
        )
        snapshot = snapshot.model_copy(update={"window": snapshot.window.model_copy(update={"max_s": 86400.0 * 9999})})
        queue_tasks(database, settings, snapshot)
        executor = team.executor(workers=1)
        wait_until(lambda: all_tasks_ended(database), "the task to end")
        assert executor.stop() == 0
    assert scalar(database, "SELECT count(*) FROM data.plain_items") == 1
    ((status, error),) = rows(database, "SELECT status_code, error FROM ing_task")
    return status, error


def test_an_ignored_answer_is_counted_and_ends_the_walk_without_coverage(
    database: Database, settings: Settings, team: Crew
) -> None:
    rule = Rule(status=("410",), then="empty", because="taken away")
    status, error = _harvest(database, settings, team, rule, answer(status=410))
    assert (status, error) == ("PARTIAL", "response rule 1 (empty): taken away")
    assert scalar(database, "SELECT count(*) FROM ing_coverage") == 0
    ((stats, response),) = rows(
        database, "SELECT stats, response_digest FROM ing_task_run_batch ORDER BY id DESC LIMIT 1"
    )
    assert (stats["ignored"], stats["rules"], stats["itemsCount"]) == (1, ["response rule 1 (empty): taken away"], 0)
    assert response["status"] == 410
    assert scalar(database, "SELECT stats ->> 'ignored' FROM ing_task_run") == "1"


@pytest.mark.parametrize(
    "rule",
    [Rule(status=("404",), then="end"), Rule(status=("404",), then="empty", covers=True)],
    ids=["end", "empty-that-covers"],
)
def test_a_rule_that_declares_the_end_covers_the_window(
    database: Database, settings: Settings, team: Crew, rule: Rule
) -> None:
    status, error = _harvest(database, settings, team, rule, answer(b"no such page", status=404))
    assert (status, error) == ("SUCCEEDED", None)
    assert scalar(database, "SELECT count(*) FROM ing_coverage") == 1


def test_a_fatal_answer_inside_200_fails_the_page_at_level_4_with_its_reason(
    database: Database, settings: Settings, team: Crew
) -> None:
    rule = Rule(body=BodyTest(path="$.code", equals=2002), then="fatal", because="no right to it")
    status, error = _harvest(database, settings, team, rule, answer(b'{"code": 2002, "data": []}'))
    assert (status, error) == ("PARTIAL", "Closed: HTTP 200: response rule 1 (fatal): no right to it")
    ((stats,),) = rows(database, "SELECT stats FROM ing_task_run_batch WHERE status_code = 'FAILED'")
    assert (stats["level"], stats["rules"]) == ("L4", ["response rule 1 (fatal): no right to it"])
    assert scalar(database, "SELECT count(*) FROM ing_coverage") == 0


def test_a_source_that_only_ever_says_later_fails_the_task_at_last_and_a_page_begins_the_count_anew(
    database: Database, settings: Settings
) -> None:
    from datetime import timedelta

    from ingest.store.pages import write_page
    from ingest.store.rows import DatasetWriter

    snapshot = make_snapshot()
    snapshot = snapshot.model_copy(update={"window": snapshot.window.model_copy(update={"max_s": 86400.0 * 9999})})
    queue_tasks(database, settings, snapshot)

    def send_away(times: int, *, page: bool = False) -> None:
        for _ in range(times):
            (lease,) = wait_until(lambda: lease_all(database), "the task to be due")
            run = start(database, lease)
            if page:
                with database.transaction() as conn:
                    write_page(
                        conn, lease, run, make_page([make_record("a")]), DatasetWriter(snapshot),
                        task_page=1, ttl=timedelta(seconds=30),
                    )  # fmt: skip
            _settle(database, lease, run)

    send_away(11)
    assert scalar(database, "SELECT status_code FROM ing_task") == "QUEUED"
    send_away(
        1, page=True
    )  # its twelfth, but it brought a page: the run began before it, and the count is of later ones
    send_away(11)
    assert scalar(database, "SELECT status_code FROM ing_task") == "QUEUED"
    send_away(1)
    ((status, error),) = rows(database, "SELECT status_code, error FROM ing_task")
    assert status == "PARTIAL"
    assert "throttled by the source: later; 12 times in a row without a page" in error
    assert scalar(database, "SELECT count(*) FROM ing_task_run_batch WHERE status_code = 'FAILED'") == 1
    assert scalar(database, "SELECT count(*) FROM ing_coverage") == 0


def _settle(database: Database, lease: Lease, run: Any) -> None:
    held = Held(lease, 0.0)
    settle_error(database, held, run, Throttled("throttled by the source: later", wait_seconds=0.0), pages=1)
