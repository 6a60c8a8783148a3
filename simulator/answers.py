"""Requests and answers as plain values, apart from any socket, and what every API offers.

An `Answer` is complete: its body is final and its Content-Length is not yet written. What a fault
does to a page while it is made is a `Twist`; what it does while it is sent is a `Delivery`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol
from urllib.parse import parse_qsl

from simulator.dataset import Dataset, Shape, encode_json

JSON = "application/json"
Headers = tuple[tuple[str, str], ...]
SpoilField = Literal["id", "updated_at"]


@dataclass(frozen=True, slots=True)
class Request:
    """One request; `path` has no query, `target` is both as sent."""

    method: str
    path: str
    target: str
    params: Mapping[str, str]
    host: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def get_header(self, name: str) -> str:
        """Return a header, whatever its case, or the empty text."""
        return next((value for key, value in self.headers.items() if key.lower() == name.lower()), "")

    def read_int(self, name: str, default: int, *, low: int, high: int | None = None) -> int:
        """Return parameter `name` as a whole number; raises BadRequest if it is none or out of range."""
        text = self.params.get(name, "")
        if text == "":
            return default
        number = int(text) if text.isascii() and text.isdigit() else -1
        if number < low or (high is not None and number > high):
            limits = f"{low} or more" if high is None else f"{low} to {high}"
            raise BadRequest(f"{name} must be a whole number, {limits}", text)
        return number


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes
    content_type: str = JSON
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Delivery:
    """How an answer leaves: at once and whole, unless a fault says otherwise."""

    delay_s: float = 0.0
    drip: bool = False
    cut: int | None = None  # send only so many bytes of the body, then close
    hang_up: bool = False  # close without a byte


@dataclass(frozen=True, slots=True)
class Twist:
    """What a fault does to a page: the page before again, no records, spoilt ones, or a token forgotten."""

    again: bool = False
    empty: bool = False
    spoil_at: int | None = None  # position in the page, from 0
    spoil_every: int | None = None
    spoil_field: SpoilField = "id"
    lost: bool = False  # the token of this request is no longer known

    def apply(self, bodies: list[bytes], shape: Shape) -> list[bytes]:
        if self.empty:
            return []
        if self.spoil_at is None and not self.spoil_every:
            return bodies
        return [
            spoil(body, shape, self.spoil_field) if self._spoils(position) else body
            for position, body in enumerate(bodies)
        ]

    def _spoils(self, position: int) -> bool:
        if self.spoil_every:
            return (position + 1) % self.spoil_every == 0
        return position == self.spoil_at


class Unauthorized(Exception):
    """The request does not say who it is from."""


class BadRequest(Exception):
    """The request breaks the API's rules; the API says so in its own words."""

    def __init__(self, reason: str, value: str = "") -> None:
        super().__init__(reason)
        self.reason = reason
        self.value = value


class NoSuchPath(Exception):
    """The API has nothing at this path."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a rate limit said of one request; a positive `wait_s` means refused."""

    limit: int
    window_s: float
    remaining: int
    wait_s: float
    reset_at: float


class Api(Protocol):
    """One vendor: the shape of its records and the manners of its answers."""

    @property
    def shape(self) -> Shape: ...

    def answer(self, dataset: Dataset, request: Request, twist: Twist) -> Answer: ...

    def is_first_page(self, request: Request) -> bool: ...

    def refuse(self, status: int, reason: str, value: str = "") -> Answer: ...

    def describe_allowance(self, allowance: Allowance) -> Headers: ...


def spoil(body: bytes, shape: Shape, which: SpoilField) -> bytes:
    """Return the record without its id, or with a date that is none."""
    if shape.spoil is not None:
        return shape.spoil(body, which)
    record = json.loads(body)
    *parents, leaf = shape.id_path if which == "id" else shape.updated_path
    place = record
    for parent in parents:
        place = place[parent]
    if which == "id":
        del place[leaf]
    else:
        place[leaf] = "the day before yesterday"
    return encode_json(record).encode()


def set_headers(headers: Headers, new: Headers) -> Headers:
    """Return `headers` with the new ones, which take the place of those of the same name."""
    names = {name.lower() for name, _ in new}
    return tuple(pair for pair in headers if pair[0].lower() not in names) + new


def answer_json(value: object, status: int = 200, headers: Headers = ()) -> Answer:
    return Answer(status, encode_json(value).encode(), headers=headers)


def read_params(query: str, content_type: str, body: bytes) -> dict[str, str]:
    """Return the parameters of query and body (a form or a flat JSON object); the last one wins."""
    params = dict(parse_qsl(query, keep_blank_values=True))
    if content_type.startswith("application/x-www-form-urlencoded"):
        params.update(parse_qsl(body.decode(), keep_blank_values=True))
    elif content_type.startswith(JSON) and body:
        value: Any = json.loads(body)
        if isinstance(value, dict):
            params.update({str(key): _text(item) for key, item in value.items()})
    return params


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
