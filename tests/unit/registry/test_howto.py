"""Every source file in the how-to pages passes every check without a warning."""

from pathlib import Path

import pytest

from tests.howto import PAGES, list_blocks
from tests.unit.registry.writing import draft_of

_BLOCKS = [(page, code) for page in sorted(PAGES.glob("*.md")) for code in list_blocks(page)]


@pytest.mark.parametrize(("page", "code"), _BLOCKS, ids=[f"{page.stem}-{code}" for page, code in _BLOCKS])
def test_a_how_to_validates(page: Path, code: str) -> None:
    draft = draft_of(list_blocks(page)[code], name=page.name)
    assert [str(problem) for problem in draft.problems] == []
    assert draft.compiled
