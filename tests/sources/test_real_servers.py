"""Real servers, harvested to equality with YAML alone (issue: every source)."""

import json
import urllib.request
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ingest.db import Database
from tests.flow.processes import all_tasks_ended, crew, rows, scalar, wait_until
from tests.flow.sources import apply_source
from tests.flow.truth import assert_ledger_sound

_DRF = """
source: drf
base_url: {url}
rate: 200/s
schedule: {{every: 1h}}
endpoints:
  pages:
    get: /pages/
    query:
      since: "{{{{ window.from }}}}"
      until: "{{{{ window.to }}}}"
      page: "{{{{ page.number }}}}"
      page_size: "{{{{ page.size }}}}"
    pagination: {{kind: page, base: 1, size: 20, has_more: $.next, stop: [has_more_false, total_reached]}}
    window: {{filter: server, field: updated_at, start: 2024-01-01, max: 300d}}
    records: {{items: $.results, id: $.id, updated_at: $.updated_at, total: $.count}}
    columns: {{name: text, amount: numeric}}
  offsets:
    get: /offsets/
    query: {{limit: "{{{{ page.size }}}}", offset: "{{{{ page.offset }}}}"}}
    pagination: {{kind: offset, size: 50, stop: total_reached}}
    records: {{items: $.results, id: $.id, updated_at: $.updated_at, total: $.count}}
    columns: {{name: text, amount: numeric}}
  cursors:
    get: /cursors/
    query: {{since: "{{{{ window.from }}}}", until: "{{{{ window.to }}}}"}}
    pagination: {{kind: url, next: $.next}}
    window: {{filter: server, field: updated_at, start: 2024-01-01, max: 300d}}
    records: {{items: $.results, id: $.id, updated_at: $.updated_at}}
    columns: {{name: text, amount: numeric}}
"""

_JSON_SERVER = """
source: blog
base_url: {url}
rate: 200/s
schedule: {{every: 1h}}
endpoints:
  posts:
    get: /posts
    query:
      _page: 1
      _limit: "{{{{ page.size }}}}"
      _sort: id
      updatedAt_gte: "{{{{ window.from }}}}"
      updatedAt_lte: "{{{{ window.to }}}}"
    pagination: {{kind: url, next_in: link_header, size: 30}}
    window: {{filter: server, field: updatedAt, start: 2024-01-01, ends: inclusive, precision: ms, max: 20d}}
    records: {{items: $, id: $.id, updated_at: $.updatedAt}}
    columns: {{title: text, author: $.author.name}}
"""


def _ask(url: str) -> Any:
    with urllib.request.urlopen(url) as answer:  # noqa: S310 -- loopback
        return json.loads(answer.read())


def _harvest(database: Database, source: str, endpoints: int, folder: Path) -> None:
    with crew(database.url, folder) as daemons:
        apply_source(database.url, source, folder=folder)
        daemons.planner()
        daemons.executor(workers=4)
        wait_until(
            lambda: (
                scalar(database, "SELECT count(DISTINCT endpoint_name) FROM ing_task") == endpoints
                and not scalar(database, "SELECT count(*) FROM ing_plan WHERE status_code <> 'READY'")
                and all_tasks_ended(database)
            ),
            "every task has ended",
        )
    assert rows(database, "SELECT id, error FROM ing_task_run WHERE status_code <> 'SUCCEEDED'") == []
    assert_ledger_sound(database)


@pytest.mark.slow
def test_every_pagination_of_django_rest_framework(database: Database, drf: str, tmp_path: Path) -> None:
    _harvest(database, _DRF.format(url=drf), 3, tmp_path)
    items = _ask(f"{drf}/offsets/?limit=1000")["results"]
    truth = sorted((str(i["id"]), datetime.fromisoformat(i["updated_at"]), i["name"], i["amount"]) for i in items)
    assert len(truth) == 310
    for table in ("drf_pages", "drf_offsets", "drf_cursors"):
        found = rows(database, f"SELECT provider_id, updated_at, name, amount::text FROM data.{table}")
        assert sorted(found) == truth, table


@pytest.mark.slow
def test_json_server_by_its_link_header(database: Database, json_server: str, tmp_path: Path) -> None:
    _harvest(database, _JSON_SERVER.format(url=json_server), 1, tmp_path)
    posts = _ask(f"{json_server}/posts")
    truth = sorted((str(p["id"]), datetime.fromisoformat(p["updatedAt"]), p["author"]["name"]) for p in posts)
    assert len(truth) == 500
    assert sorted(rows(database, "SELECT provider_id, updated_at, author FROM data.blog_posts")) == truth
