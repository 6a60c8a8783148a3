"""Plain: the API everybody writes first, with page and size, or offset and limit.

Items come in the order they were made, which updates do not change, so a walk that lasts while
records change still meets every one of them. `updated_from` and `updated_to` are half-open. With
`bad_every=K` every K-th item is spoilt, in turns by a missing id and by a date that is none.
"""

from typing import Any

from simulator.answers import (
    Allowance,
    Answer,
    BadRequest,
    Headers,
    NoSuchPath,
    Request,
    Twist,
    answer_json,
    spoil,
)
from simulator.dataset import Dataset, Page, Row, Shape
from simulator.instants import format_instant, parse_window
from simulator.words import ADJECTIVES, NOUNS, list_people, pick, write_text, write_title

MAX_SIZE = 1000
_STATES = ("active", "active", "paused", "retired")


class Plain:
    def __init__(self) -> None:
        self.shape = Shape(
            name="plain",
            id_path=("id",),
            updated_path=("updated_at",),
            make_id=lambda drawn, index: f"item-{index:08d}-{drawn[30:32].hex()}",
            make_record=_make_item,
        )

    def answer(self, dataset: Dataset, request: Request, twist: Twist) -> Answer:
        if request.path != "/plain/items":
            raise NoSuchPath
        start, size = _read_place(request)
        start = max(0, start - size) if twist.again else start
        low, high = request.params.get("updated_from"), request.params.get("updated_to")
        try:
            window = parse_window(low, high)
        except ValueError as error:
            raise BadRequest(str(error), f"{low} {high}") from None
        page = dataset.page_by_id(window, start, size)
        spoilt = _spoil_some(page, self.shape, request.read_int("bad_every", 0, low=0))
        bodies = twist.apply(spoilt, self.shape)
        more = b"true" if start + len(page.bodies) < page.total else b"false"
        return Answer(200, b'{"data":[%b],"total":%d,"has_more":%b}' % (b",".join(bodies), page.total, more))

    def is_first_page(self, request: Request) -> bool:
        return request.params.get("page", "1") in ("", "1") and request.params.get("offset", "0") in ("", "0")

    def refuse(self, status: int, reason: str, value: str = "") -> Answer:
        return answer_json({"error": {"status": status, "message": reason, "value": value}}, status)

    def describe_allowance(self, allowance: Allowance) -> Headers:
        return (
            ("x-ratelimit-limit", str(allowance.limit)),
            ("x-ratelimit-remaining", str(allowance.remaining)),
            ("x-ratelimit-reset", str(int(-(-allowance.reset_at // 1)))),
        )


def _read_place(request: Request) -> tuple[int, int]:
    """Return where the page starts and how long it is."""
    if "offset" in request.params or "limit" in request.params:
        if "page" in request.params or "size" in request.params:
            raise BadRequest("use page and size, or offset and limit, not both")
        return request.read_int("offset", 0, low=0), request.read_int("limit", 100, low=1, high=MAX_SIZE)
    size = request.read_int("size", 100, low=1, high=MAX_SIZE)
    return (request.read_int("page", 1, low=1) - 1) * size, size


def _spoil_some(page: Page, shape: Shape, every: int) -> list[bytes]:
    if every == 0:
        return page.bodies
    bodies = list(page.bodies)
    for position, index in enumerate(page.indexes):
        turn, rest = divmod(index + 1, every)
        if rest == 0:
            bodies[position] = spoil(bodies[position], shape, "id" if turn % 2 else "updated_at")
    return bodies


def _make_item(drawn: bytes, row: Row) -> dict[str, Any]:
    given, family = list_people(drawn)[0]
    return {
        "id": row.id,
        "title": write_title(drawn, row.version),
        "status": pick(_STATES, drawn[33]),
        "version": row.version,
        "created_at": format_instant(row.first_updated - 86_400 - drawn[34] * 60),
        "updated_at": format_instant(row.updated),
        # Past 2**53: a client that reads numbers as floats changes it.
        "ledger_number": 9_007_199_254_740_993 + row.index,
        "amount": f"{int.from_bytes(drawn[35:38], 'big') / 100:.2f}",
        "quantity": drawn[38] - 20,
        "ratio": round(drawn[39] / 256, 4),
        "active": drawn[33] % 4 < 2,
        "note": None if drawn[40] % 5 == 0 else write_text(drawn, 1),
        "tags": [pick(NOUNS, drawn[41 + n]) for n in range(drawn[44] % 4)],
        "owner": {
            "name": f"{given} {family}",
            "email": f"user{drawn[45]}@mail.example",
            "address": {
                "street": f"{drawn[46] + 1} {pick(ADJECTIVES, drawn[47])} Road",
                "zip": f"{drawn[48]:05d}",
            },
        },
        "description": write_text(drawn[4:], 5),
    }
