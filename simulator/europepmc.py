"""Europe PMC: a stand-in for `search`, whose token is always there.

`nextCursorMark` never goes away: after the last record the page is empty and the same token comes back.
Days of `UPDATE_DATE:[a TO b]` are inclusive and every other word of a query matches all records. A
request that breaks the rules is answered with HTTP 200. A record's name is its source and its id together.
"""

import re
from typing import Any

from simulator.answers import JSON, Allowance, Answer, BadRequest, Headers, NoSuchPath, Request, Twist, answer_json
from simulator.dataset import Dataset, Row, Shape, Window, encode_json
from simulator.instants import BEGINNING, DAY, END, format_instant, parse_unit
from simulator.seals import Seal
from simulator.words import JOURNALS, list_people, pick, write_text, write_title

MAX_PAGE = 1000
_VERSION = "6.9"
_BAD_SIZE = "Invalid page size provided. Valid size is between 1 and 1000"
_RANGE = re.compile(r"UPDATE_DATE:\[(\S+) TO (\S+)\]")
_SOURCES = ("MED", "MED", "MED", "PPR", "PMC")


class EuropePmc:
    def __init__(self, seed: int) -> None:
        self.shape = Shape(
            name="europepmc",
            id_path=("id",),
            updated_path=("dateOfRevision",),
            make_id=_make_id,
            make_record=_make_result,
            grain=DAY,
        )
        self._seal = Seal(f"europepmc/{seed}")

    def answer(self, dataset: Dataset, request: Request, twist: Twist) -> Answer:
        if request.path not in ("/europepmc/search", "/europepmc/searchPOST"):
            raise NoSuchPath
        query = request.params.get("query", "")
        window = _parse_query(query)
        if window is None:
            return answer_json({"version": _VERSION})  # all that the real one says of bad syntax
        cursor = request.params.get("cursorMark", "*")
        try:
            size = request.read_int("pageSize", 25, low=1, high=MAX_PAGE)
        except BadRequest as error:
            raise BadRequest(_BAD_SIZE, error.value) from None
        try:
            mark = None if cursor == "*" else self._seal.open_mark(cursor, query)
        except ValueError:
            raise BadRequest("Invalid cursorMark", cursor) from None
        if twist.lost:
            raise BadRequest("Invalid cursorMark", cursor)
        page = dataset.page_after(window, mark, size, back=twist.again)
        end = mark if twist.empty else page.end
        head = {
            "version": _VERSION,
            "hitCount": page.total,
            "nextCursorMark": self._seal.close_mark(end, query) if end else cursor,
            "request": {"queryString": query, "cursorMark": cursor, "pageSize": size, "sort": "", "synonym": False},
        }
        bodies = b",".join(twist.apply(page.bodies, dataset.shape))
        body = b"".join((encode_json(head).encode()[:-1], b',"resultList":{"result":[', bodies, b"]}}"))
        return Answer(200, body, f"{JSON};charset=UTF-8")

    def is_first_page(self, request: Request) -> bool:
        return request.params.get("cursorMark", "*") == "*"

    def refuse(self, status: int, reason: str, value: str = "") -> Answer:
        if status == 400:
            return answer_json({"errCode": 404, "errMsg": reason})
        return Answer(status, f"<html><body><h1>{status}</h1></body></html>".encode(), "text/html")

    def describe_allowance(self, allowance: Allowance) -> Headers:
        return ()


def _parse_query(query: str) -> Window | None:
    """Return the days a query names, all of them if it names none, or None if it cannot be read."""
    match = _RANGE.search(query)
    rest = _RANGE.sub("", query)
    if not query or "[" in rest or "]" in rest or rest.count("(") != rest.count(")"):
        return None
    if match is None:
        return BEGINNING, END
    try:
        low = BEGINNING if match[1] == "*" else parse_unit(match[1])[0]
        return low, END if match[2] == "*" else parse_unit(match[2])[1]
    except ValueError:
        return None


def _make_id(drawn: bytes, index: int) -> str:
    """Every tenth record has the number of the one before and another source: an id alone names two."""
    if index % 10 == 9:
        return f"AGR/{37_000_000 + index - 1}"
    return f"{pick(_SOURCES, drawn[30]) if index % 10 != 8 else 'MED'}/{37_000_000 + index}"


def _make_result(drawn: bytes, row: Row) -> dict[str, Any]:
    source, _, number = row.id.partition("/")
    result: dict[str, Any] = {"id": number, "source": source}
    if source == "MED":
        result["pmid"] = number
    if drawn[31] % 5:  # what is not known is absent, never null
        result["doi"] = f"10.5555/epmc.{number}"
    return result | {
        "title": write_title(drawn, row.version),
        "authorString": ", ".join(f"{family} {given[0]}" for given, family in list_people(drawn)),
        "journalTitle": pick(JOURNALS, drawn[34]),
        "pubYear": str(2019 + drawn[32] % 6),
        "isOpenAccess": "Y" if drawn[33] % 2 else "N",
        "citedByCount": drawn[35],
        "firstIndexDate": format_instant(row.first_updated)[:10],
        "dateOfRevision": format_instant(row.updated)[:10],
        "abstractText": write_text(drawn, 2),
    }
