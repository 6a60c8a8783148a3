"""Patterns of source files end soon, whatever text they meet."""

import pytest

from ingest.spec.patterns import LONGEST_TEXT, PatternInvalid, compile_pattern, matches


@pytest.mark.parametrize("text", ["^no (records|matches)", "频率", "^[a-z]+ .*limit", "a{3}", "quota|rate", "(?i)wait"])
def test_ordinary_patterns_are_taken(text: str) -> None:
    assert compile_pattern(text).pattern == text


@pytest.mark.parametrize("text", ["(a+)+$", "(a*b?)*c", "(?:x{1,9}){1,9}", r"(a)\1", ".*.*.*x", "(", "(?P<a>x)(?P=a)+"])
def test_what_could_take_for_ever_or_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(PatternInvalid):
        compile_pattern(text)


def test_only_the_beginning_of_a_text_is_looked_at() -> None:
    pattern = compile_pattern("end")
    assert matches(pattern, "x" * (LONGEST_TEXT - 3) + "end")
    assert not matches(pattern, "x" * LONGEST_TEXT + "end")
