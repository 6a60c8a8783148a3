"""Stripe: a stand-in for `/v1/events`, newest first, continued after the last id.

There is no token and no total: `starting_after` names the last event of the page before, and
`has_more` tells the end. An event's time is when it happened; a change to it leaves that time.
"""

import re
from typing import Any

from simulator.answers import (
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
from simulator.dataset import Dataset, Row, Shape, Window
from simulator.instants import BEGINNING, END
from simulator.words import pick, write_title

_KEY = re.compile(r"(?:Bearer (?:sk|rk)_\S+|Basic \S+)")
_TYPES = ("customer.created", "customer.updated", "charge.succeeded", "charge.refunded", "invoice.paid")
_BOUNDS = {"created[gte]": (0, 0), "created[gt]": (0, 1), "created[lt]": (1, 0), "created[lte]": (1, 1)}


class Stripe:
    def __init__(self) -> None:
        self.shape = Shape(
            name="stripe",
            id_path=("id",),
            updated_path=("created",),
            make_id=lambda drawn, index: f"evt_{drawn[30:36].hex()}{index:06d}",
            make_record=_make_event,
            moves=False,
        )

    def answer(self, dataset: Dataset, request: Request, twist: Twist) -> Answer:
        if request.path != "/stripe/v1/events":
            raise NoSuchPath
        if not _KEY.fullmatch(request.get_header("Authorization")):
            raise Unauthorized
        if unknown := set(request.params) - {"limit", "starting_after", *_BOUNDS}:
            raise BadRequest(f"Received unknown parameter: {min(unknown)}", min(unknown))
        size = request.read_int("limit", 10, low=1, high=100)
        after = request.params.get("starting_after")
        try:
            page = dataset.page_before(_read_window(request), after, size, back=twist.again)
        except KeyError:
            raise BadRequest(f"No such event: '{after}'", "starting_after") from None
        bodies = twist.apply(page.bodies, dataset.shape)
        more = b"true" if page.start + len(page.bodies) < page.total else b"false"
        data = b",".join(bodies)
        return Answer(200, b'{"object":"list","url":"/v1/events","has_more":%b,"data":[%b]}' % (more, data))

    def is_first_page(self, request: Request) -> bool:
        return "starting_after" not in request.params

    def refuse(self, status: int, reason: str, value: str = "") -> Answer:
        error = {"type": "invalid_request_error", "message": reason}
        match status:
            case 401:
                error["message"] = "You did not provide an API key."
            case 429:
                error |= {"code": "rate_limit", "message": "Too many requests hit the API too quickly."}
            case 400:
                error["param"] = value
            case _ if status >= 500:
                error["type"] = "api_error"
        return answer_json({"error": error}, status)

    def describe_allowance(self, allowance: Allowance) -> Headers:
        return ()


def _read_window(request: Request) -> Window:
    ends = [BEGINNING, END]
    for name, (side, more) in _BOUNDS.items():
        if name in request.params:
            at = request.read_int(name, 0, low=0) + more
            ends[side] = min(ends[1], at) if side else max(ends[0], at)
    return ends[0], ends[1]


def _make_event(drawn: bytes, row: Row) -> dict[str, Any]:
    kind = pick(_TYPES, drawn[40])
    thing = kind.partition(".")[0]
    return {
        "id": row.id,
        "object": "event",
        "api_version": "2024-06-20",
        "created": row.updated,
        "type": kind,
        "livemode": False,
        "pending_webhooks": row.version - 1,  # all that ever changes in an event
        "request": {"id": f"req_{drawn[41:47].hex()}", "idempotency_key": None},
        "data": {
            "object": {
                "id": f"{thing[:3]}_{drawn[47] % 40:04d}",
                "object": thing,
                "amount": int.from_bytes(drawn[48:50], "big"),
                "currency": "eur",
                "description": write_title(drawn, 1),
            }
        },
    }
