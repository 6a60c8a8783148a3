"""The source files that ship, as they are, harvested by real daemons to equality with the simulator (A1, B3-B5, B9).

Only the environment differs from a real run: where the source is, from when on, and its credential.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ingest.db import Database
from simulator.server import Simulator
from tests.flow.processes import all_tasks_ended, crew, rows, scalar, wait_until
from tests.flow.sources import ingest
from tests.flow.truth import assert_ledger_sound, assert_same

_SHIPPED = Path(__file__).parents[2] / "registry" / "sources"
_SIZES = {"crossref": 1500, "pubmed": 2000, "github": 250, "europepmc": 1200, "biorxiv": 150, "shopify": 700}


def _day(back: int) -> str:
    return (datetime.now(UTC) - timedelta(days=back)).strftime("%Y-%m-%d")


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    """Records of some days that every safety lag has left behind, so that few windows are enough."""
    with Simulator(sizes=_SIZES, span=(f"{_day(8)}T00:00:00Z", f"{_day(4)}T00:00:00Z")) as it:
        yield it


def _harvest(
    database: Database, simulator: Simulator, folder: Path, monkeypatch: pytest.MonkeyPatch, file: str, **settings: str
) -> None:
    """Apply a shipped file and let a planner and an executor do all there is."""
    source = file.split("_")[0]
    settings |= {
        f"{source.upper()}_BASE_URL": f"{simulator.url}/{source}",
        f"{source.upper()}_START": _day(9),
        "CONTACT_EMAIL": "harvest@example.org",
    }
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    done = ingest(database.url, "registry", "apply", str(_SHIPPED / f"{file}.yaml"), folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    endpoints = 2 if source == "biorxiv" else 1
    with crew(database.url, folder) as daemons:
        daemons.planner()
        daemons.executor(workers=4)
        wait_until(
            lambda: (
                scalar(database, "SELECT count(DISTINCT endpoint_name) FROM ing_task") == endpoints
                and not scalar(database, "SELECT count(*) FROM ing_plan WHERE status_code <> 'READY'")
                and all_tasks_ended(database)
            ),
            "every task has ended",
            seconds=150,
        )
    assert rows(database, "SELECT id, error FROM ing_task_run WHERE status_code <> 'SUCCEEDED'") == []
    assert scalar(database, "SELECT count(*) FROM ing_quarantine") == 0
    assert_ledger_sound(database)


def _assert_ids(database: Database, simulator: Simulator, api: str, select: str) -> None:
    true = simulator.truth(api, full=True)["records"].keys()
    stored = [id_ for (id_,) in rows(database, select)]
    assert len(stored) == len(set(stored))
    assert set(stored) == true


@pytest.mark.slow
def test_crossref(database: Database, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _harvest(database, simulator, tmp_path, monkeypatch, "crossref")
    assert_same(database, simulator, "crossref", "crossref_works")


@pytest.mark.slow
def test_pubmed(database: Database, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _harvest(database, simulator, tmp_path, monkeypatch, "pubmed")
    _assert_ids(database, simulator, "pubmed", "SELECT provider_id FROM data.pubmed_search")


@pytest.mark.slow
def test_github_issues(
    database: Database, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = {"GITHUB_OWNER": "acme", "GITHUB_REPOSITORY": "widgets", "GITHUB_TOKEN": "ghp_test"}
    _harvest(database, simulator, tmp_path, monkeypatch, "github_issues", **repository)
    assert_same(database, simulator, "github", "github_issues")


@pytest.mark.slow
def test_europe_pmc(database: Database, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _harvest(database, simulator, tmp_path, monkeypatch, "europepmc")
    select = "SELECT source || '/' || epmc_id FROM data.europepmc_articles"
    _assert_ids(database, simulator, "europepmc", select)


@pytest.mark.slow
def test_biorxiv_and_medrxiv(
    database: Database, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _harvest(database, simulator, tmp_path, monkeypatch, "biorxiv")
    tables = [f"SELECT doi || '/' || version_no FROM data.biorxiv_{name}" for name in ("biorxiv", "medrxiv")]
    _assert_ids(database, simulator, "biorxiv", " UNION ALL ".join(tables))
    assert rows(database, "SELECT DISTINCT server FROM data.biorxiv_medrxiv") == [("medRxiv",)]


@pytest.mark.slow
def test_shopify_orders(
    database: Database, simulator: Simulator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _harvest(database, simulator, tmp_path, monkeypatch, "shopify_orders", SHOPIFY_ACCESS_TOKEN="shpat_test")
    assert_same(database, simulator, "shopify", "shopify_orders")
