"""Proposals: from one answer of a source, or a template's name, to a draft of its file, each guess with its reason.

What is proposed is a guess a person goes over: every line that was guessed says from what. A parameter that looks like
a credential is never written down; it becomes an `auth` that names an environment variable.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from registry.infer import Inferred, infer_columns, path_of

TEMPLATES = ("page", "offset", "token", "link", "keyset", "windowed")
_IDS = ("id", "uid", "uuid", "guid", "doi", "key", "code", "number")
_TIMES = ("updated_at", "updated", "modified_at", "modified", "last_modified", "lastmodified", "indexed", "changed")
_TOTALS = ("total", "count", "total_count", "totalcount", "total_results", "numfound", "hitcount")
_TOKENS = ("next_cursor", "nextcursor", "next_token", "nextpagetoken", "next_page_token", "cursor", "resumptiontoken")
_LINKS = ("next", "next_url", "nexturl", "nextlink", "next_page_url", "odata_nextlink")
_MORE = ("has_more", "hasmore", "has_next", "hasnext", "more")
_PAGES, _OFFSETS = ("page", "page_number", "pagenumber", "p"), ("offset", "start", "skip", "retstart", "from")
_SIZES = ("size", "limit", "per_page", "page_size", "pagesize", "rows", "retmax", "count")
_SECRETS = re.compile(r"(?i)(api_?)?key|(access_?|auth_?)?token|secret|password")
_SIZE = 100


@dataclass(slots=True)
class Proposal:
    """A file in the making; `why` goes behind the line it explains."""

    name: str
    base_url: str = "https://api.example.org/v1"
    path: str = "/items"
    query: dict[str, str] = field(default_factory=dict)
    auth: str = ""
    pagination: str = ""
    window: str = "window: {filter: none}"
    items: str = "$.data"
    id: str = "$.id"
    updated_at: str = "$.updated_at"
    total: str = ""
    columns: Sequence[Inferred] = ()
    why: dict[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Return the source file."""
        last = [part for part in self.path.split("/") if part and "{" not in part][-1:] or ["items"]
        endpoint = re.sub(r"[^a-z0-9]+", "_", last[0].lower()).strip("_0123456789")[:30] or "items"
        moment = f"updated_at: {self.updated_at}" if self.updated_at else "version: content_hash"
        total = f", total: {_quote(self.total)}" if self.total else ""
        lines = [
            f"source: {self.name}",
            f"base_url: {self.base_url}",
            "rate: 1/s                  # the vendor's limit; never more than this, all workers together",
            *([f"auth: {self.auth}"] if self.auth else []),
            "schedule: {every: 1h}",
            "endpoints:",
            f"  {endpoint}:",
            f"    get: {_quote(self.path)}",
            *(["    query:"] if self.query else []),
            *(f"      {_quote(name)}: {_quote(value)}" for name, value in self.query.items()),
            f"    {self.pagination}{self._because('pagination')}",
            f"    {self.window}{self._because('window')}",
            f"    records:{self._because('records')}",
            f"      items: {_quote(self.items)}{self._because('items')}",
            f"      id: {_quote(self.id)}{self._because('id')}",
            f"      {moment}{self._because('updated_at')}",
            *([f"      {total.removeprefix(', ')}{self._because('total')}"] if total else []),
            *(["    columns:"] if self.columns else []),
            *(f"      {c.name}: {{path: {_quote(c.path)}, type: {c.type}}}" for c in self.columns),
        ]
        return "\n".join(lines) + "\n"

    def _because(self, part: str) -> str:
        return f"    # {self.why[part]}" if part in self.why else ""


def _quote(text: str) -> str:
    """Return the text as YAML writes it: plain where that is safe, else in JSON's quotes, which YAML reads too."""
    return text if re.fullmatch(r"[$/A-Za-z_][A-Za-z0-9_./$-]*", text) else json.dumps(text, ensure_ascii=False)


def propose_template(name: str, template: str) -> Proposal:
    """Return a file of one kind to fill in."""
    proposal = Proposal(name, columns=(Inferred("title", "$.title", "text", 0, None),))
    size = {"size": "{{ page.size }}"}
    match template:
        case "offset":
            proposal.query = {"offset": "{{ page.offset }}", **size}
            proposal.pagination = f"pagination: {{kind: offset, size: {_SIZE}, stop: short_page}}"
        case "token":
            proposal.query = {"cursor": "{{ page.token }}", **size}
            proposal.pagination = f"pagination: {{kind: token, next: $.next_cursor, size: {_SIZE}, stop: no_next}}"
        case "link":
            proposal.query = dict(size)
            proposal.pagination = f"pagination: {{kind: url, next_in: link_header, size: {_SIZE}, stop: no_next}}"
        case "keyset":
            proposal.query = {"after_id": "{{ page.token }}", **size}
            proposal.pagination = (
                f'pagination: {{kind: token, next: "$.data[-1].id", size: {_SIZE}, stop: [short_page, no_next]}}'
            )
            proposal.why["pagination"] = "the last record's id asks for what comes after it: the order must be by id"
        case _:
            proposal.query = {"page": "{{ page.number }}", **size}
            proposal.pagination = f"pagination: {{kind: page, base: 1, size: {_SIZE}, stop: short_page}}"
    if template == "windowed":
        proposal.query |= {"updated_from": "{{ window.from }}", "updated_to": "{{ window.to }}"}
        ends = "ends: exclusive, precision: second, max: 7d"
        proposal.window = f"window: {{filter: server, field: updated_at, start: 2024-01-01, {ends}}}"
    return proposal


def propose(name: str, url: str, answer: Any, links: Mapping[str, str]) -> Proposal:
    """Return the draft of a file that would read this answer of this URL."""
    parts = urlsplit(url)
    folder, _, last = parts.path.rstrip("/").rpartition("/")
    proposal = Proposal(name, f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{folder}", f"/{last}")
    for key, value in parse_qsl(parts.query, keep_blank_values=True):
        if _SECRETS.fullmatch(key):
            variable = f"{name.upper()}_{re.sub('[^A-Z0-9]+', '_', key.upper())}"
            proposal.auth = f"{{type: api_key, in: query, name: {_quote(key)}, secret: env:{variable}}}"
        else:
            proposal.query[key] = value
    records = _find_items(proposal, answer)
    _find_pages(proposal, answer, links, len(records))
    columns = infer_columns(records)
    _find_id(proposal, records, columns)
    _find_time(proposal, columns)
    proposal.columns = [c for c in columns if c.path not in (proposal.id, proposal.updated_at.partition(",")[0])]
    proposal.why["window"] = "no time filter: every fire walks the whole source; see docs/how-to/windows.md"
    return proposal


def _plain(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")


def _scalars(answer: Any) -> list[tuple[tuple[str, ...], Any]]:
    """Return the envelope's scalars, two levels deep, the outer ones first."""
    outer = list(answer.items()) if isinstance(answer, dict) else []
    inner = [((key, deep), value) for key, item in outer if isinstance(item, dict) for deep, value in item.items()]
    found = [((key,), value) for key, value in outer] + inner
    return [(keys, value) for keys, value in found if not isinstance(value, dict | list)]


def _find_named(answer: Any, names: Sequence[str]) -> tuple[str, Any] | None:
    found = [(keys, value) for keys, value in _scalars(answer) if _plain(keys[-1]) in names]
    return (path_of(found[0][0]), found[0][1]) if found else None


def _find_items(proposal: Proposal, answer: Any) -> list[Any]:
    places: list[tuple[tuple[str, ...], Any]] = [((), answer)]
    if isinstance(answer, dict):
        places += [((key,), value) for key, value in answer.items()]
        places += [((k, d), v) for k, item in answer.items() if isinstance(item, dict) for d, v in item.items()]
    lists = [(keys, v) for keys, v in places if isinstance(v, list) and v and all(isinstance(i, dict) for i in v)]
    if not lists:
        proposal.why["items"] = "NOT FOUND: no list of objects in the answer; write where the records stand"
        return []
    keys, records = max(lists, key=lambda place: len(place[1]))
    proposal.items = path_of(keys)
    proposal.why["items"] = f"the longest list of objects: {len(records)} records"
    total = _find_named(answer, _TOTALS)
    if total is not None and isinstance(total[1], int | str) and str(total[1]).isdigit():
        proposal.total, proposal.why["total"] = total[0], f"said {total[1]}"
    return list(records)


def _find_pages(proposal: Proposal, answer: Any, links: Mapping[str, str], received: int) -> None:
    query = proposal.query
    by_name = {_plain(name): name for name in query}
    size_name = next((by_name[name] for name in _SIZES if name in by_name), None)
    size = int(query[size_name]) if size_name and query[size_name].isdigit() and int(query[size_name]) else received
    sized = f", size: {size}" if size else ""
    if size_name:
        query[size_name] = "{{ page.size }}"
    token, link = _find_named(answer, _TOKENS), _find_named(answer, _LINKS)
    page = next((by_name[name] for name in _PAGES if name in by_name), None)
    offset = next((by_name[name] for name in _OFFSETS if name in by_name), None)
    if "next" in links:
        kind, why = f"kind: url, next_in: link_header{sized}, stop: no_next", "the Link header names the next page"
    elif link is not None and str(link[1] or "").startswith(("http://", "https://", "/")):
        kind, why = f"kind: url, next: {_quote(link[0])}{sized}, stop: no_next", f"{link[0]} is a URL"
    elif token is not None and isinstance(token[1], str) and token[1]:
        name = (
            by_name.get("cursor") or by_name.get("page_token") or ("cursor" if "cursor" in token[0] else "page_token")
        )
        query[name] = "{{ page.token }}"
        kind = f"kind: token, next: {_quote(token[0])}{sized}, stop: no_next"
        why = f"{token[0]} looks like a token; is the parameter called '{name}'?"
    elif page is not None:
        base = 0 if query[page] == "0" else 1
        query[page] = "{{ page.number }}"
        kind, why = f"kind: page, base: {base}, size: {size or _SIZE}, stop: short_page", f"the URL has '{page}'"
    elif offset is not None:
        query[offset] = "{{ page.offset }}"
        kind, why = f"kind: offset, size: {size or _SIZE}, stop: short_page", f"the URL has '{offset}'"
    else:
        kind, why = "kind: none", "NOTHING in the URL or the answer speaks of pages: is this all there is?"
        if size_name:
            query[size_name] = str(size)
    more = _find_named(answer, _MORE)
    if more is not None and isinstance(more[1], bool) and kind != "kind: none":
        stop = f"has_more: {_quote(more[0])}, stop: has_more_false"
        kind, why = re.sub(r"stop: \w+$", lambda _: stop, kind), f"{why}; {more[0]} tells the end"
    proposal.pagination, proposal.why["pagination"] = f"pagination: {{{kind}}}", why


def _find_id(proposal: Proposal, records: list[Any], columns: Sequence[Inferred]) -> None:
    whole = [c for c in columns if c.seen == len(records) and c.type in ("text", "int") and c.path.count(".") == 1]
    unique = [c for c in whole if len({str(record.get(c.path[2:])) for record in records}) == len(records)]
    ranked = sorted(unique, key=lambda c: (_IDS.index(c.name) if c.name in _IDS else 50, not c.name.endswith("_id")))
    if not ranked:
        proposal.why["id"] = "NOT FOUND: no field is there and different in every record"
        return
    proposal.id = ranked[0].path
    proposal.why["id"] = f"there and different in all {len(records)} records, such as {str(ranked[0].example)[:40]}"


def _find_time(proposal: Proposal, columns: Sequence[Inferred]) -> None:
    found = [c for c in columns if c.type == "timestamp" and c.path.count(".") == 1]
    ranked = sorted(found, key=lambda c: _TIMES.index(c.name) if c.name in _TIMES else 50)
    epochs = [c for c in columns if c.type == "int" and c.name in _TIMES and c.example > 10**8]
    if ranked:
        proposal.updated_at = ranked[0].path
        proposal.why["updated_at"] = f"a time, such as {ranked[0].example}; does it change with the record?"
    elif epochs:
        form = "epoch_ms" if epochs[0].example > 10**11 else "epoch_s"
        proposal.updated_at = f"{{path: {epochs[0].path}, format: {form}}}"
        proposal.why["updated_at"] = f"counts since 1970, such as {epochs[0].example}"
    else:
        proposal.updated_at = ""
        proposal.why["updated_at"] = "no field looks like a time: a record is new when its content differs"
