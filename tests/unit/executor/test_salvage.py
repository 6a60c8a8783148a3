r"""Salvage: one record that is not JSON does not take the page with it."""

import msgspec
import pytest

from executor.salvage import blank_broken, cut_items


@pytest.mark.parametrize(
    "broken",
    [rb"\ud800", rb"\udc00", rb"\ud800\ud800", rb"\x", rb"\u12", b"\x00", b"\n", b"\x1f", rb"\ud83dx", rb"\uD83D\n"],
)
def test_what_no_string_may_hold_is_blanked_in_place(broken: bytes) -> None:
    body = b'{"a":"x' + broken + b'y","b":[1]}'
    blanked = blank_broken(body)
    assert len(blanked) == len(body)
    assert msgspec.json.decode(blanked)["b"] == [1]


@pytest.mark.parametrize("well", [rb"\ud83d\ude00", rb"\\ud800", rb"\"", rb"\u0041", rb"\/\b\f\n\r\t", "作".encode()])
def test_what_is_well_is_let_be(well: bytes) -> None:
    body = b'{"a":"' + well + b'"}'
    assert blank_broken(body) == body


@pytest.mark.parametrize(
    ("body", "keys", "items"),
    [
        (b"[]", (), []),
        (b"[ ]", (), []),
        (b"[1]", (), [b"1"]),
        (b' [ {"a":"],\\"}"} ,\n[1,2], "x" ] ', (), [b'{"a":"],\\"}"}', b"[1,2]", b'"x"']),
        (b'{"m":{"items":[1,2]},"items":[3]}', ("m", "items"), [b"1", b"2"]),
        (b'{"m":{"items":[1,2]},"items":[3]}', ("items",), [b"3"]),
        (b'{"a":[{"x":[0]},{"x":[1,2]}]}', ("a", 1, "x"), [b"1", b"2"]),
        (b'{"a":{},"b":"[","c":[7]}', ("c",), [b"7"]),
        (b'{"a":1}', ("b",), None),
        (b'{"b":{"x":1}}', ("b",), None),
        (b'{"b":[[1]]}', ("b", -1), None),
    ],
)
def test_items_are_cut_out_of_the_text_by_its_brackets(
    body: bytes, keys: tuple[str | int, ...], items: list[bytes] | None
) -> None:
    cut = cut_items(body, keys)
    assert (None if cut is None else [bytes(item) for item in cut]) == items
