"""Crossref: a stand-in for `GET /works` with a cursor.

`next-cursor` is always there, on the last page and after it too, so only a short page ends a walk. A
cursor is a place in the time order, sealed together with the filter it was given for: asking it again
gives the same page, and asking it with another filter is refused.
"""

from typing import Any

from simulator.answers import (
    JSON,
    Allowance,
    Answer,
    BadRequest,
    Headers,
    NoSuchPath,
    Request,
    Twist,
    answer_json,
)
from simulator.dataset import Dataset, Mark, Row, Shape, encode_json
from simulator.instants import BEGINNING, DAY, END, find_date, format_instant, parse_unit
from simulator.seals import Seal
from simulator.words import INSTITUTES, JOURNALS, PUBLISHERS, list_people, pick, write_text, write_title

MAX_ROWS = 1000
# In base64 this begins with "+/", so a client that does not url-encode its cursor is found out at once.
_MAGIC = b"\xfb\xff"
_BAD_CURSOR = "Cursor specified is not valid for this query"
_TYPES = ("journal-article", "journal-article", "posted-content", "book-chapter", "dataset")


class Crossref:
    def __init__(self, seed: int) -> None:
        self.shape = Shape(
            name="crossref",
            id_path=("DOI",),
            updated_path=("indexed", "date-time"),
            make_id=_make_doi,
            make_record=_make_work,
            fold_id=str.lower,  # a DOI is one name in any case
        )
        self._seal = Seal(f"crossref/{seed}", magic=_MAGIC)

    def answer(self, dataset: Dataset, request: Request, twist: Twist) -> Answer:
        if request.path != "/crossref/works":
            raise NoSuchPath
        rows = request.read_int("rows", 20, low=0, high=MAX_ROWS)
        filters = request.params.get("filter", "")
        window = _parse_filter(filters)
        cursor = request.params.get("cursor")
        mark = None if cursor in (None, "*") else self._open(cursor or "", filters)
        if twist.lost:
            raise BadRequest(_BAD_CURSOR, cursor or "")
        page = dataset.page_after(window, mark, rows, back=twist.again)
        head = {"facets": {}, "total-results": page.total, "items-per-page": rows}
        if cursor is not None:
            head["next-cursor"] = self._seal.close_mark(page.end if not twist.empty else mark, filters)
        text = encode_json(
            {"status": "ok", "message-type": "work-list", "message-version": "1.0.0", "message": head}
        ).encode()
        bodies = twist.apply(page.bodies, dataset.shape)
        body = b"".join((text[:-2], b',"items":[', b",".join(bodies), b"]}}"))
        return Answer(200, body, f"{JSON};charset=utf-8")

    def is_first_page(self, request: Request) -> bool:
        return request.params.get("cursor", "*") == "*"

    def refuse(self, status: int, reason: str, value: str = "") -> Answer:
        match status:
            case 404:
                return Answer(404, b"Resource not found.", "text/plain")
            case 429:
                return Answer(429, b"", "text/plain")  # the real one says nothing either
            case 400:
                message = [{"type": "parameter-not-valid", "value": value, "message": reason}]
                return answer_json({"status": "failed", "message-type": "validation-failure", "message": message}, 400)
            case _:
                return Answer(status, f"<html><body><h1>{status}</h1></body></html>".encode(), "text/html")

    def describe_allowance(self, allowance: Allowance) -> Headers:
        return (
            ("x-rate-limit-limit", str(allowance.limit)),
            ("x-rate-limit-interval", f"{allowance.window_s:g}s"),
        )

    def _open(self, cursor: str, filters: str) -> Mark:
        try:
            return self._seal.open_mark(cursor, filters)
        except ValueError:
            raise BadRequest(_BAD_CURSOR, cursor) from None


def _parse_filter(text: str) -> tuple[int, int]:
    low, high = BEGINNING, END
    for part in filter(None, text.split(",")):
        name, _, value = part.partition(":")
        try:
            match name:
                case "from-index-date":
                    low = max(low, parse_unit(value)[0])
                case "until-index-date":
                    high = min(high, parse_unit(value)[1])
                case _:
                    raise BadRequest(f"Filter {name} specified but there is no such filter", name)
        except ValueError:
            raise BadRequest(f"Filter {name} must be a date or a time, not {value}", value) from None
    return low, high


def _make_doi(drawn: bytes, index: int) -> str:
    stem = pick(("Exm", "JIR", "nrm", "OFS", "pFs", "QCM", "tsl", "TPS"), drawn[30])
    return f"10.{5000 + drawn[31] * 4}/{stem}.{2019 + drawn[32] % 6}.{index:07d}"


def _make_work(drawn: bytes, row: Row) -> dict[str, Any]:
    prefix = row.id.partition("/")[0]
    title = "" if drawn[33] == 0 and row.version == 1 else write_title(drawn, row.version)
    return {
        "DOI": row.id,
        "type": pick(_TYPES, drawn[34]),
        "title": [title],
        "issued": {"date-parts": [_make_partial_date(drawn)]},
        "indexed": _stamp(row.updated) | {"version": "3.73.0"},
        "deposited": _stamp(row.first_updated - 3600 - drawn[35] * 60),
        "author": [
            {
                "given": given,
                "family": family,
                "sequence": "additional" if n else "first",
                "affiliation": [{"name": pick(INSTITUTES, drawn[36 + n])}],
            }
            for n, (given, family) in enumerate(list_people(drawn))
        ],
        "container-title": [pick(JOURNALS, drawn[40])],
        "publisher": pick(PUBLISHERS, drawn[41]),
        "ISSN": [f"{1000 + drawn[40]:04d}-{2000 + drawn[41]:04d}"],
        "volume": str(1 + drawn[42] % 80),
        "page": f"{drawn[43] + 1}-{drawn[43] + 9}",
        "language": "en",
        "prefix": prefix,
        "member": str(1000 + drawn[31]),
        "reference-count": drawn[44],
        "is-referenced-by-count": drawn[45] + row.version - 1,
        "abstract": f"<jats:p>{write_text(drawn, 2)}</jats:p>",
        "URL": f"https://doi.example/{row.id}",
        "score": 1.0,
    }


def _make_partial_date(drawn: bytes) -> list[int | None]:
    """Most works have a whole date, some a month or a year, a few nothing: `[[null]]`, as in real life."""
    year, month, day = 2019 + drawn[32] % 6, 1 + drawn[46] % 12, 1 + drawn[47] % 28
    match drawn[48] % 64:
        case 0:
            return [None]
        case 1 | 2 | 3 | 4:
            return [year]
        case rest if rest < 16:
            return [year, month]
        case _:
            return [year, month, day]


def _stamp(seconds: int) -> dict[str, Any]:
    return {
        "date-parts": [find_date(seconds // DAY)],
        "date-time": format_instant(seconds),
        "timestamp": seconds * 1000,
    }
