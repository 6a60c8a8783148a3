"""Each check of A4, by the mistake it finds: the field it names and the fix it offers."""

# ruff: noqa: E501 -- one mistake, one line

import pytest

from registry.problems import format_problem
from tests.unit.registry.writing import PLAIN, change, draft_of, only_problem, place_of, problems_of

_PAGES = "pagination: {kind: page, base: 1, size: 100}"
_PAGE = 'page: "{{ page.number }}"'
_WINDOW = "window: {filter: server, field: updated, start: 2024-01-01, precision: second, max: 1d}"
_TOKEN = 'page: "{{ page.token }}"'
_OFFSET = 'page: "{{ page.offset }}"'
_AUTH = "source: plain\nauth: "

# (old, new)..., the path named, part of the message, part of the hint
_ERRORS: list[tuple[list[tuple[str, str]], str, str, str]] = [
    # codes
    ([(_PAGES, "pagination: {kind: curser, base: 1, size: 100}")],
     "endpoints.items.pagination.kind", "'curser' is not a pagination type", "did you mean 'cursor'?"),
    ([("filter: server", "filter: servr")], "endpoints.items.window.filter", "is not a window filter", "'server'"),
    ([("precision: second", "precision: seconds")], "endpoints.items.window.precision", "not a precision", "'second'"),
    ([("title: text", "title: txet")], "endpoints.items.columns.title", "'txet' is not a column type", "'text'"),
    ([("size: 100}", "size: 100, stop: shrt_page}")],
     "endpoints.items.pagination.stop", "'shrt_page' is not a stop rule", "did you mean 'short_page'?"),
    ([("    get: /items", "    role: serch\n    get: /items")], "endpoints.items.role", "not an endpoint role", "'search'"),
    ([("    get: /items", "    payload: xml\n    get: /items")], "endpoints.items.payload", "not a payload type", "json"),
    ([("source: plain", _AUTH + "{type: oath2, secret: env:X}")], "auth.type", "is not an auth type", "'oauth2'"),
    # pagination
    ([(_PAGES, "pagination: {kind: page, size: 100}")], "endpoints.items.pagination.base", "needs 'base': 0 or 1", ""),
    ([("base: 1", "base: 2")], "endpoints.items.pagination.base", "'base' is 0 or 1", ""),
    ([("base: 1, size: 100", "base: 1")], "endpoints.items.pagination.size", "needs 'size', or 'max_size'", ""),
    ([("size: 100}", "size: 100, max_size: 50}")], "endpoints.items.pagination.size", "100 is above the vendor's 50", ""),
    ([("size: 100}", "size: 100, next: $.next}")],
     "endpoints.items.pagination.next", "'next' is for kind token or url, not page", ""),
    ([(_PAGES, "pagination: {kind: token, size: 100}"), (_PAGE, _TOKEN)],
     "endpoints.items.pagination.next", "kind token needs 'next'", ""),
    ([(_PAGES, "pagination: {kind: url, size: 100}"), (_PAGE, "x: y")],
     "endpoints.items.pagination.next", "kind url needs 'next'", ""),
    ([(_PAGES, "pagination: {kind: link, next: $.next, next_in: link_header, size: 100}"), (_PAGE, "x: y")],
     "endpoints.items.pagination.next", "exclude each other", ""),
    ([(_PAGES, "pagination: {kind: time, size: 100}"), (_PAGE, "x: y")],
     "endpoints.items.pagination.kind", "is not supported yet", ""),
    ([(_PAGE, "page: 1")], "endpoints.items.pagination.kind", "no template uses page.number", "{{ page.number }}"),
    ([(_PAGES, "pagination: {kind: offset, size: 100, start: first}"), (_PAGE, _OFFSET)],
     "endpoints.items.pagination.start", "not 'first'", ""),
    ([("size: 100}", "size: 100, stop: no_next}")],
     "endpoints.items.pagination.stop", "'no_next' cannot end a walk of kind page", "short_page"),
    ([("size: 100}", "size: 100, stop: has_more_false}")],
     "endpoints.items.pagination.stop", "'has_more_false' needs 'has_more'", ""),
    ([("size: 100}", "size: 100, stop: total_reached}"), (", total: $.total", "")],
     "endpoints.items.pagination.stop", "'total_reached' needs records.total", ""),
    # window
    ([("start: 2024-01-01, ", "")], "endpoints.items.window.start", "'start' is missing", "start: 2024-01-01"),
    ([('from: "{{ window.from }}"', "from: x"), ('to: "{{ window.to }}"', "to: y")],
     "endpoints.items.window.filter", "no template uses window.from", "since:"),
    ([("max: 1d", "max: 500ms, min: 500ms")], "endpoints.items.window.max", "500ms is not a whole number of units (second)", ""),
    ([("max: 1d", "max: 1h, min: 2h")], "endpoints.items.window.min", "min (2h) is above max (1h)", ""),
    ([("max: 1d", "max: 30s")], "endpoints.items.window.max", "min (1m) is above max (30s)", ""),
    ([("precision: second, max: 1d", "precision: day, max: 1d, align: hour")],
     "endpoints.items.window.align", "align hour is finer than the source's precision (day)", ""),
    ([("max: 1d", "max: 1h, align: day")], "endpoints.items.window.align", "align day is wider than max (1h)", ""),
    ([("max: 1d", "max: 1d, safety_lag: 60d")], "endpoints.items.window.safety_lag", "at most 30d", ""),
    ([("max: 1d", "max: 1d, zone: Mars/Olympus")], "endpoints.items.window.zone", "not a time zone", "America/New_York"),
    ([("max: 1d", "max: 1d, format: is")], "endpoints.items.window.format", "'is' is not a time format", "'iso'"),
    ([("max: 1d", "max: 1d, format: date")],
     "endpoints.items.window.format", "'date' writes nothing finer than 1d, but precision is second", "precision"),
    ([("max: 1d", 'max: 1d, format: "%Y-%m-%d %H:%M"')], "endpoints.items.window.format", "finer than 1m", "precision"),
    ([("start: 2024-01-01, precision: second", "start: 2024-01-01T12:00:00Z, precision: day")],
     "endpoints.items.window.start", "does not begin a day in UTC", ""),
    # records
    ([("updated_at: $.updated, ", "")],
     "endpoints.items.records.updated_at", "'updated_at' is missing", "version: content_hash"),
    ([("updated_at: $.updated,", "updated_at: $.updated, version: content_hash,")],
     "endpoints.items.records.version", "keep one", ""),
    ([("updated_at: $.updated", "updated_at: {path: $.updated, format: epoc_ms}")],
     "endpoints.items.records.updated_at.format", "'epoc_ms' is not a time format", "did you mean 'epoch_ms'?"),
    ([("id: $.id", "id: {path: $.id, type: int}")],
     "endpoints.items.records.id.type", "provider_id is text", "'column' of its own"),
    ([("id: $.id", "id: {path: $.id, type: json, column: key}")], "endpoints.items.records.id.type", "cannot be json", ""),
    ([("id: $.id", "id: [{column: a, path: $.a}, {path: $.b}]")],
     "endpoints.items.records.id.1.column", "each part of a composite id needs its 'column'", ""),
    ([("id: $.id", "id: [{column: a, path: $.a}, {column: a, path: $.b}]")],
     "endpoints.items.records.id", "the same column", ""),
    ([("items: $.data", 'items: "$.data["')], "endpoints.items.records.items", "not a valid JSONPath: input ends inside '['", ""),
    ([("items: $.data", "items: data")], "endpoints.items.records.items", "a path begins with '$'", ""),
    ([("title: text", "_title: text")], "endpoints.items.columns._title", "are the system's", ""),
    ([("title: text", "Title: text")], "endpoints.items.columns.Title", "must match ^[a-z]", ""),
    ([("title: text", "payload: text")], "endpoints.items.columns.payload", "made by the system", "another name"),
    ([("title: text", "updated_at: timestamp")], "endpoints.items.columns.updated_at", "made by the system", ""),
    ([("title: text", "a: text"), ("id: $.id", "id: {path: $.id, column: a}")],
     "endpoints.items.columns.a", "made by records.id", ""),
    ([("title: text", "title: {type: text, format: iso}")],
     "endpoints.items.columns.title.format", "'format' is for timestamp and date, not text", ""),
    ([("title: text", "title: {type: int, enum: [a]}")], "endpoints.items.columns.title.enum", "for text, not int", ""),
    # request
    ([("https://api.example.org/v1", "http://api.example.org")], "base_url", "plain http is closed", "open_origins"),
    ([("https://api.example.org/v1", "https://127.0.0.1")], "base_url", "127.0.0.1 is a private address", "open_origins"),
    ([("https://api.example.org/v1", "https://169.254.169.254")], "base_url", "is a private address", ""),
    ([("https://api.example.org/v1", "ftp://api.example.org")], "base_url", "is not a URL", "https://"),
    ([("https://api.example.org/v1", "https://api.example.org/?x=1")], "base_url", "no '?' or '#'", "use 'query'"),
    ([("https://api.example.org/v1", '"https://{{ vars.term }}.org"')], "base_url", "an address is fixed", ""),
    ([("get: /items", "get: items")], "endpoints.items.get", "a path begins with '/', got 'items'", ""),
    ([("get: /items", "get: /items?x=1")], "endpoints.items.get", "no '?' or '#'", "use 'query'"),
    ([("get: /items", "get: /items\n    timeouts: {read: 5m}")], "endpoints.items.timeouts.read", "at most 2m, got 5m", ""),
    ([("get: /items", "get: /items\n    body: {a: 1}")], "endpoints.items.body", "a GET has no body", "post: /path"),
    ([("get: /items", "get: /items\n    form: {a: 1}")], "endpoints.items.form", "a GET has no form", "post: /path"),
    ([("get: /items", "post: /items\n    http: {redirects: 2}")], "endpoints.items.http.redirects", "GET only", ""),
    ([("get: /items", "get: /items\n    headers: {Host: x}")], "endpoints.items.headers.Host", "set by the client", ""),
    ([("get: /items", "get: /items\n    headers: {A B: x}")], "endpoints.items.headers.A B", "not a header name", ""),
    ([("get: /items", "get: /items\n    inert: [mailto]")], "endpoints.items.inert.0", "'mailto' is not a parameter", "q"),
    # templates
    ([("{{ vars.term }}", "{{ vars.trem }}")], "endpoints.items.query.q", "'trem' is not a field of 'vars'", "'term'"),
    ([("{{ vars.term }}", "{{ windw.from }}")], "endpoints.items.query.q", "'windw' is not a name here", "'window'"),
    ([("{{ vars.term }}", "{{ page.token }}")], "endpoints.items.query.q", "'token' is not a field of 'page'", ""),
    ([("{{ vars.term }}", "{{ vars.term ")], "endpoints.items.query.q", "template syntax", ""),
    ([("{{ vars.term }}", "{% for x in y %}{% endfor %}")], "endpoints.items.query.q", "is not allowed", ""),
    ([("{{ vars.term }}", "{{ vars.term | lower }}"), ("rate: 10/s", "rate: 10/s\nfunctions: [upper]")],
     "endpoints.items.query.q", "the function 'lower' is not allowed here (upper)", ""),
    ([("rate: 10/s", "rate: 10/s\nfunctions: [uper]")], "functions", "'uper' is not a function", "'upper'"),
    # credentials
    ([("source: plain", _AUTH + "{type: bearer}")], "auth.secret", "'secret' is missing", "env:NAME"),
    ([("source: plain", _AUTH + "{type: api_key, in: query, secret: env:X}")], "auth.name", "needs 'name'", ""),
    ([("source: plain", _AUTH + "{type: api_key, in: body, name: k, secret: env:X}")],
     "auth.in", "a GET has no body to put a credential in", "header or query"),
    ([("source: plain", _AUTH + "{type: bearer, in: query, secret: env:X}")], "auth.in", "goes in a header", ""),
    ([("source: plain", _AUTH + "{type: oauth2, secret: env:X}")], "auth.type", "not supported yet", ""),
    ([("source: plain", _AUTH + "{type: none, secret: env:X}")], "auth.secret", "type none takes no secret", ""),
    ([("source: plain", _AUTH + "{type: api_key, in: query, name: q, secret: env:X}")],
     "auth.name", "'q' is also set under query", "leave it to 'auth'"),
    # limits
    ([("rate: 10/s", "rate: {windows: 10/s, per_second: 20}")], "rate.per_second", "20/s is above the limit 10/1s", ""),
    ([("rate: 10/s", "rate: {windows: 10/s, burst: 20}")], "rate.burst", "a burst of 20 is above the limit 10/1s", ""),
    ([("rate: 10/s", "rate: {per_second: 0.05}")], "rate.per_second", "the minimum 0.1/s is above", ""),
    ([("rate: 10/s", "retry: {base: 1m, cap: 10s}")], "retry.base", "the first wait (1m) is above cap (10s)", ""),
]  # fmt: skip


@pytest.mark.parametrize(("replacements", "path", "message", "hint"), _ERRORS)
def test_a_mistake_is_found_at_its_field_with_its_fix(
    replacements: list[tuple[str, str]], path: str, message: str, hint: str
) -> None:
    problems = [problem for problem in problems_of(*replacements) if problem.severity == "error"]
    told = [f"{problem.path}: {problem.message}" for problem in problems]
    assert any(p.path == path and message in p.message and hint in p.hint for p in problems), told
    assert all(problem.line > 0 for problem in problems)


def test_filter_none_with_a_window_in_a_template_is_an_error() -> None:
    problems = problems_of((_WINDOW, "window: {filter: none}"))
    assert {problem.path for problem in problems} == {"endpoints.items.query.from", "endpoints.items.query.to"}


def test_a_mistake_of_the_source_is_told_once_however_many_endpoints_it_has() -> None:
    second = PLAIN[PLAIN.index("  items:") :].replace("  items:", "  other:", 1)
    text = change(PLAIN, ("https://api", "http://api")) + second
    assert [problem.path for problem in draft_of(text).problems] == ["base_url"]


def test_the_caret_stands_under_the_wrong_name_inside_a_template() -> None:
    text = change(PLAIN, ("{{ vars.term }}", "x {{ vars.trem }}"))
    problem = draft_of(text).problems[0]
    assert (problem.line, problem.column) == place_of(text, "trem")


def test_the_caret_stands_where_a_path_breaks() -> None:
    text = change(PLAIN, ("items: $.data", 'items: "$.data["'))
    problem = draft_of(text).problems[0]
    assert problem.column == place_of(text, "$.data[")[1] + len("$.data")


@pytest.mark.parametrize(
    "origins", [("http://api.example.org",), ("http://api.example.org:80",), ("http://api.example.org:*",)]
)
def test_an_origin_opened_by_the_installation_may_be_plain_http(origins: tuple[str, ...]) -> None:
    assert problems_of(("https://api", "http://api"), open_origins=origins) == []


@pytest.mark.parametrize("origins", [("https://api.example.org",), ("http://other.example.org:*",), ()])
def test_another_opened_origin_opens_nothing_else(origins: tuple[str, ...]) -> None:
    assert only_problem(("https://api", "http://api"), open_origins=origins).code == "closed-origin"


@pytest.mark.parametrize(
    "written",
    [
        "source: plain\nauth: {type: bearer, secret: hunter2hunter2}",
        "source: plain\nauth: {type: basic, secret: env:X, username: hunter2hunter2}",
        "source: plain\nheaders: {Authorization: Bearer hunter2hunter2}",
        "source: plain\nheaders: {X-Api-Key: hunter2hunter2}",
        "source: plain\nquery: {api_key: hunter2hunter2}",
        "source: plain\nquery: {note: ghp_hunter2hunter2hunter2hunter2}",
        "source: plain\nquery: {note: AKIAABCDEFGHIJKLMNOP}",
    ],
)
def test_a_literal_secret_is_refused_and_never_shown(written: str) -> None:
    problems = problems_of(("source: plain", written))
    assert [problem.code for problem in problems] == ["literal-secret"]
    shown = format_problem(problems[0]) + str(problems[0].as_data())
    assert "hunter2" not in shown
    assert "AKIA" not in shown


def test_a_secret_from_the_environment_does_not_slip_in_through_a_variable() -> None:
    problem = only_problem(
        ("vars: {term: cats}", "vars: {term: cats, api_key: '${KEY}'}"), environment={"KEY": "hunter2"}
    )
    assert problem.code == "literal-secret"


def test_a_password_in_the_address_is_refused_and_never_shown() -> None:
    problem = only_problem(("https://api", "https://ana:hunter2@api"))
    assert problem.code == "literal-secret"
    assert "hunter2" not in format_problem(problem)


def test_a_credential_reference_in_a_parameter_would_be_sent_as_text() -> None:
    assert only_problem(("{{ vars.term }}", "env:TOKEN")).code == "secret-in-template"


def test_a_page_token_parameter_is_no_secret() -> None:
    replacements = (
        (_PAGES, "pagination: {kind: token, size: 100, next: $.next}"),
        (_PAGE, 'access_token: "{{ page.token }}"'),
    )
    assert problems_of(*replacements) == []


@pytest.mark.parametrize(
    ("replacements", "code", "path"),
    [
        ([("items: $.data", "items: $..data")], "slow-path", "endpoints.items.records.items"),
        ([('to: "{{ window.to }}"', "x: y")], "window-open", "endpoints.items.window.filter"),
        ([('size: "{{ page.size }}"', "x: y")], "size-unused", "endpoints.items.pagination.size"),
        ([("vars: {term: cats}", "vars: {term: 0123456789abcdef0123456789abcdef}")], "literal-secret", "vars.term"),
    ],
)
def test_what_is_only_doubtful_is_a_warning(replacements: list[tuple[str, str]], code: str, path: str) -> None:
    problem = only_problem(*replacements)
    assert (problem.severity, problem.code, problem.path) == ("warning", code, path)


def test_a_literal_page_size_counts_as_sent() -> None:
    assert problems_of(('size: "{{ page.size }}"', "size: 100")) == []


@pytest.mark.parametrize("reference", ["env:TOKEN", "env:_x1", "file:/run/secrets/token"])
def test_references_are_well_formed(reference: str) -> None:
    assert problems_of(("source: plain", f"source: plain\nauth: {{type: bearer, secret: '{reference}'}}")) == []


@pytest.mark.parametrize("reference", ["env:", "env:1X", "env:A B", "file:relative", "vault:x", "TOKEN"])
def test_a_malformed_reference_is_refused(reference: str) -> None:
    found = problems_of(("source: plain", f"source: plain\nauth: {{type: bearer, secret: '{reference}'}}"))
    assert [problem.path for problem in found] == ["auth.secret"]
