"""Source files for flow tests, applied by the real `ingest registry apply`."""

import os
import subprocess
from pathlib import Path

from tests.flow.processes import BIN

CROSSREF = """
source: crossref
base_url: {url}/crossref
rate: {{windows: [1000/1s]}}
schedule: {{every: 1h}}
endpoints:
  works:
    get: /works
    query:
      filter: "from-index-date:{{{{ window.from }}}},until-index-date:{{{{ window.to }}}}"
      rows: "{{{{ page.size }}}}"
      cursor: "{{{{ page.token }}}}"
    pagination: {{kind: token, size: {size}, start: "*", next: $.message.next-cursor, stop: short_page}}
    window: {{filter: server, field: indexed, start: 2024-01-01, ends: inclusive, precision: day, max: {days}d}}
    records:
      items: $.message.items
      id: {{path: $.DOI, lower: true}}
      updated_at: $.indexed.date-time
      total: $.message.total-results
    columns: {{title: "$.title[0]", type: text}}
    concurrency: 6
    budget: {{inventory: 40}}
"""

PLAIN = """
source: plain
base_url: {url}/plain
vars: {{term: "{term}"}}
rate: {{windows: [1000/1s]}}
schedule: {{every: 1h}}
endpoints:
  items:
    get: /items
    query:
      q: "{{{{ vars.term }}}}"
      page: "{{{{ page.number }}}}"
      size: "{{{{ page.size }}}}"
      updated_from: "{{{{ window.from }}}}"
      updated_to: "{{{{ window.to }}}}"
    pagination: {{kind: page, size: 50, base: 1, stop: short_page}}
    window: {{filter: server, field: updated_at, start: 2024-01-01, max: 5000d}}
    records: {{items: $.data, id: $.id, updated_at: $.updated_at, total: $.total}}
    columns: {columns}
"""


def ingest(url: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the `ingest` command as a user would, on this database."""
    environment = {**os.environ, "INGEST_DATABASE_URL": url, "INGEST_OPEN_ORIGINS": '["http://127.0.0.1:*"]'}
    return subprocess.run(
        [str(BIN / "ingest"), *arguments], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )


def apply_source(url: str, text: str, *, folder: Path, name: str = "source.yaml") -> str:
    """Write the file and apply it; return what the command said."""
    (folder / name).write_text(text, encoding="utf-8")
    done = ingest(url, "registry", "apply", name, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
