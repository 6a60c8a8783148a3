"""The source file as a person writes it (DESIGN §9): short forms allowed, nothing defaulted, unknown keys refused.

Invariant: these models check shape only. Whether the parts fit together is `registry.checks`' work, over merged values.
"""

from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pydantic import Field, JsonValue, PlainValidator, WithJsonSchema, field_validator
from pydantic import model_validator as check_model

from ingest.rhythm import check_cron, check_quiet
from registry.partitions import Partition
from registry.sections import SHORTEST_EVERY_S, Duration, Instant, Requested, Tunable, Written, show

CODE_PATTERN = r"^[a-z][a-z0-9_]{0,29}$"
Code = Annotated[str, Field(pattern=CODE_PATTERN)]
_SCALAR_SCHEMA = WithJsonSchema({"type": ["string", "number", "boolean"]})


def _read_scalar(value: Any) -> str | int | float | bool:
    if not isinstance(value, str | int | float | bool):
        raise ValueError(f"expected one value, got {show(value)}")
    return value


def _read_template(value: Any) -> str:
    scalar = _read_scalar(value)
    return show(scalar) if isinstance(scalar, bool) else str(scalar)


Scalar = Annotated[str | int | float | bool, PlainValidator(_read_scalar), _SCALAR_SCHEMA]
Template = Annotated[str, PlainValidator(_read_template), _SCALAR_SCHEMA]


class Auth(Written):
    """One credential: where it goes and where its value is kept; never the value (B1)."""

    type: str
    location: str | None = Field(default=None, alias="in")
    name: str | None = Field(default=None, description="the header or query parameter")
    prefix: str | None = Field(default=None, description="text before the secret, such as 'Bearer '")
    secret: str | None = Field(default=None, description="env:NAME or file:/path")
    username: str | None = Field(default=None, description="basic: env:NAME or file:/path")
    scope: Literal["data"] | None = Field(default=None, description="data: the credential decides which records come")
    code: Code | None = None
    priority: Annotated[int, Field(ge=0)] | None = None


class Schedule(Written):
    """When to look for missing work (G1, G2); nothing written means every 12h."""

    every: Duration | None = None
    once: Instant | None = None
    cron: str | None = Field(default=None, description="five fields, such as 30 2 * * *, in `zone`")
    start: Instant | None = Field(default=None, description="the first fire; without it an interval begins at once")
    zone: str | None = Field(default=None, description="the zone of `cron` and `quiet`; default UTC")
    jitter: Duration | None = Field(default=None, description="each fire starts up to this much later")
    on_missed: Literal["skip", "one", "all"] | None = Field(
        default=None, description="fires missed while no planner ran: wait for the next, make up the last, or all"
    )
    grace: Duration | None = Field(default=None, description="how late a fire is still on time; default 60s")
    quiet: list[str] | None = Field(default=None, description="hours in which nothing fires, such as 22:00-06:00")
    enabled: bool | None = None

    @field_validator("quiet", mode="before")
    @classmethod
    def _one_stretch(cls, value: Any) -> Any:
        return [value] if isinstance(value, str) else value

    @check_model(mode="after")
    def _one_kind(self) -> "Schedule":
        kinds = [name for name in ("every", "once", "cron") if getattr(self, name) is not None]
        if len(kinds) > 1:
            raise ValueError(
                "a schedule is 'every: 1h', 'once: 2024-01-31T12:00:00Z' or 'cron: 30 2 * * *': one of them"
            )
        if self.every is not None and self.every < SHORTEST_EVERY_S:
            raise ValueError(f"'every' is at least {SHORTEST_EVERY_S}s")
        if self.once is not None and self.start is not None:
            raise ValueError("'start' goes with 'every' or 'cron'; 'once' is itself a time")
        if self.zone is not None:
            _check_zone(self.zone)
        if self.cron is not None:
            check_cron(self.cron)
        for stretch in self.quiet or ():
            check_quiet(stretch)
        return self


def _check_zone(name: str) -> None:
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError(f"'{name}' is not a time zone: write Europe/Berlin or UTC") from error


class IdPart(Written):
    """One part of a record's identity."""

    path: str | None = None
    column: str = "provider_id"
    type: str = "text"
    lower: bool = False
    partition: str | None = Field(default=None, description="the dimension whose value it is, instead of a path")

    @check_model(mode="after")
    def _one_origin(self) -> "IdPart":
        if (self.path is None) == (self.partition is None):
            raise ValueError("a part of an id has either a 'path' in the record or a dimension of the 'partition'")
        return self


class MomentText(Written):
    """Where a record's time of change stands; `$.path` is short for `{path: $.path}`."""

    path: str
    format: str | None = None
    zone: str | None = None

    @check_model(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        return {"path": value} if isinstance(value, str) else value


class Records(Written):
    """Where the records of an answer stand, and what names and dates them (B9, B11)."""

    items: str
    id: list[IdPart]
    updated_at: MomentText | None = None
    version: Literal["content_hash"] | None = Field(default=None, description="what stands in for updated_at")
    total: str | None = None

    @field_validator("id", mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if isinstance(value, str):
            return [{"path": value}]
        return [value] if isinstance(value, dict) else value


class Column(Written):
    """One typed column; `name: text` means $.name of that type, `name: $.path` text at that path."""

    path: str | None = None
    type: str = "text"
    format: str | None = None
    required: bool = False
    enum: list[str] | None = None
    partition: str | None = Field(default=None, description="the dimension whose value it holds, instead of a path")

    @check_model(mode="before")
    @classmethod
    def _short_form(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"path": value} if value.startswith("$") else {"type": value}
        return value


class Endpoint(Tunable):
    """One list of records behind one path."""

    description: str = ""
    get: str | None = None
    post: str | None = None
    role: str = "search"
    enabled: bool = True
    dataset: str | None = Field(default=None, description="the table's name in schema data; default source_endpoint")
    vars: dict[str, Scalar] = Field(default_factory=dict)
    query: dict[str, Template] = Field(default_factory=dict)
    headers: dict[str, Template] = Field(default_factory=dict)
    body: JsonValue = None
    form: dict[str, Template] | None = None
    inert: list[str] = Field(default_factory=list, description="parameters that cannot change which records come")
    auth: list[Auth] | None = None
    partition: Partition | None = None
    records: Records
    columns: dict[str, Column] = Field(default_factory=dict)
    schedule: Schedule | None = None

    @field_validator("auth", mode="before")
    @classmethod
    def _one_credential(cls, value: Any) -> Any:
        return _credentials(value)

    @check_model(mode="after")
    def _one_method(self) -> "Endpoint":
        if (self.get is None) == (self.post is None):
            raise ValueError("an endpoint has either 'get: /path' or 'post: /path'")
        if self.body is not None and self.form is not None:
            raise ValueError("'body' (JSON) and 'form' exclude each other")
        return self


def _credentials(value: Any) -> Any:
    if isinstance(value, str):
        return [{"type": value}]
    return [value] if isinstance(value, dict) else value


class Document(Requested):
    """A whole source file."""

    source: Code
    description: str = ""
    owner: str = Field(default="", description="whom to ask about this source")
    docs: str = Field(default="", description="the vendor's documentation")
    release: str = Field(default="stable", pattern=r"^[a-z][a-z0-9_-]{0,29}$")
    enabled: bool = True
    base_url: str
    vars: dict[str, Scalar] = Field(default_factory=dict)
    headers: dict[str, Template] = Field(default_factory=dict)
    query: dict[str, Template] = Field(default_factory=dict)
    inert: list[str] = Field(default_factory=list)
    auth: list[Auth] | None = None
    defaults: Tunable | None = None
    schedule: Schedule | None = None
    endpoints: dict[Code, Endpoint] = Field(min_length=1)

    @field_validator("auth", mode="before")
    @classmethod
    def _one_credential(cls, value: Any) -> Any:
        return _credentials(value)


class Overrides(Tunable):
    """What one trigger changes for its own run (A3, highest level)."""

    vars: dict[str, Scalar] = Field(default_factory=dict)
