"""The settings a source, its defaults, an endpoint and a trigger have in common, as people write them.

Invariant: nothing is defaulted here. None means "not written", so that the merge can tell what was (A3).
"""

import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    WithJsonSchema,
    field_validator,
)
from pydantic import model_validator as check_model

from ingest.durations import parse_duration, parse_rate, parse_size

SHORTEST_EVERY_S = 60  # G3: a file may ask for a minute and more
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ].+)?")


class Written(BaseModel):
    """Base of everything read from a file: strict types, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=False)


def _read(parse: Callable[[str], Any], expected: str) -> BeforeValidator:
    def read(value: Any) -> Any:
        if not isinstance(value, str):
            raise ValueError(f"expected {expected}, got {show(value)}")
        return parse(value)

    return BeforeValidator(read)


def show(value: Any) -> str:
    """Return a value as it should stand in a message: short, and text in quotes."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = f"'{value}'" if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else text[:57] + "...'"


def read_instant(text: str) -> datetime:
    """Read a date or a time; one without a zone stays naive, for the caller to place in the zone it knows."""
    if not _DATE.fullmatch(text):
        raise ValueError(f"'{text}' is not a date: write 2024-01-31 or 2024-01-31T12:00:00Z")
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise ValueError(f"'{text}' is not a date: {error}") from error


def _read_window(text: str) -> dict[str, JsonValue]:
    limit, span = parse_rate(text)
    return {"limit": limit, "seconds": plain_seconds(span.total_seconds())}


def plain_seconds(seconds: float) -> float | int:
    """Return whole seconds as an integer, so that stored and written values compare as equal text too."""
    return int(seconds) if seconds == int(seconds) else seconds


def _read_share(text: str) -> float:
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s?%", text)
    if match is None or float(match[1]) > 100:
        raise ValueError(f"'{text}' is not a share: write 10%")
    return float(match[1]) / 100


def _text_schema(description: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "description": description, "examples": list(examples)})


Duration = Annotated[
    float,
    _read(lambda text: plain_seconds(parse_duration(text).total_seconds()), "a duration such as 15m"),
    _text_schema("a duration", "90s", "15m", "1h30m", "7d", "PT15M"),
]
Size = Annotated[int, _read(parse_size, "a size such as 64MiB"), _text_schema("a size", "64MiB", "10MB")]
RateText = Annotated[
    dict[str, JsonValue],
    _read(_read_window, "a rate such as 10/s"),
    _text_schema("how many requests in how long", "10/s", "200/min", "195/60s"),
]
Instant = Annotated[
    datetime, _read(read_instant, "a date such as 2024-01-31"), _text_schema("a date or time", "2024-01-31")
]
Share = Annotated[float, _read(_read_share, "a share such as 10%"), _text_schema("a share of all records", "10%")]
Positive = Annotated[int, Field(ge=1)]


class Timeouts(Written):
    """How long to wait; none above 2m (B2)."""

    connect: Duration | None = None
    read: Duration | None = None
    total: Duration | None = None


class HttpOptions(Written):
    """The rest of how requests are sent (B2)."""

    redirects: Annotated[int, Field(ge=0, le=3)] | None = None
    compression: bool | None = None
    proxy: str | None = None


class Pagination(Written):
    """How to get the next page and how to know there is none (B3, B4)."""

    kind: str | None = None
    size: Positive | None = None
    max_size: Positive | None = Field(default=None, description="the vendor's largest page")
    base: int | None = Field(default=None, description="kind page: the number of the first page")
    start: str | None = Field(default=None, description="kind token: what the first request sends; offset: a number")
    max_page: Positive | None = None
    next: str | None = Field(default=None, description="JSONPath of the next token or URL")
    next_in: Literal["body", "link_header"] | None = None
    has_more: str | None = Field(default=None, description="JSONPath of a value that is false on the last page")
    stop: list[str] | None = None
    order_by: str | None = None
    token: Literal["repeatable", "consuming"] | None = None
    advance_by: Literal["received", "asked"] | None = None

    @field_validator("stop", mode="before")
    @classmethod
    def _one_rule(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @field_validator("start", mode="before")
    @classmethod
    def _number_as_text(cls, value: Any) -> Any:
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


class Window(Written):
    """Which stretch of time a request covers, and how its ends are written (B5)."""

    filter: str | None = None
    field: str | None = None
    start: Instant | None = None
    ends: Literal["exclusive", "inclusive"] | None = None
    precision: str | None = None
    bound: Literal["unit", "instant"] | None = None
    zone: str | None = None
    format: str | None = None
    safety_lag: Duration | None = None
    max: Duration | None = None
    min: Duration | None = None
    align: Literal["minute", "hour", "day"] | None = None


class Retry(Written):
    """Repeating one request (B12)."""

    policy: Literal["exponential_jitter", "exponential", "linear", "fixed"] | None = None
    attempts: Annotated[int, Field(ge=1, le=20)] | None = None
    base: Duration | None = None
    factor: Annotated[float, Field(ge=1)] | None = None
    jitter: Annotated[float, Field(ge=0, le=1)] | None = None
    cap: Duration | None = None
    statuses: list[Annotated[int, Field(ge=400, le=599)]] | None = None


class Rate(Written):
    """What the gate may let through (C2, C8); `10/s` or a list of such texts is short for `windows`."""

    windows: list[RateText] | None = None
    per_second: Annotated[float, Field(gt=0)] | None = None
    burst: Positive | None = None
    demote: Annotated[float, Field(ge=2, le=4)] | None = None
    minimum: Annotated[float, Field(gt=0)] | None = None
    share: Literal["endpoint", "source"] | None = None

    @check_model(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if isinstance(value, str | list):
            value = {"windows": value}
        if isinstance(value, dict) and isinstance(value.get("windows"), str):
            value = value | {"windows": [value["windows"]]}
        return value


class Budget(Written):
    """What one slice may use and how many tasks may wait (C9, D6)."""

    requests: Positive | None = None
    records: Positive | None = None
    duration: Duration | None = None
    inventory: Positive | None = None
    priority: Annotated[int, Field(ge=0, le=1000)] | None = None


class BodyTest(Written):
    """What a response rule asks of one value of the body."""

    path: str
    equals: JsonValue = None
    among: list[JsonValue] | None = Field(default=None, alias="in")
    matches: str | None = Field(default=None, description="a regular expression found in the value's text")
    contains: str | None = None
    exists: bool | None = None

    @check_model(mode="after")
    def _one_question(self) -> "BodyTest":
        asked = self.model_fields_set - {"path"}
        if len(asked) != 1 or getattr(self, *asked) is None:
            raise ValueError("ask one thing of the value: equals, in, matches, contains or exists")
        return self


class ResponseRule(Written):
    """One response rule: which answers it is about, and what they mean (B13)."""

    status: list[str] | None = Field(default=None, description="404, 4xx, or a list of such")
    header: dict[str, str] | None = Field(default=None, description="header name: regular expression")
    content_type: str | None = None
    contains: str | None = Field(default=None, description="text anywhere in the body")
    body: BodyTest | None = None
    then: Literal["ok", "empty", "end", "retry", "throttle", "refuse", "fatal", "refresh"]
    wait: Duration | None = Field(default=None, description="then throttle: how long nothing is sent")
    covers: bool | None = Field(default=None, description="then empty: the window counts as covered all the same")
    because: str | None = Field(default=None, description="what to tell people")

    @field_validator("status", mode="before")
    @classmethod
    def _statuses(cls, value: Any) -> Any:
        listed = value if isinstance(value, list) else [value]
        return [str(item) if isinstance(item, int) and not isinstance(item, bool) else item for item in listed]


def _rule_rows(rules: list[ResponseRule]) -> list[dict[str, JsonValue]]:
    """Return the rules as rows keep them: only what was written, durations in seconds."""
    rows = []
    for rule in rules:
        row = rule.model_dump(exclude_none=True)
        if "wait" in row:
            row["wait_s"] = row.pop("wait")
        rows.append(row)
    return rows


Responses = Annotated[list[ResponseRule], AfterValidator(_rule_rows)]


class Requested(Written):
    """What both a source and an endpoint say about sending requests."""

    timeouts: Timeouts | None = None
    http: HttpOptions | None = None
    retry: Retry | None = None
    rate: Rate | None = None
    responses: Responses | None = Field(default=None, description="what answers mean; the first rule that fits wins")
    functions: list[str] | None = Field(default=None, description="the template functions allowed; default: all known")


class Tunable(Requested):
    """Everything that can also be set for all endpoints by `defaults`, or for one run by a trigger."""

    pagination: Pagination | None = None
    window: Window | None = None
    budget: Budget | None = None
    concurrency: Positive | None = None
    quarantine: Share | None = Field(default=None, description="a walk with more rejected records covers nothing")
    max_body: Size | None = None
    payload: str | None = Field(default=None, description="how the record's own text is kept")
