"""The source files that ship: valid, compiled as meant, and easy to point somewhere else."""

import pytest

from registry.builtin import BUILTIN
from registry.compile import Compiled
from registry.drafts import read_drafts
from registry.files import read_file
from tests.unit.registry.writing import SHIPPED


def _compiled(environment: dict[str, str] | None = None, opened: tuple[str, ...] = ()) -> dict[str, Compiled]:
    drafts = read_drafts([SHIPPED], BUILTIN, environment=environment or {}, open_origins=opened)
    assert [problem for draft in drafts for problem in draft.problems] == []
    return {compiled.snapshot.name: compiled for draft in drafts for compiled in draft.compiled.values()}


def test_every_shipped_source_compiles_without_a_warning() -> None:
    compiled = _compiled()
    assert sorted(compiled) == [
        "biorxiv.biorxiv", "biorxiv.medrxiv", "crossref.works", "europepmc.articles", "github.issues", "openalex.works",
        "pubmed.search", "semanticscholar.papers", "shopify.orders",
    ]  # fmt: skip
    assert all(endpoint.warnings == [] for endpoint in compiled.values())


def test_crossref_ends_at_a_short_page_and_lowers_its_ids() -> None:
    spec = _compiled()["crossref.works"].snapshot
    assert (spec.pagination.kind, spec.pagination.initial, spec.pagination.stop) == ("TOKEN", "*", ("short_page",))
    assert spec.mapping.identity[0].lower
    assert spec.http.inert == ("mailto",)
    assert (spec.window.ends, spec.window.precision) == ("inclusive", "second")


def test_pubmed_pages_end_exactly_at_its_cap() -> None:
    pages = _compiled()["pubmed.search"].snapshot.pagination
    assert pages.size is not None
    assert pages.max_page is not None
    assert pages.size * pages.max_page == 9_999
    assert (pages.advance_by, pages.stop) == ("asked", ("total_reached",))


def test_github_walks_the_link_header_without_a_window() -> None:
    compiled = _compiled()["github.issues"]
    assert (compiled.snapshot.pagination.kind, compiled.snapshot.pagination.next_in) == ("URL", "link_header")
    assert compiled.snapshot.auth.secret_ref == "env:GITHUB_TOKEN"
    assert compiled.degradations == ["noCount", "fullWalk"]


def test_europe_pmc_ends_at_an_empty_page_and_names_a_record_by_source_and_id() -> None:
    spec = _compiled()["europepmc.articles"].snapshot
    assert spec.pagination.stop == ("empty_page", "no_next")
    assert [part.column for part in spec.mapping.identity] == ["source", "epmc_id"]


def test_biorxiv_advances_by_what_came_whatever_the_page_is() -> None:
    compiled = _compiled()
    for server in ("biorxiv", "medrxiv"):
        pages = compiled[f"biorxiv.{server}"].snapshot.pagination
        assert (pages.advance_by, pages.stop) == ("received", ("total_reached", "empty_page"))


def test_openalex_writes_window_ends_to_the_microsecond() -> None:
    window = _compiled()["openalex.works"].snapshot.window
    assert (window.ends, window.precision, window.format) == ("inclusive", "us", "%Y-%m-%dT%H:%M:%S.%f")


@pytest.mark.parametrize(
    "name",
    [f"{source}_BASE_URL" for source in ("BIORXIV", "CROSSREF", "EUROPEPMC", "GITHUB", "OPENALEX", "PUBMED")]
    + ["SEMANTICSCHOLAR_BASE_URL", "SHOPIFY_BASE_URL"],
)
def test_each_can_be_pointed_at_a_simulator(name: str) -> None:
    compiled = _compiled({name: "http://127.0.0.1:8099/x"}, opened=("http://127.0.0.1:*",))
    assert "http://127.0.0.1:8099/x" in {endpoint.snapshot.http.base_url for endpoint in compiled.values()}


def test_shipped_files_say_which_vendor_documentation_they_follow() -> None:
    for path in sorted(SHIPPED.glob("*.yaml")):
        assert read_file(path, {}).data["docs"].startswith("https://")
