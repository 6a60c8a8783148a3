"""Response rules as data: what an answer means where its status alone does not say; a part of the snapshot (B13)."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, JsonValue


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BodyTest(_Frozen):
    """What a rule asks of one value of the answer; exactly one of the questions is asked."""

    path: str
    equals: JsonValue = None
    among: tuple[JsonValue, ...] = ()
    matches: str | None = None
    contains: str | None = None
    exists: bool | None = None


class Rule(_Frozen):
    """What an answer means where its status alone does not say; every predicate that is there must hold (B13)."""

    status: tuple[str, ...] = ()  # "404" or "4xx"; one of them
    header: dict[str, str] = {}  # name -> pattern; all of them
    content_type: str = ""  # a part of the Content-Type, in small letters
    contains: str = ""  # text anywhere in the body
    body: BodyTest | None = None
    then: Literal["ok", "empty", "end", "retry", "throttle", "refuse", "fatal", "refresh"]
    wait_s: float | None = None
    covers: bool = False
    because: str = ""
