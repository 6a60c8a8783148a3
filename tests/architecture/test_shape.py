"""The shape of the code: rules that matter are tests, for prose drifts."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path

import pytest
from sqlalchemy import TextClause, text

from ingest.db import Database
from ingest.settings import Settings
from ingest.store import pages
from tests.factories import make_snapshot, queue_tasks

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("ingest", "registry", "planner", "executor", "simulator")
_MODULES = sorted(p for name in _PACKAGES for p in (_ROOT / name).rglob("*.py"))
_LONGEST = 300
_BANNED_NAMES = {"utils", "helpers", "common", "base", "core", "manager", "types", "misc"}


def test_no_module_is_longer_than_300_lines() -> None:
    long = {str(p.relative_to(_ROOT)): n for p in _MODULES if (n := len(p.read_text().splitlines())) > _LONGEST}
    assert long == {}


def test_every_module_says_what_it_owns_and_init_files_are_empty() -> None:
    silent = []
    for path in _MODULES:
        source = path.read_text()
        if path.name == "__init__.py":
            assert source == "", path
        elif not ast.get_docstring(ast.parse(source)):
            silent.append(str(path.relative_to(_ROOT)))
    assert silent == []


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert [str(p) for p in _MODULES if p.stem in _BANNED_NAMES] == []


def test_httpx_is_imported_in_one_module_only() -> None:
    importers = [
        str(p.relative_to(_ROOT)) for p in _MODULES if re.search(r"^\s*(import|from) httpx", p.read_text(), re.M)
    ]
    assert importers == ["executor/transport.py"]


def _statements() -> list[tuple[str, str]]:
    found = []
    for package in ("ingest.store", "registry.store"):
        for info in pkgutil.iter_modules(importlib.import_module(package).__path__, f"{package}."):
            module = importlib.import_module(info.name)
            for name, value in vars(module).items():
                if isinstance(value, TextClause):
                    found.append((f"{info.name}.{name}", str(value)))
    return found


@pytest.mark.parametrize(("name", "statement"), _statements(), ids=[name for name, _ in _statements()])
def test_every_statement_prepares_against_the_migrated_schema(
    shared_database: Database, name: str, statement: str
) -> None:
    del name
    numbers: dict[str, int] = {}
    prepared = re.sub(r"(?<![:\w]):(\w+)", lambda m: f"${numbers.setdefault(m[1], len(numbers) + 1)}", statement)
    with shared_database.transaction() as conn:
        conn.exec_driver_sql(f"PREPARE it AS {prepared}")
        conn.exec_driver_sql("DEALLOCATE it")


def test_the_lease_reads_its_queue_by_index(database: Database, settings: Settings) -> None:
    """20,000 queued tasks of which one lane's are far in the future: the head is found without scanning."""
    queue_tasks(database, settings, make_snapshot())
    with database.transaction() as conn:
        conn.execute(text("ANALYZE ing_task"))
        plan = "\n".join(
            conn.execute(
                text("""EXPLAIN SELECT q.id FROM ing_task q WHERE q.lane_id = 1 AND q.status_code = 'QUEUED'
                           AND q.scheduled_at <= now() ORDER BY q.priority, q.scheduled_at, q.id LIMIT 1""")
            ).scalars()
        )
    assert "idx_task_queue" in plan
    assert "Seq Scan" not in plan
    assert "Sort" not in plan


def test_the_fence_is_an_update_that_counts_pages() -> None:
    """The text itself: owner, count, state and page in one UPDATE (DESIGN rule 3)."""
    words = " ".join(pages._FENCE.split())
    assert words.startswith("UPDATE ing_task")
    for part in (
        "lease_owner = %(owner)s",
        "lease_count = %(count)s",
        "status_code = 'EXECUTING'",
        "pages_done = %(page)s - 1",
    ):
        assert part in words


def test_nothing_names_a_machine_or_a_registry_host() -> None:
    """The repository speaks of the product alone."""
    words = ("/" + "work/", "/opt/" + "pypi", "pypi." + "org", "deb." + "debian")
    tracked = [p for p in _ROOT.rglob("*") if p.is_file() and ".venv" not in p.parts and ".git" not in p.parts]
    named = [
        str(p.relative_to(_ROOT))
        for p in tracked
        if p.suffix in {".py", ".md", ".toml", ".yaml", ".yml", ""} and p.stat().st_size < 1_000_000
        if any(word in p.read_text(encoding="utf-8", errors="ignore") for word in words)
        if not any(part.startswith(".") and part not in {".ci", ".gitignore"} for part in p.relative_to(_ROOT).parts)
    ]
    assert named == []
