"""PubMed: a stand-in for esearch (ids, and on `/esearch` whole records too) and efetch (XML by ids).

Counts are strings, days are inclusive, times are kept to the minute, and nothing past the first 9,999
records of a search can be had: `retstart` from 9999 on is an error with HTTP 200, and a page that
crosses that edge comes back short without a word. Some PMIDs were withdrawn since: a search still counts and
lists them, efetch leaves them out without a word; the full truth marks them.
"""

from typing import Any

from simulator.answers import Allowance, Answer, BadRequest, Headers, NoSuchPath, Request, Twist, answer_json
from simulator.articles import write_error, write_set
from simulator.dataset import Dataset, Row, Shape, encode_json
from simulator.instants import BEGINNING, END, format_instant, parse_unit
from simulator.words import INSTITUTES, JOURNALS, list_people, pick, write_text, write_title

CAP = 9_999
LONGEST_GET = 4_096  # characters; longer lists of ids must be posted
_CAP_ERROR = (
    "Search Backend failed: Exception: 'retstart' cannot be larger than 9998. For PubMed, ESearch cannot "
    "retrieve more than 9,999 records matching the query. To obtain more, split the query by date."
)
_PUBLICATION_TYPES = ("Journal Article", "Review", "Clinical Trial", "Letter", "Meta-Analysis")


class PubMed:
    def __init__(self) -> None:
        self.shape = Shape(
            name="pubmed",
            id_path=("uid",),
            updated_path=("lastmodified",),
            make_id=lambda drawn, index: str(38_000_000 + index * 3 + drawn[30] % 3),
            make_record=_make_summary,
            grain=60,
            tell=lambda drawn, row: {"withdrawn": is_withdrawn(row.id)},
        )

    def answer(self, dataset: Dataset, request: Request, twist: Twist) -> Answer:
        place = request.path.removesuffix(".fcgi")
        if place == "/pubmed/efetch":
            return _fetch(dataset, request, twist)
        if place != "/pubmed/esearch":
            raise NoSuchPath
        start = request.read_int("retstart", 0, low=0)
        asked = request.read_int("retmax", 20, low=0)
        size = min(asked, CAP)
        start = max(0, start - size) if twist.again else start
        if start >= CAP:
            return answer_json(_wrap({"ERROR": _CAP_ERROR}))
        page = dataset.page_by_id(_parse_days(request), start, min(size, CAP - start))
        bodies = twist.apply(page.bodies, dataset.shape)
        result = {"count": str(page.total), "retmax": str(len(bodies)), "retstart": str(start)}
        head: dict[str, Any] = _wrap(result)
        if asked > CAP:
            message = f"Restrictions achieved. start and count adjusted to {start}, {min(size, CAP - start)}"
            head["esearchresult"]["warninglist"] = {"outputmessages": [message]}
        head["esearchresult"]["idlist"] = dataset.list_ids([] if twist.empty else page.indexes)
        text = encode_json(head).encode()
        if request.path.endswith(".fcgi"):
            return Answer(200, text)
        return Answer(200, b"".join((text[:-2], b',"items":[', b",".join(bodies), b"]}}")))

    def is_first_page(self, request: Request) -> bool:
        return request.params.get("retstart", "0") in ("", "0")

    def refuse(self, status: int, reason: str, value: str = "") -> Answer:
        match status:
            case 400:
                return answer_json(_wrap({"ERROR": reason}), 400)
            case 429:
                body = {
                    "error": "API rate limit exceeded",
                    "api-key": "127.0.0.1",
                    "count": "4",
                    "limit": "3",
                }
                return answer_json(body, 429)
            case _:
                page = f"<html><body><h1>Error {status}</h1></body></html>"
                return Answer(status, page.encode(), "text/html")

    def describe_allowance(self, allowance: Allowance) -> Headers:
        return ()  # NCBI tells its limit in prose only


def is_withdrawn(pmid: str) -> bool:
    return int(pmid) % 41 == 0


def _fetch(dataset: Dataset, request: Request, twist: Twist) -> Answer:
    """Answer efetch: the articles of a comma list of ids, in that order and each once."""
    if request.method == "GET" and len(request.target) > LONGEST_GET:
        return Answer(414, b"<html><body><h1>Request-URI Too Long</h1></body></html>", "text/html")
    if "WebEnv" in request.params:
        return write_error("Unable to obtain query #1")  # no history is kept here: every handle is lost
    if request.params.get("retmode", "xml") != "xml":
        raise BadRequest("only retmode=xml is served", request.params["retmode"])
    asked = [id_.strip() for id_ in request.params.get("id", "").split(",")]
    if not any(asked):
        raise BadRequest("ID list is empty! Possibly it has no correct IDs.")
    found = [dataset.find_body(id_) for id_ in dict.fromkeys(asked) if id_.isdigit() and not is_withdrawn(id_)]
    return write_set(twist.apply([body for body in found if body is not None], dataset.shape))


def _wrap(result: dict[str, Any]) -> dict[str, Any]:
    return {"header": {"type": "esearch", "version": "0.3"}, "esearchresult": result}


def _parse_days(request: Request) -> tuple[int, int]:
    first, last = request.params.get("mindate", ""), request.params.get("maxdate", "")
    if not first and not last:
        return BEGINNING, END
    if not first or not last:
        raise BadRequest("mindate and maxdate must be given together", first or last)
    try:
        return parse_unit(first)[0], parse_unit(last)[1]
    except ValueError as error:
        raise BadRequest(str(error), f"{first} {last}") from None


def _make_summary(drawn: bytes, row: Row) -> dict[str, Any]:
    published = f"{2019 + drawn[32] % 6} {pick(('Jan', 'Mar', 'May', 'Jul', 'Sep', 'Nov'), drawn[33])}"
    return {
        "uid": row.id,
        "title": write_title(drawn, row.version) + ".",
        "lastmodified": format_instant(row.updated)[:16].replace("-", "/").replace("T", " "),
        "entrezdate": format_instant(row.first_updated)[:10].replace("-", "/"),
        "pubdate": published,
        "source": pick(JOURNALS, drawn[34]),
        "authors": [
            {
                "name": f"{family} {given[0]}",
                "authtype": "Author",
                "affiliation": pick(INSTITUTES, drawn[36 + n]),
            }
            for n, (given, family) in enumerate(list_people(drawn))
        ],
        "volume": str(1 + drawn[42] % 80),
        "issue": str(1 + drawn[43] % 12),
        "pages": f"{drawn[44] + 1}-{drawn[44] + 9}",
        "lang": ["eng"],
        "pubtype": [pick(_PUBLICATION_TYPES, drawn[45])],
        "articleids": [
            {"idtype": "pubmed", "value": row.id},
            {"idtype": "doi", "value": f"10.5555/exm.{row.id}"},
        ],
        "fulljournalname": pick(JOURNALS, drawn[34]),
        "pmcrefcount": drawn[46],
        "abstract": write_text(drawn, 4),
    }
