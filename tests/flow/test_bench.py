"""The author's bench as a person uses it: `ingest try` over real sockets, `ingest test` on what it recorded."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest.db import Database
from simulator.server import Simulator
from tests.flow.processes import BIN, scalar

_FILE = """\
source: shop
base_url: {url}/plain
rate: 50/s
auth: {{type: bearer, secret: env:SHOP_TOKEN}}
endpoints:
  items:
    get: /items
    query:
      page: "{{{{ page.number }}}}"
      size: "{{{{ page.size }}}}"
      updated_from: "{{{{ window.from }}}}"
      updated_to: "{{{{ window.to }}}}"
    pagination: {{kind: page, base: 1, size: 100, stop: short_page}}
    window: {{filter: server, field: updated_at, start: 2024-01-01, precision: second, max: 9000d}}
    records: {{items: $.data, id: $.id, updated_at: $.updated_at, total: $.total}}
    columns: {{title: text, amount: numeric}}
"""
_TOKEN = "hunter2-hunter2"


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(sizes={"plain": 250}) as it:
        yield it


class Project:
    """A folder with one source file, and the command in it."""

    def __init__(self, folder: Path, simulator: Simulator, database: Database) -> None:
        self.folder = folder
        self.file = folder / "sources" / "shop.yaml"
        self.file.parent.mkdir()
        self.file.write_text(_FILE.format(url=simulator.url), encoding="utf-8")
        self._environment = {
            **os.environ,
            "INGEST_DATABASE_URL": database.url,
            "INGEST_OPEN_ORIGINS": '["http://127.0.0.1:*"]',
            "SHOP_TOKEN": _TOKEN,
        }

    def change(self, old: str, new: str) -> None:
        text = self.file.read_text(encoding="utf-8")
        assert old in text
        self.file.write_text(text.replace(old, new), encoding="utf-8")

    def run(self, *words: str, code: int = 0, **environment: str) -> str:
        ran = subprocess.run(
            [BIN / "ingest", *words], cwd=self.folder, env=self._environment | environment, capture_output=True,
            text=True, check=False,
        )  # fmt: skip
        assert ran.returncode == code, ran.stdout + ran.stderr
        assert _TOKEN not in ran.stdout + ran.stderr
        return ran.stdout if code == 0 else ran.stdout + ran.stderr

    def json(self, *words: str, code: int = 0) -> Any:
        return json.loads(self.run(*words, "--json", code=code).partition("\n}\n")[0] + "\n}")


@pytest.fixture
def project(tmp_path: Path, simulator: Simulator, database: Database) -> Project:
    return Project(tmp_path, simulator, database)


def test_try_shows_request_answer_records_next_and_checks_and_stores_nothing(
    project: Project, database: Database
) -> None:
    shown = project.run("try", "shop.items", "--pages", "2")
    for text in ("GET http://127.0.0.1", "page=2", "[secret] from env:SHOP_TOKEN", "HTTP 200", "100 good", "page 3"):
        assert text in shown
    assert "the last page was not reached" in shown
    tables = ("ing_task", "ing_task_run", "ing_task_run_batch", "ing_spec", "ing_coverage", "ing_quarantine")
    assert [scalar(database, f"SELECT count(*) FROM {table}") for table in tables] == [0] * len(tables)
    assert scalar(database, "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'data'") == 0


def test_try_as_json_walks_to_the_end_and_infers_types(project: Project) -> None:
    tried = project.json("try", "shop.items", "--pages", "9", "--rows", "2")
    assert [page["items"] for page in tried["pages"]] == [100, 100, 50]
    assert tried["pages"][-1]["stop"] == "short_page"
    assert len(tried["pages"][0]["records"]) == 2
    assert {check["verdict"] for check in tried["checks"]} == {"ok"}
    types = {column["name"]: column["type"] for column in tried["columns"]}
    assert (types["updated_at"], types["title"]) == ("timestamp", "text")


def test_try_fails_loudly_where_the_walk_would(project: Project) -> None:
    project.change("items: $.data", "items: $.rows")
    shown = project.run("try", "shop.items", code=1)
    assert "expected a list at $.rows, found nothing" in shown


def test_what_try_recorded_is_tested_offline_and_holds_no_secret(project: Project, simulator: Simulator) -> None:
    project.run("try", "shop.items", "--pages", "9", "--record", "fixtures")
    folder = project.folder / "fixtures" / "shop.items"
    assert sorted(file.name for file in folder.glob("*.body")) == ["001.body", "002.body", "003.body"]
    assert all(_TOKEN not in file.read_text(encoding="utf-8") for file in folder.iterdir())
    asked = simulator.requests("plain")["count"]
    shown = project.run("test", "shop", "--offline", INGEST_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")
    assert "FAIL" not in shown
    assert "by short_page" in shown
    assert simulator.requests("plain")["count"] == asked


@pytest.mark.parametrize(
    ("old", "new", "failing"),
    [
        ("id: $.id", "id: $.status", "ids are there and differ"),
        ("updated_at: $.updated_at", "updated_at: $.title", "update times are readable"),
        ("title: text", "title: int", "columns fit their types"),
        ("items: $.data", "items: $.total", "answers are readable"),
        ("size: 100", "size: 99", "answers are readable"),
    ],
    ids=["id", "time", "type", "items", "another-request"],
)
def test_a_file_that_no_longer_reads_its_fixtures_fails_the_test(
    project: Project, old: str, new: str, failing: str
) -> None:
    project.run("try", "shop.items", "--pages", "9", "--record", "fixtures")
    project.change(old, new)
    result = project.json("test", "shop", code=1)
    failed = [check["name"] for check in result["streams"]["shop.items"] if check["verdict"] == "fail"]
    assert failing in failed


def test_a_source_without_fixtures_is_told_how_to_record_some(project: Project) -> None:
    assert "ingest try shop.items --pages 3 --record fixtures" in project.run("test", "shop", code=4)


def test_an_unknown_stream_is_told_what_was_meant(project: Project) -> None:
    assert "did you mean 'shop'" in project.run("try", "shob.items", code=4)


def test_new_from_a_live_url_proposes_a_file_that_try_walks(project: Project, simulator: Simulator) -> None:
    shown = project.run("new", "market", "--from-url", f"{simulator.url}/plain/items?page=1&size=100")
    assert "market.yaml" in shown
    tried = project.json("try", "market.items", "--pages", "9")
    assert [page["items"] for page in tried["pages"]] == [100, 100, 50]
    assert {check["verdict"] for check in tried["checks"]} == {"ok"}
    assert "is there already" in project.run("new", "market", code=1)


def test_new_asks_no_address_that_is_closed(project: Project, simulator: Simulator) -> None:
    shown = project.run("new", "market", "--from-url", f"{simulator.url}/plain/items", code=1, INGEST_OPEN_ORIGINS="[]")
    assert "INGEST_OPEN_ORIGINS" in shown
    assert not (project.folder / "sources" / "market.yaml").exists()
