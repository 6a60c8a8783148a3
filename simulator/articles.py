"""Articles: PubMed's XML, written from the records that its searches give as JSON.

Titles have markup inside (mixed content: their text is the title in order, tags left out), the DTD is declared by a
public name that nobody should fetch, the DOI stands in two places, and a publication date may be free text only.
"""

import json
from typing import Any
from xml.sax.saxutils import escape

from simulator.answers import Answer

_XML = "text/xml; charset=UTF-8"
_HEAD = (
    '<?xml version="1.0" ?>\n<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle, 1st January 2025//EN" '
    '"https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed_250101.dtd">\n'
)


def write_set(bodies: list[bytes]) -> Answer:
    """Answer with the articles of these records."""
    articles = "\n".join(_write_article(json.loads(body)) for body in bodies)
    return Answer(200, f"{_HEAD}<PubmedArticleSet>\n{articles}\n</PubmedArticleSet>\n".encode(), _XML)


def write_error(message: str) -> Answer:
    """Answer as efetch does to what it cannot do: with HTTP 200."""
    body = f'<?xml version="1.0" encoding="UTF-8"?><eFetchResult><ERROR>{escape(message)}</ERROR></eFetchResult>'
    return Answer(200, body.encode(), _XML)


def mark_up(title: str) -> str:
    """Set one word in italics and write any digit 2 as a subscript, so that the title's text is in many pieces."""
    first, _, rest = title.partition(" ")
    return f"<i>{escape(first)}</i> {escape(rest).replace('2', '<sub>2</sub>')}"


def _write_article(record: dict[str, Any]) -> str:
    pmid = record.get("uid")
    name = "" if pmid is None else f'<PMID Version="1">{pmid}</PMID>'
    journal, published = escape(record["source"]), escape(record["pubdate"])
    authors = "".join(_write_author(author) for author in record["authors"])
    doi = record["articleids"][-1]["value"]
    sentences = record["abstract"].split(". ", 1)
    labels = ("BACKGROUND", "RESULTS")
    abstract = "".join(
        f'<AbstractText Label="{label}">{escape(text)}</AbstractText>'
        for label, text in zip(labels, sentences, strict=False)
    )
    return (
        f'<PubmedArticle><MedlineCitation Status="Publisher" Owner="NLM">{name}'
        f"<DateRevised>{_write_date(record['lastmodified'])}</DateRevised>"
        f'<Article PubModel="Print-Electronic"><Journal><Title>{journal}</Title><JournalIssue CitedMedium="Internet">'
        f"<Volume>{record['volume']}</Volume><PubDate><MedlineDate>{published}</MedlineDate></PubDate></JournalIssue>"
        f"</Journal><ArticleTitle>{mark_up(record['title'])}</ArticleTitle>"
        f'<ELocationID EIdType="doi" ValidYN="Y">{doi}</ELocationID><Abstract>{abstract}</Abstract>'
        f'<AuthorList CompleteYN="Y">{authors}</AuthorList></Article></MedlineCitation>'
        f'<PubmedData><History><PubMedPubDate PubStatus="entrez">{_write_date(record["entrezdate"])}</PubMedPubDate>'
        f'</History><ArticleIdList><ArticleId IdType="pubmed">{pmid or ""}</ArticleId>'
        f'<ArticleId IdType="doi">{doi}</ArticleId></ArticleIdList></PubmedData></PubmedArticle>'
    )


def _write_author(author: dict[str, Any]) -> str:
    family, _, initial = author["name"].rpartition(" ")
    return (
        f'<Author ValidYN="Y"><LastName>{escape(family)}</LastName><Initials>{escape(initial)}</Initials>'
        f"<AffiliationInfo><Affiliation>{escape(author['affiliation'])}</Affiliation></AffiliationInfo></Author>"
    )


def _write_date(text: str) -> str:
    """Write `2024/01/05 ...` as its three parts; what is no date stands in the first, as it is."""
    parts = str(text)[:10].split("/")
    return "".join(f"<{tag}>{escape(part)}</{tag}>" for tag, part in zip(("Year", "Month", "Day"), parts, strict=False))
