"""Shopify: a stand-in for the Admin API's orders, paged by Link header.

The link carries an opaque `page_info`, and beside that nothing but `limit` may be sent. Orders come
by updated time, both ends of a window are inclusive seconds, and times are written in the shop's zone.
"""

import re
from typing import Any
from urllib.parse import urlencode

from simulator.answers import (
    JSON,
    Allowance,
    Answer,
    BadRequest,
    Headers,
    NoSuchPath,
    Request,
    Twist,
    Unauthorized,
    answer_json,
)
from simulator.dataset import Dataset, Mark, Row, Shape, Window
from simulator.instants import BEGINNING, END, format_instant, parse_unit
from simulator.seals import Seal
from simulator.words import NOUNS, list_people, pick

MAX_LIMIT = 250
_PATH = re.compile(r"/shopify/admin/api/\d{4}-\d{2}/orders\.json")
_CALL_LIMIT = "X-Shopify-Shop-Api-Call-Limit"
_BAD_PAGE = "Invalid page_info"


class Shopify:
    def __init__(self, seed: int) -> None:
        self.shape = Shape(
            name="shopify",
            id_path=("id",),
            updated_path=("updated_at",),
            make_id=lambda drawn, index: str(450_000_000_000 + index * 13 + drawn[30] % 13),
            make_record=_make_order,
        )
        self._seal = Seal(f"shopify/{seed}")

    def answer(self, dataset: Dataset, request: Request, twist: Twist) -> Answer:
        if not _PATH.fullmatch(request.path):
            raise NoSuchPath
        if not request.get_header("X-Shopify-Access-Token"):
            raise Unauthorized
        size = request.read_int("limit", 50, low=1, high=MAX_LIMIT)
        window, mark = self._find_place(request, twist)
        page = dataset.page_after(window, mark, size, back=twist.again)
        bodies = twist.apply(page.bodies, dataset.shape)
        headers: Headers = ((_CALL_LIMIT, "1/40"),)
        if page.start + len(page.bodies) < page.total:
            after = (mark if twist.empty else page.end) or Mark(BEGINNING, "")
            query = urlencode({"limit": size, "page_info": self._seal.close_json([*window, *after])})
            headers += (("Link", f'<http://{request.host}{request.path}?{query}>; rel="next"'),)
        return Answer(200, b'{"orders":[%b]}' % b",".join(bodies), f"{JSON}; charset=utf-8", headers)

    def is_first_page(self, request: Request) -> bool:
        return "page_info" not in request.params

    def refuse(self, status: int, reason: str, value: str = "") -> Answer:
        match status:
            case 401:
                return answer_json({"errors": "[API] Invalid API key or access token"}, 401)
            case 404:
                return answer_json({"errors": "Not Found"}, 404)
            case 429:
                errors = "Exceeded 2 calls per second for api client. Reduce request rates to resume service."
                return answer_json({"errors": errors}, 429, ((_CALL_LIMIT, "40/40"), ("Retry-After", "2.0")))
            case _:
                return answer_json({"errors": reason}, status)

    def describe_allowance(self, allowance: Allowance) -> Headers:
        return ((_CALL_LIMIT, f"{allowance.limit - allowance.remaining}/{allowance.limit}"),)

    def _find_place(self, request: Request, twist: Twist) -> tuple[Window, Mark | None]:
        token = request.params.get("page_info")
        if token is None:
            return _read_window(request), None
        if others := set(request.params) - {"page_info", "limit"}:
            raise BadRequest(f"{min(others)} cannot be passed when page_info is present")
        try:
            low, high, at, id_ = self._seal.open_json(token)
        except ValueError:
            raise BadRequest(_BAD_PAGE) from None
        if twist.lost:
            raise BadRequest(_BAD_PAGE)
        return (low, high), Mark(at, id_)


def _read_window(request: Request) -> Window:
    low, high = request.params.get("updated_at_min", ""), request.params.get("updated_at_max", "")
    try:
        return parse_unit(low)[0] if low else BEGINNING, parse_unit(high)[1] if high else END
    except ValueError as error:
        raise BadRequest(str(error)) from None


def _write_shop_time(seconds: int) -> str:
    return format_instant(seconds - 5 * 3600).replace("Z", "-05:00")


def _make_order(drawn: bytes, row: Row) -> dict[str, Any]:
    given, family = list_people(drawn)[0]
    return {
        "id": int(row.id),
        "name": f"#{1001 + row.index}",
        "email": f"user{drawn[31]}@mail.example",
        "created_at": _write_shop_time(row.first_updated - 3600 - drawn[32] * 60),
        "updated_at": _write_shop_time(row.updated),
        "currency": "CAD",
        "total_price": f"{int.from_bytes(drawn[33:35], 'big') / 100:.2f}",
        "financial_status": "paid" if row.version % 2 else "refunded",
        "note": None if row.version == 1 else f"revision {row.version}",
        "customer": {"first_name": given, "last_name": family},
        "line_items": [
            {"title": pick(NOUNS, drawn[36 + n]), "quantity": 1 + drawn[40 + n] % 4} for n in range(1 + drawn[35] % 3)
        ],
    }
