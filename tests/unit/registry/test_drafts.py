"""Files that are fine alone can still clash."""

from pathlib import Path

from registry.builtin import BUILTIN
from registry.drafts import list_problems, read_drafts
from registry.problems import Problem
from tests.unit.registry.writing import PLAIN, change


def _problems(tmp_path: Path, **files: str) -> list[Problem]:
    for name, text in files.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return list_problems(read_drafts([tmp_path], BUILTIN, environment={}, open_origins=()))


def test_two_files_cannot_declare_one_source(tmp_path: Path) -> None:
    problems = _problems(tmp_path, a=PLAIN, b=PLAIN)
    assert [(Path(p.file).name, p.path) for p in problems] == [("b.yaml", "source")]
    assert "is also declared in" in problems[0].message


def test_two_endpoints_cannot_share_a_table(tmp_path: Path) -> None:
    first = change(PLAIN, ("source: plain", "source: a"), ("  items:", "  b_c:"))
    second = change(PLAIN, ("source: plain", "source: a_b"), ("  items:", "  c:"))
    problems = _problems(tmp_path, first=first, second=second)
    assert [p.message for p in problems] == ["the table data.a_b_c belongs to a.b_c"]
    assert problems[0].hint == "choose another with 'dataset:'"
    mended = change(second, ("    get:", "    dataset: a_b_c2\n    get:"))
    assert _problems(tmp_path, second=mended) == []


def test_one_broken_file_does_not_hide_the_problems_of_another(tmp_path: Path) -> None:
    problems = _problems(tmp_path, a="a: [\n", b=change(PLAIN, ("rate: 10/s", "rate: x")))
    assert [Path(p.file).name for p in problems] == ["a.yaml", "b.yaml"]
