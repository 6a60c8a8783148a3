"""One series per partition: listed values and rows of another dataset, planned and harvested by the real parts (D9)."""

import json
from collections.abc import Iterator
from pathlib import Path
from socket import socket
from threading import Event
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from ingest.db import Database
from ingest.settings import Settings
from planner.tick import Planner
from registry.apply import apply
from registry.load import compile_endpoint
from tests.factories import lease_all, make_planner, request_run
from tests.flow.processes import Crew, all_tasks_ended, crew, rows, wait_until
from tests.howto import read_howto
from tests.unit.executor.servers import Server, answer, serve
from tests.unit.registry.writing import change, draft_of

_MOMENT = "2024-02-01T00:00:00Z"


class World:
    """What the stand-in serves: repositories with issues, and what was asked."""

    def __init__(self) -> None:
        self.repos: dict[str, dict[str, Any]] = {
            name: {"full_name": name, "updated_at": _MOMENT, "archived": name == "acme/old"}
            for name in ("acme/gears", "acme/old", "acme/widgets")
        }
        self.asked: list[str] = []

    def __call__(self, connection: socket, head: bytes, _stop: Event) -> None:
        target = urlsplit(head.split(b" ")[1].decode())
        self.asked.append(unquote(target.path))
        connection.sendall(answer(json.dumps({"data": self._items(unquote(target.path), target.query)}).encode()))

    def _items(self, path: str, query: str) -> list[dict[str, Any]]:
        if path == "/candles":
            asked = {name: values[0] for name, values in parse_qs(query).items()}
            close = {"BTC/USDT": 1, "ETH/USDT": 2}[asked["symbol"]] * {"1m": 10, "1h": 100}[asked["interval"]]
            return [{"open_time": _MOMENT, "close": close}]
        if path == "/repos":
            return list(self.repos.values())
        owner_and_name = "/".join(path.split("/")[2:4])
        if path.endswith("/issues"):
            return [{"number": n, "updated_at": _MOMENT} for n in (1, 2)]
        return [{"id": f"{owner_and_name}#{path.split('/')[5]}", "updated_at": _MOMENT}]


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def server(world: World) -> Iterator[Server]:
    with serve(world) as it:
        yield it


@pytest.fixture
def team(database: Database, tmp_path: Path) -> Iterator[Crew]:
    with crew(database.url, tmp_path) as it:
        yield it


def _apply(database: Database, settings: Settings, text: str) -> Any:
    draft = draft_of(text, open_origins=settings.open_origins)
    assert not draft.problems, [str(problem) for problem in draft.problems]
    apply(database, [draft], actor="test", reason="")
    return {name: compiled.snapshot for name, compiled in draft.compiled.items()}


def _howto(server: Server, source: str) -> str:
    return change(read_howto("partitions", source, server.url), ("rate: 10/s", "rate: 500/s"), ("schedule:", "#"))


def _harvest(database: Database, settings: Settings, team: Crew, snapshot: Any) -> None:
    request_run(database, snapshot)
    done = Planner(database, settings, compile_endpoint).tick()
    assert done.problems == []
    executor = team.executor(workers=2)
    wait_until(lambda: all_tasks_ended(database), "every task to end")
    assert executor.stop() == 0


def test_each_combination_of_listed_values_is_a_series_with_its_own_coverage_and_records(
    database: Database, settings: Settings, team: Crew, server: Server
) -> None:
    snapshots = _apply(database, settings, _howto(server, "candles"))
    _harvest(database, settings, team, snapshots["candles"])
    found = rows(database, "SELECT symbol, duration, market, close::int FROM data.candles_candles ORDER BY close")
    assert found == [
        ("BTC/USDT", "1m", "BTC/USDT", 10),
        ("ETH/USDT", "1m", "ETH/USDT", 20),
        ("BTC/USDT", "1h", "BTC/USDT", 100),
        ("ETH/USDT", "1h", "ETH/USDT", 200),
    ]
    series = rows(
        database,
        """SELECT partition_key, cursor_value IS NOT NULL FROM ing_series s JOIN ing_coverage c ON c.series_id = s.id
             JOIN ing_cursor k ON k.series_id = s.id ORDER BY 1""",
    )
    assert series == [("BTC/USDT/1h", True), ("BTC/USDT/1m", True), ("ETH/USDT/1h", True), ("ETH/USDT/1m", True)]


def test_a_value_added_to_the_list_is_planned_and_the_others_keep_their_coverage(
    database: Database, settings: Settings, team: Crew, server: Server
) -> None:
    text = change(_howto(server, "candles"), ("[1m, 1h]", "[1m]"))
    text = change(text, ("precision: second", "precision: day"))
    _harvest(database, settings, team, _apply(database, settings, text)["candles"])
    after = _apply(database, settings, change(text, ("[1m]", "[1m, 1h]")))
    request_run(database, after["candles"])
    Planner(database, settings, compile_endpoint).tick()
    queued = rows(
        database,
        """SELECT s.partition_key FROM ing_task t JOIN ing_series s ON s.id = t.series_id
            WHERE status_code = 'QUEUED' ORDER BY 1""",
    )
    assert queued == [("BTC/USDT/1h",), ("ETH/USDT/1h",)]


def test_a_plan_over_partitions_stops_at_the_stock_limit_and_goes_on_at_the_same_partition(
    database: Database, settings: Settings, server: Server
) -> None:
    """D6: six windows of each of four series, never more than five queued, each exactly once."""
    text = change(_howto(server, "candles"), ("max: 3650d", "max: 200d"), ("rate:", "budget: {inventory: 5}\nrate:"))
    text = text.replace("budget: {inventory: 5}\n", "").replace(
        "    partition:", "    budget: {inventory: 5}\n    partition:"
    )
    snapshot = _apply(database, settings, text)["candles"]
    request_run(database, snapshot)
    planner = make_planner(database, settings, snapshot)
    planner.tick()
    assert rows(database, "SELECT count(*), (SELECT status_code FROM ing_plan) FROM ing_task") == [(5, "PARTIAL")]
    while lease_all(database, limit=5):
        rows(database, "UPDATE ing_task SET status_code = 'SUCCEEDED' WHERE status_code = 'DISPATCHED' RETURNING id")
        planner.tick()
        assert rows(database, "SELECT count(*) <= 5 FROM ing_task WHERE status_code = 'QUEUED'") == [(True,)]
    spans = rows(
        database,
        """SELECT s.partition_key, count(*), count(DISTINCT lower(span)),
                  range_agg(span) = tstzmultirange(tstzrange(min(lower(span)), max(upper(span)))),
                  min(lower(span)) = s.anchor
             FROM ing_plan_slice p JOIN ing_series s ON s.id = p.series_id GROUP BY s.id, 1 ORDER BY 1""",
    )
    assert [key for key, *_ in spans] == ["BTC/USDT/1h", "BTC/USDT/1m", "ETH/USDT/1h", "ETH/USDT/1m"]
    assert len({slices for _, slices, *_ in spans}) == 1
    assert all(slices == distinct and whole and anchored for _, slices, distinct, whole, anchored in spans)
    assert rows(database, "SELECT status_code FROM ing_plan") == [("READY",)]


def test_children_of_children_are_asked_for_with_the_fields_of_their_parents_rows(
    database: Database, settings: Settings, team: Crew, server: Server, world: World
) -> None:
    snapshots = _apply(database, settings, _howto(server, "forge"))
    for name in ("repos", "issues", "comments"):
        _harvest(database, settings, team, snapshots[name])
    assert rows(database, "SELECT repo, number FROM data.forge_issues ORDER BY 1, 2") == [
        ("acme/gears", 1), ("acme/gears", 2), ("acme/widgets", 1), ("acme/widgets", 2),
    ]  # fmt: skip
    assert rows(database, "SELECT provider_id FROM data.forge_comments ORDER BY 1") == [
        ("acme/gears#1",), ("acme/gears#2",), ("acme/widgets#1",), ("acme/widgets#2",),
    ]  # fmt: skip
    assert not [path for path in world.asked if "acme/old" in path]  # archived


def test_only_changed_parents_are_walked_again_and_deleted_ones_never(
    database: Database, settings: Settings, team: Crew, server: Server, world: World
) -> None:
    text = _howto(server, "forge").replace(
        "pagination: {kind: none}", "pagination: {kind: none}\n    window: {safety_lag: 0s}"
    )
    snapshots = _apply(database, settings, text)
    for name in ("repos", "issues"):
        _harvest(database, settings, team, snapshots[name])
    world.repos["acme/widgets"]["updated_at"] = "2024-03-01T00:00:00Z"
    world.asked.clear()
    for name in ("repos", "issues"):
        _harvest(database, settings, team, snapshots[name])
    assert world.asked == ["/repos", "/repos/acme/widgets/issues"]
    rows(database, "UPDATE data.forge_repos SET _deleted_at = now(), _refreshed_at = now() RETURNING 1")
    request_run(database, snapshots["issues"])
    Planner(database, settings, compile_endpoint).tick()
    ((result,),) = rows(database, "SELECT result_code FROM ing_schedule_instance ORDER BY id DESC LIMIT 1")
    assert result == "NOTHING"


def test_a_child_whose_parent_has_no_table_says_so(database: Database, settings: Settings, server: Server) -> None:
    text = change(_howto(server, "forge"), ("{from: forge.repos", "{from: nowhere.repos"))
    request_run(database, _apply(database, settings, text)["issues"])
    Planner(database, settings, compile_endpoint).tick()
    ((result, remarks),) = rows(database, "SELECT result_code, record_remarks FROM ing_schedule_instance")
    assert result == "FAILED"
    assert "data.nowhere_repos has no column provider_id, archived" in remarks["errors"][0]
