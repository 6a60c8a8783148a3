"""From pydantic's errors to findings in plain words: what was expected, what stands there, what was probably meant."""

import types
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from registry.document import CODE_PATTERN, Document
from registry.problems import Finding, Where, suggest
from registry.sections import Written, show

_EXPECTED = {
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "string_type": "text",
    "list_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
# Values at these keys could be a secret pasted in the wrong place: never echoed.
_SENSITIVE = {"secret", "username", "prefix"}


def read_document(data: Any) -> tuple[Document | None, list[Finding]]:
    """Check the shape of a file's data; return the document, or None and every finding."""
    try:
        return Document.model_validate(data), []
    except ValidationError as error:
        return None, describe_errors(error, Document)


def describe_errors(error: ValidationError, model: type[Written], prefix: Where = ()) -> list[Finding]:
    """Return one finding per error; `prefix` is where the model stands in the document."""
    return [_describe(details, model, prefix) for details in error.errors(include_url=False)]


def _describe(details: ErrorDetails, model: type[Written], prefix: Where) -> Finding:
    where: Where = tuple(details["loc"])
    kind, given = details["type"], details.get("input")
    context = details.get("ctx", {})
    sensitive = any(part in _SENSITIVE for part in where)
    got = "something else" if sensitive else show(given)
    at_key = bool(where) and where[-1] == "[key]"
    where = where[:-1] if at_key else where
    code, hint = "wrong-value", ""
    if kind == "extra_forbidden":
        code, message = "unknown-key", f"unknown key '{where[-1]}'"
        hint = suggest(str(where[-1]), _keys_at(model, where[:-1]), listed=[])
    elif kind == "missing":
        code, message = "missing", f"'{where[-1]}' is missing"
    elif kind in _EXPECTED:
        code, message = "wrong-type", f"expected {_EXPECTED[kind]}, got {got}"
    elif kind == "literal_error":
        choices = [choice.strip("'") for choice in context["expected"].replace(" or ", ", ").split(", ")]
        message = f"{got} is not one of {', '.join(choices)}"
        hint = suggest(str(given), choices, listed=[])
    elif kind == "string_pattern_mismatch":
        message = f"{got} is not a name here"
        hint = f"small letters, digits and _, at most 30, a letter first ({CODE_PATTERN})"
    elif kind == "value_error":
        message = str(context["error"])
    elif kind in ("greater_than_equal", "greater_than", "less_than_equal", "less_than"):
        message = f"{got} is out of range: {_range(context)}"
    elif kind == "too_short":
        message = "at least one is needed"
    else:
        message = details["msg"]
    hidden = sensitive and code in ("wrong-value", "wrong-type")
    return Finding(code=code, where=(*prefix, *where), message=message, hint=hint, sensitive=hidden)


def _range(context: dict[str, Any]) -> str:
    words = {"ge": "at least", "gt": "above", "le": "at most", "lt": "below"}
    return " and ".join(f"{words[name]} {value}" for name, value in context.items() if name in words)


def _keys_at(model: type[BaseModel], where: Where) -> list[str]:
    """Return the keys that may be written at a place of the document."""
    current: Any = model
    for part in where:
        current = _strip(current)
        if isinstance(current, type) and issubclass(current, BaseModel):
            by_key = {field.alias or name: field.annotation for name, field in current.model_fields.items()}
            current = by_key.get(str(part))
        elif get_origin(current) is list:
            current = get_args(current)[0]
        elif get_origin(current) is dict:
            current = get_args(current)[1]
        else:
            return []
    current = _strip(current)
    if isinstance(current, type) and issubclass(current, BaseModel):
        return [field.alias or name for name, field in current.model_fields.items()]
    return []


def _strip(annotation: Any) -> Any:
    """Return the type itself, without Annotated and without `| None`."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif get_origin(annotation) in (Union, types.UnionType):
            annotation = next(argument for argument in get_args(annotation) if argument is not type(None))
        else:
            return annotation
