"""The Spec Snapshot: everything an executor needs to run an endpoint, as frozen data and nothing else (A6, S2 §3.9).

Invariant: no secret is ever in it (credentials are references), and nothing in it changes once stored. Durations are
seconds, sizes bytes, times aware UTC. Compiled by `registry.compile`, stored by `ingest.store.specs`.
"""

from datetime import datetime
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from ingest.spec.canonical import hash_of
from ingest.spec.dimensions import Partition
from ingest.spec.rules import Rule
from ingest.spec.templates import used_vars

# Headers that say who is asking; a new contact address changes neither which records come nor what is in them.
_WHO_ASKS = {"user-agent", "from"}


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Http(_Frozen):
    """How to ask. Every string is a template over vars, window, page, partition."""

    method: Literal["GET", "POST"]
    base_url: str
    path: str
    query: dict[str, str] = {}
    headers: dict[str, str] = {}
    body: JsonValue = None
    body_kind: Literal["json", "form"] = "json"
    inert: tuple[str, ...] = ()  # parameters that cannot change which records come (mailto, tool)
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 30.0
    total_timeout_s: float = 120.0
    redirects: int = 0
    compression: bool = True
    proxy: str | None = None

    @property
    def origin(self) -> str:
        """Scheme, host and port: the only place this endpoint's requests and credentials may go."""
        return origin_of(self.base_url)

    def deciding(self) -> dict[str, Any]:
        """Return the parts that can decide what comes back: nothing inert, nothing about who is asking."""
        kept = {name: text for name, text in self.headers.items() if name not in self.inert}
        return {
            "method": self.method,
            "base_url": self.base_url,
            "path": self.path,
            "query": {name: text for name, text in self.query.items() if name not in self.inert},
            "headers": {name.lower(): text for name, text in kept.items() if name.lower() not in _WHO_ASKS},
            "body": self.body,
        }


class Auth(_Frozen):
    """How to prove who asks; `secret_ref` is a reference such as env:NAME, resolved by executors at send time."""

    type: Literal["NONE", "API_KEY", "BEARER", "BASIC"] = "NONE"
    location: Literal["HEADER", "QUERY"] = "HEADER"
    name: str = ""
    prefix: str = ""
    credential_code: str = ""
    secret_ref: str = ""
    username_ref: str = ""
    scope_data: bool = False  # the credential decides which records come, so it is part of the selection


class Pagination(_Frozen):
    """How to get the next page and how to know there is none (B3, B4)."""

    kind: Literal["NONE", "OFFSET", "PAGE", "TOKEN", "URL"] = "NONE"
    size: int | None = None
    base: int = 1
    initial: str | None = None
    max_page: int | None = None
    next_path: str | None = None
    next_in: Literal["body", "link_header"] = "body"
    has_more_path: str | None = None
    stop: tuple[Literal["short_page", "empty_page", "no_next", "has_more_false", "total_reached", "single"], ...] = ()
    order_by: str | None = None
    token_kind: Literal["repeatable", "consuming"] = "repeatable"
    advance_by: Literal["received", "asked"] = "received"


class Window(_Frozen):
    """Which stretch of time a request covers, and how its ends are written (B5, DESIGN §5)."""

    filter: Literal["server", "none"] = "none"
    field: str = ""
    start: datetime | None = None
    ends: Literal["exclusive", "inclusive"] = "exclusive"
    precision: Literal["day", "minute", "second", "ms", "us"] = "us"
    bound: Literal["unit", "instant"] = "unit"
    zone: str = "UTC"
    format: str = "iso"  # iso, date, epoch_s, epoch_ms, epoch_us or a strftime pattern
    safety_lag_s: float = 600.0
    max_s: float = 86400.0
    min_s: float = 60.0
    align: Literal["minute", "hour", "day"] | None = None


class Retry(_Frozen):
    """In-process retries of one request (B12)."""

    policy: Literal["exponential_jitter", "exponential", "linear", "fixed"] = "exponential_jitter"
    max_attempts: int = Field(default=5, ge=1)
    base_s: float = Field(default=0.1, ge=0)
    factor: float = Field(default=2.0, ge=1, le=100)
    jitter: float = Field(default=0.2, ge=0, le=1)
    cap_s: float = Field(default=30.0, ge=0)
    statuses: tuple[int, ...] = (429, 500, 501, 502, 503, 504)


class RateWindow(_Frozen):
    """At most `limit` requests in any `seconds`."""

    limit: int = Field(ge=1)
    seconds: float = Field(gt=0)


class Rate(_Frozen):
    """What the gate may let through (C2, C8)."""

    windows: tuple[RateWindow, ...] = ()
    rate_per_s: float | None = Field(default=1.0, gt=0)
    burst: int = Field(default=1, ge=1)
    demote_rate: float = Field(default=2.0, ge=1)
    rate_min: float = Field(default=0.1, gt=0)
    share: Literal["endpoint", "source"] = "endpoint"

    @model_validator(mode="after")
    def _is_limited(self) -> Self:
        """Nothing is ever sent without a limit."""
        if self.rate_per_s is None and not self.windows:
            raise ValueError("neither rate_per_s nor windows: there would be no limit at all")
        return self


class IdPart(_Frozen):
    """One part of a record's identity; `column` is 'provider_id' when there is one part of type text."""

    column: str
    path: str
    type: str = "text"
    lower: bool = False
    partition: str = ""  # the dimension whose value it is, where records do not repeat their partition's key


class Moment(_Frozen):
    """Where a time stands in a record and how it is written."""

    path: str
    format: str = "iso"  # iso, epoch_s, epoch_ms, epoch_us, date_parts or a strptime pattern (read in `zone`)
    zone: str = "UTC"


class Column(_Frozen):
    """One typed column of the dataset."""

    name: str
    path: str
    type: Literal["text", "int", "float", "numeric", "bool", "timestamp", "date", "json", "partial_date"] = "text"
    format: str | None = None
    required: bool = False
    enum: tuple[str, ...] = ()
    partition: str = ""  # the dimension whose value it holds; then there is no path


class Response(_Frozen):
    """Where things stand in an answer, and what else it may mean."""

    decoder: Literal["json"] = "json"
    items: str
    total: str | None = None
    max_body_bytes: int = 64 * 1024 * 1024
    rules: tuple[Rule, ...] = ()


class Mapping(_Frozen):
    """From a record to a row (B9, B11)."""

    dataset: str
    identity: tuple[IdPart, ...]
    updated_at: Moment | None = None
    columns: tuple[Column, ...] = ()
    payload: Literal["json", "jsonb", "none"] = "json"
    quarantine_share: float = 0.1


class Budget(_Frozen):
    """What one slice may use, and how many tasks may wait or run at once (C9, D6, E2)."""

    concurrency: int | None = None
    inventory: int = 200
    priority: int | None = None
    max_requests: int | None = None
    max_records: int | None = None
    max_duration_s: float | None = None


class Expressions(_Frozen):
    """What templates may use."""

    vars: dict[str, JsonValue] = {}
    null_policy: Literal["omit"] = "omit"
    allowed_functions: tuple[str, ...] = ()


class Snapshot(_Frozen):
    """One endpoint, whole."""

    format: Literal[1] = 1
    provenance_code: str
    endpoint_name: str
    role: Literal["SEARCH", "DETAIL", "METRICS"] = "SEARCH"
    revision: int
    release_tag: str = "stable"
    http: Http
    auth: Auth = Auth()
    pagination: Pagination = Pagination()
    window: Window = Window()
    partition: Partition = Partition()
    retry: Retry = Retry()
    rate: Rate = Rate()
    response: Response
    mapping: Mapping
    expr: Expressions = Expressions()
    budget: Budget = Budget()

    @property
    def name(self) -> str:
        """source.endpoint, as people write it."""
        return f"{self.provenance_code}.{self.endpoint_name}"

    def as_data(self) -> dict[str, Any]:
        """Return plain data: what is stored and hashed."""
        return self.model_dump(mode="python")

    def deciding_vars(self) -> dict[str, Any]:
        """Return the vars that the deciding parts of the request use, with their values."""
        known = self.expr.vars
        used = frozenset().union(*(used_vars(text, known) for text in _strings(self.http.deciding())))
        return {name: known.get(name) for name in used}

    @property
    def spec_fingerprint(self) -> str:
        """Hash of everything but the revision number: an apply that changes nothing here changes no fingerprint."""
        return hash_of(self.model_dump(exclude={"revision"}, exclude_defaults=True))

    @property
    def expr_proto_hash(self) -> str:
        """Hash of what decides what a row contains: request, response and mapping, un-localised (A6)."""
        return hash_of(
            {
                "http": self.http.deciding(),
                "vars": self.deciding_vars(),
                "response": self.response.model_dump(include={"decoder", "items"}, exclude_defaults=True),
                "mapping": self.mapping.model_dump(exclude={"quarantine_share"}, exclude_defaults=True),
            }
        )


def origin_of(url: str) -> str:
    """Return scheme://host:port in lower case with the port always written; raises ValueError for what is no URL."""
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    return f"{parts.scheme.lower()}://{f'[{host}]' if ':' in host else host}:{port}"


def _strings(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _strings(item)]
    if isinstance(value, list):
        return [text for item in value for text in _strings(item)]
    return []
