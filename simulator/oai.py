"""OAI-PMH: a stand-in for a repository's ListRecords, in XML.

A walk goes on with `resumptionToken` and nothing else; an empty element ends it. Both ends of a window
are inclusive, a deleted record is a header alone, and every error, an empty window too, has HTTP 200.
"""

import re
import time
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from simulator.answers import Allowance, Answer, Headers, NoSuchPath, Request, Twist
from simulator.dataset import Dataset, Mark, Row, Shape, Window
from simulator.instants import BEGINNING, END, format_instant, parse_unit
from simulator.seals import Seal
from simulator.words import PUBLISHERS, list_people, pick, write_text, write_title

PAGE = 50
XML = "text/xml; charset=utf-8"
_TOKEN_SECONDS = 3600
_ARGUMENTS = {"verb", "metadataPrefix", "from", "until"}


class OaiError(Exception):
    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class Oai:
    def __init__(self, seed: int) -> None:
        self.shape = Shape(
            name="oai",
            id_path=("identifier",),
            updated_path=("datestamp",),
            make_id=lambda drawn, index: f"oai:example.org:{100_000 + index * 7 + drawn[30] % 7}",
            make_record=_make_record,
            write=_write_record,
            spoil=_spoil_record,
            tell=lambda drawn, row: {"deleted": is_deleted(drawn, row)},
        )
        self._seal = Seal(f"oai/{seed}")

    def answer(self, dataset: Dataset, request: Request, twist: Twist) -> Answer:
        if request.path != "/oai":
            raise NoSuchPath
        try:
            match request.params.get("verb"):
                case "ListRecords":
                    return _wrap(request, self._list(dataset, request, twist))
                case "Identify":
                    return _wrap(request, _IDENTIFY)
                case _:
                    raise OaiError("badVerb", "the verb is missing or not one of ListRecords and Identify")
        except OaiError as error:
            return _wrap(request, f'<error code="{error.code}">{escape(str(error))}</error>')

    def is_first_page(self, request: Request) -> bool:
        return "resumptionToken" not in request.params

    def refuse(self, status: int, reason: str, value: str = "") -> Answer:
        # Flow control is 503 with Retry-After; the protocol knows no 429.
        return Answer(503 if status == 429 else status, reason.encode(), "text/plain")

    def describe_allowance(self, allowance: Allowance) -> Headers:
        return ()

    def _list(self, dataset: Dataset, request: Request, twist: Twist) -> str:
        window, mark, cursor = self._find_place(request, twist)
        page = dataset.page_after(window, mark, PAGE, back=twist.again)
        if page.total == 0 or (not page.bodies and mark is None):
            raise OaiError("noRecordsMatch", "no records match")
        bodies = twist.apply(page.bodies, dataset.shape)
        attributes = f'completeListSize="{page.total}" cursor="{cursor}"'
        if page.start + len(page.bodies) >= page.total:
            token = f"<resumptionToken {attributes}/>" if mark else ""  # a list of one page has none at all
        else:
            after = mark if twist.empty else page.end
            sealed = self._seal.close_json([*window, *(after or Mark(BEGINNING, "")), cursor + len(page.bodies)])
            expires = format_instant(int(time.time()) + _TOKEN_SECONDS)
            token = f'<resumptionToken expirationDate="{expires}" {attributes}>{sealed}</resumptionToken>'
        return f"<ListRecords>{b''.join(bodies).decode()}{token}</ListRecords>"

    def _find_place(self, request: Request, twist: Twist) -> tuple[Window, Mark | None, int]:
        token = request.params.get("resumptionToken")
        if token is None:
            return _read_window(request), None, 0
        if set(request.params) != {"verb", "resumptionToken"}:
            raise OaiError("badArgument", "resumptionToken is an exclusive argument")
        try:
            low, high, at, id_, cursor = self._seal.open_json(token)
        except ValueError:
            raise OaiError("badResumptionToken", "no such token") from None
        if twist.lost:
            raise OaiError("badResumptionToken", "the token has expired")
        return (low, high), Mark(at, id_), cursor


def is_deleted(drawn: bytes, row: Row) -> bool:
    return (drawn[31] + row.version) % 12 == 0


def _read_window(request: Request) -> Window:
    params = request.params
    if unknown := set(params) - _ARGUMENTS:
        raise OaiError("badArgument", f"unknown argument {min(unknown)}")
    if "metadataPrefix" not in params:
        raise OaiError("badArgument", "metadataPrefix is missing")
    if params["metadataPrefix"] != "oai_dc":
        raise OaiError("cannotDisseminateFormat", "only oai_dc is served")
    first, last = params.get("from", ""), params.get("until", "")
    if first and last and len(first) != len(last):
        raise OaiError("badArgument", "from and until must have the same granularity")
    try:
        low = parse_unit(first)[0] if first else BEGINNING
        high = parse_unit(last)[1] if last else END
    except ValueError as error:
        raise OaiError("badArgument", str(error)) from None
    if low >= high:
        raise OaiError("badArgument", "from is later than until")
    return low, high


_IDENTIFY = (
    "<Identify><repositoryName>Example</repositoryName><baseURL>http://oai.example.org/oai</baseURL>"
    "<protocolVersion>2.0</protocolVersion><earliestDatestamp>2000-01-01T00:00:00Z</earliestDatestamp>"
    "<deletedRecord>persistent</deletedRecord><granularity>YYYY-MM-DDThh:mm:ssZ</granularity></Identify>"
)


def _wrap(request: Request, content: str) -> Answer:
    shown = "".join(f" {name}={quoteattr(value)}" for name, value in request.params.items() if name.isalpha())
    head = f"<responseDate>{format_instant(int(time.time()))}</responseDate><request{shown}>http://oai.example.org/oai"
    text = f'<OAI-PMH xmlns="http://www.openarchives.org/OAI/2.0/">{head}</request>{content}</OAI-PMH>'
    return Answer(200, f'<?xml version="1.0" encoding="UTF-8"?>\n{text}'.encode(), XML)


def _make_record(drawn: bytes, row: Row) -> dict[str, Any]:
    fields = [("title", write_title(drawn, row.version)), ("publisher", pick(PUBLISHERS, drawn[32]))]
    fields += [("creator", f"{family}, {given}") for given, family in list_people(drawn)]
    fields += [("description", write_text(drawn, 2)), ("identifier", f"doi:10.5555/oai.{row.index}")]
    return {
        "identifier": row.id,
        "datestamp": format_instant(row.updated),
        "fields": None if is_deleted(drawn, row) else fields,
    }


def _write_record(record: dict[str, Any]) -> str:
    name = f"<identifier>{record['identifier']}</identifier><datestamp>{record['datestamp']}</datestamp>"
    if record["fields"] is None:
        return f'<record><header status="deleted">{name}</header></record>'
    fields = "".join(f"<dc:{key}>{escape(value)}</dc:{key}>" for key, value in record["fields"])
    spaces = 'xmlns:oai_dc="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:dc="http://purl.org/dc/elements/1.1/"'
    metadata = f"<metadata><oai_dc:dc {spaces}>{fields}</oai_dc:dc></metadata>"
    return f"<record><header>{name}<setSpec>med</setSpec></header>{metadata}</record>"


def _spoil_record(body: bytes, which: str) -> bytes:
    if which == "id":
        return re.sub(rb"<identifier>[^<]*</identifier>", b"", body, count=1)
    return re.sub(rb"<datestamp>[^<]*<", b"<datestamp>the day before yesterday<", body, count=1)
