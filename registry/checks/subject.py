"""What a check sees: one endpoint's merged values, and where in a document each of them was written."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from registry.dictionary import Dictionary
from registry.expand import Row
from registry.fields import BY_KEY
from registry.merge import Merged
from registry.problems import Finding, Where


@dataclass(frozen=True, slots=True)
class Text:
    """A template of the request and where it stands."""

    where: Where
    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One endpoint, merged. `open_origins` None means: not this caller's business (the executor asks again)."""

    source: str
    endpoint: str
    definition: Row
    merged: Merged
    fields: list[Row]
    credential: Row | None
    credential_where: Where
    dictionary: Dictionary
    open_origins: tuple[str, ...] | None

    def get(self, key: str) -> Any:
        """Return the merged value of a setting by what people call it, None if nobody set it."""
        field = BY_KEY[key]
        found = self.merged.get(field.section, {}).get(field.column)
        return found.value if found else None

    def is_declared(self, key: str) -> bool:
        """Say whether a person wrote the setting, at whatever level."""
        field = BY_KEY[key]
        found = self.merged.get(field.section, {}).get(field.column)
        return found is not None and found.prefix is not None

    def where(self, key: str) -> Where:
        """Return where the setting is written, or would be."""
        field = BY_KEY[key]
        found = self.merged.get(field.section, {}).get(field.column)
        prefix = found.prefix if found is not None and found.prefix is not None else ("endpoints", self.endpoint)
        return (*prefix, *key.split("."))

    def own(self, *parts: str | int) -> Where:
        """Return a place inside the endpoint."""
        return ("endpoints", self.endpoint, *parts)

    def list_fields(self, kind: str) -> list[Row]:
        """Return the paths of one kind in their order."""
        found = [row for row in self.fields if row["field_kind"] == kind]
        return sorted(found, key=lambda row: int(str(row.get("sort_order", 0))))

    def field_where(self, row: Row) -> Where:
        """Return where a path is written."""
        name = str(row["field_name"])
        match row["field_kind"]:
            case "COLUMN":
                return self.own("columns", name)
            case "ID":
                return self.own("records", "id", self.list_fields("ID").index(row))
            case _:
                return self.own("records", name)

    def texts(self) -> Iterator[Text]:
        """Yield every template of the request."""
        yield Text(self.own(str(self.definition["method_code"]).lower()), "path", str(self.definition["path"]))
        for section in ("query", "headers"):
            for value in self.merged.get(section, {}).values():
                prefix = value.prefix if value.prefix is not None else ("endpoints", self.endpoint)
                yield Text((*prefix, section, value.name), value.name, str(value.value))
        body_key = "form" if self.get("body_kind") == "form" else "body"
        yield from _body_texts(self.get("body"), (*self.where("body")[:-1], body_key), "")


def _body_texts(value: Any, where: Where, name: str) -> Iterator[Text]:
    if isinstance(value, str):
        yield Text(where, name, value)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _body_texts(item, (*where, key), key)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _body_texts(item, (*where, index), name)


def error(code: str, where: Where, message: str, hint: str = "", *, offset: int | None = None) -> Finding:
    """Make a finding that stops the plan."""
    return Finding(code=code, where=where, message=message, hint=hint, offset=offset)


def warning(code: str, where: Where, message: str, hint: str = "") -> Finding:
    """Make a finding that is only told."""
    return Finding(code=code, where=where, message=message, hint=hint, severity="warning")
