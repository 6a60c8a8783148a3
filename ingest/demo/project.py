"""The demo's project: an ordinary folder with settings and source files, as `ingest init` would make one.

Written anew at every start, so that it fits the world's port; nothing a person adds beside is touched.
"""

from dataclasses import dataclass
from pathlib import Path

from ingest.demo.world import World


@dataclass(frozen=True, slots=True)
class DemoStream:
    """One stream of the demo, and which of the simulator's APIs it reads."""

    source: str
    endpoint: str
    api: str
    windowed: bool = True

    @property
    def name(self) -> str:
        """source.endpoint, as people write it."""
        return f"{self.source}.{self.endpoint}"

    @property
    def dataset(self) -> str:
        """Its table in the schema `data`."""
        return f"{self.source}_{self.endpoint}"


STREAMS = (
    DemoStream("crossref", "works", "crossref"),
    DemoStream("github", "issues", "github", windowed=False),
    DemoStream("pubmed", "articles", "pubmed"),
    DemoStream("shop", "items", "plain"),
)

_SETTINGS = """\
# Written by `ingest demo`. Commands run in this folder use the demo's database.
home = "."
sources = "sources"
open_origins = ["{origin}"]
lease_seconds = 3       # so short that one can watch a dead worker's task being taken over
poll_seconds = 0.1
tick_seconds = 0.5
"""

_SOURCES = {
    "crossref.yaml": """\
# Crossref's /works, simulated: a cursor that is always there, inclusive windows, a short page is the last.
source: crossref
base_url: {origin}/crossref
rate: 10/s
schedule: {{every: 1m}}
endpoints:
  works:
    get: /works
    query:
      filter: "from-index-date:{{{{ window.from }}}},until-index-date:{{{{ window.to }}}}"
      rows: "{{{{ page.size }}}}"
      cursor: "{{{{ page.token }}}}"
    pagination: {{kind: token, size: 500, start: "*", next: $.message.next-cursor, stop: short_page}}
    window:
      filter: server
      field: indexed
      start: {day}
      ends: inclusive
      precision: second
      safety_lag: 2s
      max: 3d
    records:
      items: $.message.items
      id: {{path: $.DOI, lower: true}}
      updated_at: $.indexed.date-time
      total: $.message.total-results
    columns:
      title: {{path: "$.title[0]", type: text}}
      type: text
      issued: {{path: $.issued.date-parts, type: partial_date}}
""",
    "github.yaml": """\
# A repository's issues, simulated: the Link header names the next page; no window, so every fire walks it whole.
source: github
base_url: {origin}/github
rate: 10/s
schedule: {{every: 1m}}
endpoints:
  issues:
    get: /repos/acme/widgets/issues
    query: {{per_page: "{{{{ page.size }}}}"}}
    pagination: {{kind: url, next_in: link_header, size: 30, stop: no_next}}
    window: {{safety_lag: 2s}}
    records: {{items: $, id: $.id, updated_at: $.updated_at}}
    columns:
      number: int
      title: text
      state: text
      author: {{path: $.user.login, type: text}}
      comments: int
""",
    "pubmed.yaml": """\
# PubMed's search, simulated: offsets, whole days, counts written as text.
source: pubmed
base_url: {origin}/pubmed
rate: 10/s
schedule: {{every: 1m}}
endpoints:
  articles:
    get: /esearch
    query:
      mindate: "{{{{ window.from }}}}"
      maxdate: "{{{{ window.to }}}}"
      retstart: "{{{{ page.offset }}}}"
      retmax: "{{{{ page.size }}}}"
    pagination: {{kind: offset, size: 250, stop: [short_page, total_reached]}}
    window:
      filter: server
      field: lastmodified
      start: {day}
      ends: inclusive
      precision: day
      format: "%Y/%m/%d"
      safety_lag: 2s
      max: 3d
    records:
      items: $.esearchresult.items
      id: $.uid
      updated_at: {{path: $.lastmodified, format: "%Y/%m/%d %H:%M"}}
      total: $.esearchresult.count
    columns:
      title: text
      journal: {{path: $.source, type: text}}
      citations: {{path: $.pmcrefcount, type: int}}
""",
    "shop.yaml": """\
# A plain list by pages, with half-open windows. bad_every asks the simulator to spoil every 500th item: those go to
# quarantine, are counted, and the page goes on.
source: shop
base_url: {origin}/plain
rate: 10/s
schedule: {{every: 1m}}
endpoints:
  items:
    get: /items
    query:
      page: "{{{{ page.number }}}}"
      size: "{{{{ page.size }}}}"
      updated_from: "{{{{ window.from }}}}"
      updated_to: "{{{{ window.to }}}}"
      bad_every: 500
    pagination: {{kind: page, base: 1, size: 100, stop: short_page}}
    window: {{filter: server, field: updated_at, start: {day}, precision: second, safety_lag: 2s, max: 5d}}
    records: {{items: $.data, id: $.id, updated_at: $.updated_at, total: $.total}}
    columns:
      title: text
      status: text
      amount: numeric
      quantity: int
      ledger_number: numeric
""",
}


def write_project(folder: Path, world: World) -> None:
    """Write the settings and the source files for this world."""
    values = {"origin": world.origin, "day": f"{world.start:%Y-%m-%d}"}
    (folder / "ingest.toml").write_text(_SETTINGS.format(**values), encoding="utf-8")
    sources = folder / "sources"
    sources.mkdir(exist_ok=True)
    for name, text in _SOURCES.items():
        (sources / name).write_text(text.format(**values), encoding="utf-8")
