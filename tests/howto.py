"""The YAML of the how-to pages, so that flow tests run what a reader copies.

A page is `docs/how-to/NAME.md`; each fenced yaml block in it is one whole source file, known by its `source:` code.
"""

import re
from pathlib import Path

PAGES = Path(__file__).parents[1] / "docs" / "how-to"
_BLOCK = re.compile(r"^```yaml\n(.*?)^```$", re.M | re.S)
_BASE_URL = re.compile(r"^base_url: \S+$", re.M)


def list_blocks(page: Path) -> dict[str, str]:
    """Return the page's source files by their code."""
    found = {}
    for text in _BLOCK.findall(page.read_text(encoding="utf-8")):
        code = re.match(r"source: ([a-z0-9_]+)$", text, re.M)
        assert code is not None, f"{page.name}: a yaml block does not begin with 'source: name'"
        found[code[1]] = text
    return found


def read_howto(page: str, source: str, base_url: str) -> str:
    """Return a page's source file with its origin replaced by a local one."""
    text, replaced = _BASE_URL.subn(f"base_url: {base_url}", list_blocks(PAGES / f"{page}.md")[source])
    assert replaced == 1
    return text
