"""The JSON Schema for editors accepts what the reader accepts and refuses what it refuses."""

from typing import Any

import jsonschema  # type: ignore[import-untyped]  # its stubs are another package
import pytest

from registry.builtin import BUILTIN
from registry.files import read_file, read_text
from registry.schema import source_schema
from tests.unit.registry.writing import PLAIN, SHIPPED, change


def _validator() -> Any:
    schema = source_schema(BUILTIN.dictionary)
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_every_shipped_source_fits_the_schema() -> None:
    for path in sorted(SHIPPED.glob("*.yaml")):
        assert list(_validator().iter_errors(read_file(path, {}).data)) == []


@pytest.mark.parametrize(
    "written",
    [
        ("rate: 10/s", "rate: [10/s, 200/min]"),
        ("rate: 10/s", "rate: {windows: 10/s, burst: 2}"),
        ("id: $.id", "id: {path: $.id, lower: true}"),
        ("id: $.id", "id: [{column: a, path: $.a}, {column: b, path: $.b, type: int}]"),
        ("size: 100}", "size: 100, stop: [short_page, empty_page]}"),
        ("kind: page", "kind: PAGE"),
        ("get: /items", "get: /items\n    auth: {type: bearer, in: header, secret: env:X}"),
        ("get: /items", "get: /items\n    auth: [{type: bearer, secret: env:X}]"),
    ],
)
def test_short_and_long_forms_fit_the_schema(written: tuple[str, str]) -> None:
    data = read_text("s.yaml", change(PLAIN, written), {}).data
    assert list(_validator().iter_errors(data)) == []


@pytest.mark.parametrize(
    "written",
    [
        ("schedule:", "shedule:"),
        ("size: 100", "size: many"),
        ("kind: page", "kind: curser"),
        ("rate: 10/s", "rate: 10"),
        ("    get: /items\n", "    gett: /items\n"),
    ],
)
def test_mistakes_do_not_fit_the_schema(written: tuple[str, str]) -> None:
    data = read_text("s.yaml", change(PLAIN, written), {}).data
    assert list(_validator().iter_errors(data)) != []
