"""The JSON Schema of source files, for editors: completion and checks while typing."""

from typing import Any

from registry.dictionary import Dictionary
from registry.document import Document

_STRING = {"type": "string"}
# What may be written instead of the whole mapping (or list), by model.
_SHORT_FORMS: dict[str, list[dict[str, Any]]] = {
    "Rate": [_STRING, {"type": "array", "items": _STRING}],
    "MomentText": [_STRING],
    "Column": [_STRING],
}
_CODES = {
    ("Pagination", "kind"): "pagination_type",
    ("Window", "filter"): "window_filter",
    ("Window", "precision"): "window_precision",
    ("Auth", "type"): "auth_type",
    ("Auth", "in"): "auth_location",
    ("Endpoint", "role"): "endpoint_role",
}


def source_schema(dictionary: Dictionary) -> dict[str, Any]:
    """Return the schema of a whole source file."""
    schema = Document.model_json_schema(by_alias=True)
    definitions = schema["$defs"]
    for (model, key), kind in _CODES.items():
        words = {"type": "string", "enum": [*dictionary.all_words(kind), *_codes_only(dictionary, kind)]}
        definitions[model]["properties"][key] = definitions[model]["properties"][key] | {"anyOf": [words]}
        definitions[model]["properties"][key].pop("type", None)
    _allow_one(definitions["Pagination"]["properties"], "stop")
    _allow_one(definitions["Rate"]["properties"], "windows")
    _allow_one(definitions["Records"]["properties"], "id")
    _allow_one(definitions["Endpoint"]["properties"], "auth")
    _allow_one(schema["properties"], "auth")
    for name, forms in _SHORT_FORMS.items():
        definitions[f"{name}Full"] = definitions[name]
        definitions[name] = {"anyOf": [*forms, {"$ref": f"#/$defs/{name}Full"}]}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "patra-ingest source"} | schema


def _codes_only(dictionary: Dictionary, kind: str) -> list[str]:
    return [code for code in dictionary.items.get(kind, ()) if code not in dictionary.all_words(kind)]


def _allow_one(properties: dict[str, Any], key: str) -> None:
    """Let one element, or a text, stand for a list of one."""
    written = properties[key]
    branches = written.pop("anyOf", None) or [{"type": written.pop("type"), "items": written.pop("items")}]
    lists = [branch for branch in branches if branch.get("type") == "array"]
    written["anyOf"] = [*branches, _STRING, *(branch["items"] for branch in lists)]
