"""Source files are read strictly, and every mistake has a line."""

from pathlib import Path

import pytest

from ingest.errors import NotFound
from registry.files import list_files, read_file, read_text
from registry.problems import format_problem
from tests.unit.registry.writing import draft_of, only_problem


def _problem(text: str, **environment: str) -> str:
    file = read_text("s.yaml", text, environment)
    assert len(file.problems) == 1, file.problems
    return format_problem(file.problems[0])


def test_yaml_1_2_is_read_without_surprises() -> None:
    data = read_text("s.yaml", "a: no\nb: 012\nc: 1:30\nd: 2024-01-01\ne: 1e3\nf: ~\ng: 'true'\nh: true\n", {}).data
    assert data == {"a": "no", "b": 12, "c": "1:30", "d": "2024-01-01", "e": 1000.0, "f": None, "g": "true", "h": True}


def test_a_duplicate_key_names_both_lines() -> None:
    assert _problem("a: 1\nb: 2\na: 3\n") == (
        "s.yaml:3:1: error: a: 'a' is given twice\n    3 | a: 3\n      | ^ first on line 1"
    )


def test_all_duplicate_keys_are_found_at_once() -> None:
    assert len(read_text("s.yaml", "a: 1\na: 2\nb: {c: 1, c: 2}\n", {}).problems) == 2


def test_a_tab_is_named_as_such() -> None:
    assert _problem("a:\n\tb: 1\n").startswith("s.yaml:2:1: error: a tab cannot indent YAML")


@pytest.mark.parametrize("path", ["$.title[0]", "$.author[*].name", "$.a['x-y']"])
def test_an_unquoted_jsonpath_with_brackets_inside_braces_gets_the_hint_to_quote_it(path: str) -> None:
    text = f"columns: {{title: {path}, type: text}}\n"
    problem = _problem(text)
    assert f"s.yaml:1:{text.index('$') + 1}: error:" in problem
    assert f'quote this path: "{path}"' in problem


def test_an_unquoted_template_gets_the_hint_to_quote_it() -> None:
    assert "quote templates" in _problem("query: {rows: {{ page.size }}}\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [1\n", "not valid YAML"),
        ("a: b: c\n", "needs quotes"),
        ("a: 1\n---\nb: 1\n", "another document"),
        ("a: *nowhere\n", "undefined alias"),
        ("<<: {a: 1}\n", "merge keys"),
        ("a: !python/object:x 1\n", "tag"),
        ("a: &x [*x]\n", "aliases inside aliases"),
        ("- a\n", "a source file is a mapping"),
        ("", "is empty"),
        ("a: \x01\n", "is not YAML"),
    ],
)
def test_what_is_not_a_source_file_is_refused_with_a_reason(text: str, said: str) -> None:
    assert said in _problem(text)


def test_aliases_cannot_make_a_small_file_a_huge_one() -> None:
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 10)}]\n" for n in range(1, 8))
    file = read_text("s.yaml", f"l0: &l0 x\n{levels}", {})
    assert [problem.code for problem in file.problems] == ["too-large"]


def test_variables_are_filled_from_the_environment() -> None:
    text = 'a: ${HOST}\nb: ${PORT:-80}\nc: "${PORT:-80}"\nd: http://${HOST}:${PORT:-80}/x\ne: ${EMPTY:-x}\n'
    file = read_text("s.yaml", text, {"HOST": "h.example", "EMPTY": ""})
    assert file.problems == []
    assert file.data == {"a": "h.example", "b": 80, "c": "80", "d": "http://h.example:80/x", "e": "x"}


def test_a_variable_that_is_not_set_is_a_problem_at_its_line() -> None:
    assert _problem("a: 1\nb: ${NOPE}\n") == (
        "s.yaml:2:4: error: b: the environment variable NOPE is not set\n"
        "    2 | b: ${NOPE}\n"
        "      |    ^ set it, or write ${NOPE:-default}"
    )


def test_a_variable_that_is_not_set_hides_no_other_problem() -> None:
    draft = draft_of("source: plain\nbase_url: ${NOPE}\nendpoints: {items: {gett: /x}}\n")
    assert {problem.code for problem in draft.problems} == {"variable-missing", "unknown-key", "missing"}
    assert [problem.code for problem in draft.problems if problem.path == "base_url"] == ["variable-missing"]


def test_a_value_that_could_not_be_read_is_not_also_wrong_in_another_way() -> None:
    assert only_problem(("https://api.example.org/v1", "${NOPE}")).code == "variable-missing"


def test_jsonpaths_are_no_variables() -> None:
    assert read_text("s.yaml", "a: $.x\nb: $\n", {}).data == {"a": "$.x", "b": "$"}


def test_a_file_that_is_not_text_is_a_problem_not_a_crash(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_bytes(b"a: \xff\n")
    assert "is not UTF-8" in read_file(tmp_path / "s.yaml", {}).problems[0].message


def test_folders_are_searched_for_yaml_files_in_order(tmp_path: Path) -> None:
    for name in ("b.yaml", "a.yml", "c.txt"):
        (tmp_path / name).write_text("source: x\n")
    assert [path.name for path in list_files([tmp_path])] == ["a.yml", "b.yaml"]


def test_a_missing_path_and_an_empty_folder_are_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such file"):
        list_files([tmp_path / "nope.yaml"])
    with pytest.raises(NotFound, match="no source files"):
        list_files([tmp_path])
