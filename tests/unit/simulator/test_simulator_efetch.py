"""PubMed in two phases: ids from esearch, articles as XML from efetch."""

from typing import Any
from urllib.parse import urlencode
from xml.etree import ElementTree as ET

from simulator.pubmed import is_withdrawn
from simulator.server import Simulator

EFETCH = "/pubmed/efetch.fcgi"


def list_pmids(client: Any) -> list[str]:
    found: list[str] = client.get("/pubmed/esearch.fcgi", retmax=1000).json["esearchresult"]["idlist"]
    return found


def fetch(client: Any, ids: list[str]) -> Any:
    form = urlencode({"db": "pubmed", "id": ",".join(ids), "retmode": "xml"}).encode()
    return client.send("POST", EFETCH, form, {"Content-Type": "application/x-www-form-urlencoded"})


def test_search_lists_ids_and_fetch_gives_all_but_the_withdrawn(sim: Simulator, client: Any) -> None:
    records = sim.truth("pubmed", full=True)["records"]
    ids = list_pmids(client)
    assert set(ids) == records.keys()
    reply = fetch(client, ids)
    assert b"<!DOCTYPE PubmedArticleSet PUBLIC" in reply.body
    found = [a.findtext("MedlineCitation/PMID") for a in ET.fromstring(reply.body).findall("PubmedArticle")]  # noqa: S314
    gone = {id_ for id_, record in records.items() if record["withdrawn"]}
    assert gone
    assert found == [id_ for id_ in ids if id_ not in gone]


def test_a_title_has_markup_inside_and_its_text_is_the_title(sim: Simulator, client: Any) -> None:
    records = client.get("/pubmed/esearch", retmax=1000).json["esearchresult"]["items"]
    titles = {record["uid"]: record["title"] for record in records if not is_withdrawn(record["uid"])}
    root = ET.fromstring(fetch(client, list(titles)).body)  # noqa: S314
    pieces = set()
    for article in root.findall("PubmedArticle"):
        title = article.find("MedlineCitation/Article/ArticleTitle")
        assert title is not None
        assert "".join(title.itertext()) == titles[article.findtext("MedlineCitation/PMID") or ""]
        pieces |= {child.tag for child in title}
    assert pieces == {"i", "sub"}


def test_fetch_keeps_the_order_asked_and_ignores_what_it_does_not_know(sim: Simulator, client: Any) -> None:
    first, second = [id_ for id_ in list_pmids(client) if not is_withdrawn(id_)][:2]
    reply = client.get(EFETCH, db="pubmed", id=f"{second},1,{first},{second},x", retmode="xml")
    assert reply.headers["Content-Type"].startswith("text/xml")
    root = ET.fromstring(reply.body)  # noqa: S314
    assert [a.findtext("MedlineCitation/PMID") for a in root.findall("PubmedArticle")] == [second, first]


def test_efetch_says_what_is_wrong_in_its_own_ways(sim: Simulator, client: Any) -> None:
    assert client.get(EFETCH, id=",".join(["38000000"] * 600)).status == 414
    lost = client.get(EFETCH, WebEnv="MCID_1", query_key=1)
    assert (lost.status, b"<ERROR>Unable to obtain query #1</ERROR>" in lost.body) == (200, True)
    assert client.get(EFETCH, id="").status == 400
    sim.add_fault("pubmed", "bad_record", record=1, match="efetch")
    ids = [id_ for id_ in list_pmids(client) if not is_withdrawn(id_)]
    root = ET.fromstring(fetch(client, ids[:2]).body)  # noqa: S314
    assert [a.findtext("MedlineCitation/PMID") for a in root.findall("PubmedArticle")] == [None, ids[1]]
