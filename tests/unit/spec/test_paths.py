"""JSONPaths: what is plain, what is found, what is refused."""

from typing import Any

import pytest

from ingest.spec.paths import PathInvalid, parse_path


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("$", ()),
        ("$.a", ("a",)),
        ("$.a.b[0].c", ("a", "b", 0, "c")),
        ("$.a[-1]", ("a", -1)),
        ("$.indexed.date-time", ("indexed", "date-time")),
        ("$.is-referenced-by-count", ("is-referenced-by-count",)),
        ("$['x.y']", ("x.y",)),
        ("$['com.my-app'].v", ("com.my-app", "v")),
        ('$["a.b-c"]', ("a.b-c",)),
        ("$.作者[0].姓-名", ("作者", 0, "姓-名")),
        ("$.a['0']", ("a", "0")),
    ],
)
def test_a_plain_path_is_its_keys(text: str, keys: tuple[str | int, ...]) -> None:
    assert parse_path(text).plain == keys


@pytest.mark.parametrize("text", ["$.a[*]", "$..a", "$.a[?(@.b == 1)]", "$.a[0:2]", "$.a[0,1]", "$.*", "$.a.$.b"])
def test_other_paths_are_not_plain(text: str) -> None:
    assert parse_path(text).plain is None


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ("$.a.b", {"a": {"b": 1}}, 1),
        ("$.a.b", {"a": {}}, None),
        ("$.a.b", {"a": [1]}, None),
        ("$.a.b", {"a": None}, None),
        ("$.a.b", "text", None),
        ("$.a[1]", {"a": [1, 2]}, 2),
        ("$.a[2]", {"a": [1, 2]}, None),
        ("$.a[-1]", {"a": [1, 2]}, 2),
        ("$.a[-1]", {"a": []}, None),
        ("$.a[0]", {"a": "text"}, None),
        ("$.a[*].b", {"a": [{"b": 1}, {"b": 2}]}, [1, 2]),
        ("$.a[*].b", {"a": [{"b": 1}, {}]}, 1),
        ("$.a[*].b", {"a": []}, None),
        ("$.a[*][-1]", {"a": [[], [1]]}, 1),
        ("$.a[?(@.b > 1)].b", {"a": [{"b": "x"}, {"b": 2}, 3, None]}, 2),
    ],
)
def test_a_path_finds_what_is_there_and_none_where_nothing_is(text: str, value: Any, found: Any) -> None:
    assert parse_path(text).getter()(value) == found


@pytest.mark.parametrize("text", ["$.a.`sorted`", "$.a[\\b]", "$.a.`split(x, 0, -1)`", "$.a + $.b", "$.a.`len`"])
@pytest.mark.parametrize("value", [None, 1, "x", [], {"a": None}, {"a": 5}, {"a": "x"}, {"a": [{"b": 1}, {"b": "x"}]}])
def test_no_path_raises_on_data(text: str, value: Any) -> None:
    parse_path(text).getter()(value)


@pytest.mark.parametrize("text", ["$.a[?(@.b =~ '(a+)+$')]", "$.a.`sub(/(a+)+$/, x)`"])
def test_a_regular_expression_is_refused(text: str) -> None:
    with pytest.raises(PathInvalid, match="regular expression"):
        parse_path(text)


@pytest.mark.parametrize(
    ("text", "offset"),
    [("a.b", 0), ("", 0), ("$.a[", 3), ("$.a]", 3), ("$.a b", 4), ("$.", None), ("$.a[?(", 3), ("$.'a", None)],
)
def test_what_is_no_path_is_refused_with_its_place(text: str, offset: int | None) -> None:
    with pytest.raises(PathInvalid) as caught:
        parse_path(text)
    assert caught.value.offset == offset


@pytest.mark.parametrize(
    ("text", "value", "found"),
    [
        ("$.data", {"data": [1]}, [1]),
        ("$.data[*]", {"data": [{"a": 1}]}, [{"a": 1}]),
        ("$.data[*]", {"data": []}, []),
        ("$.data[*].r", {"data": [{"r": 1}, {"r": 2}]}, [1, 2]),
        ("$.data.*", {"data": {"x": 1, "y": 2}}, [1, 2]),
        ("$.data[*]", {"error": "no"}, None),
        ("$.data[*].r", {"data": None}, None),
    ],
)
def test_a_list_is_a_list_with_one_match_and_with_none(text: str, value: Any, found: Any) -> None:
    assert parse_path(text).list_getter()(value) == found
