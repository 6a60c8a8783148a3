"""Each API's way of paging, walked to its end over a socket, gives exactly the truth."""

import re
from http.client import HTTPConnection
from typing import Any
from urllib.parse import quote, urlsplit

import pytest

from simulator.server import Simulator

WALKED = {"from": "2024-01-10", "until": "2024-01-19"}  # inclusive days
WALKED_TRUTH = ("2024-01-10", "2024-01-20")  # the same, half-open


def copy(records: list[dict[str, Any]], id_name: str, updated: Any) -> dict[str, str]:
    """Make a copy keyed by id; a record met twice is a failure."""
    made = {str(record[id_name]).lower(): updated(record) for record in records}
    assert len(made) == len(records)
    return made


def tell(sim: Simulator, api: str, *window: str) -> dict[str, str]:
    records = sim.truth(api, *window, full=True)["records"]
    return {id_: record["updated_at"] for id_, record in records.items()}


def walk_crossref(client: Any, rows: int, **params: str) -> list[list[dict[str, Any]]]:
    pages, cursor = [], "*"
    while True:
        message = client.get("/crossref/works", rows=rows, cursor=cursor, **params).json["message"]
        pages.append(message["items"])
        cursor = message["next-cursor"]
        if len(message["items"]) < rows:
            return pages


def test_crossref_walk_gives_the_truth(sim: Simulator, client: Any) -> None:
    pages = walk_crossref(client, 100)
    items = [item for page in pages for item in page]
    assert [len(page) for page in pages] == [100, 100, 60]
    assert copy(items, "DOI", lambda item: item["indexed"]["date-time"]) == tell(sim, "crossref")
    order = [(item["indexed"]["date-time"], item["DOI"].lower()) for item in items]
    assert order == sorted(order)


def test_crossref_days_are_inclusive_at_both_ends(sim: Simulator, client: Any) -> None:
    filters = "from-index-date:{from},until-index-date:{until}".format(**WALKED)
    items = [item for page in walk_crossref(client, 7, filter=filters) for item in page]
    assert copy(items, "DOI", lambda item: item["indexed"]["date-time"]) == tell(sim, "crossref", *WALKED_TRUTH)


def test_crossref_seconds_are_inclusive_at_both_ends(sim: Simulator, client: Any) -> None:
    times = sorted(tell(sim, "crossref").values())
    low, high = times[40].removesuffix("Z"), times[80].removesuffix("Z")
    filters = f"from-index-date:{low},until-index-date:{high}"
    message = client.get("/crossref/works", rows=1000, filter=filters).json["message"]
    wanted = [at for at in times if times[40] <= at <= times[80]]
    assert [item["indexed"]["date-time"] for item in message["items"]] == wanted
    assert message["total-results"] == len(wanted)


def test_crossref_windows_of_one_day_tile_the_span(sim: Simulator, client: Any) -> None:
    days = [f"2024-01-{day:02d}" for day in range(1, 32)] + [f"2024-02-{day:02d}" for day in range(1, 30)]
    filters = [f"from-index-date:{day},until-index-date:{day}" for day in days]
    totals = [client.get("/crossref/works", rows=0, filter=text).json["message"]["total-results"] for text in filters]
    assert sum(totals) == 260


def test_crossref_gives_a_next_cursor_even_after_the_last_page(client: Any) -> None:
    last = client.get("/crossref/works", rows=1000, cursor="*").json["message"]
    assert len(last["items"]) == 260
    after = client.get("/crossref/works", rows=1000, cursor=last["next-cursor"]).json["message"]
    assert after["items"] == []
    assert after["next-cursor"]


def test_crossref_cursor_is_repeatable_and_survives_a_restart(sim: Simulator, client: Any) -> None:
    cursor = client.get("/crossref/works", rows=50, cursor="*").json["message"]["next-cursor"]
    target = f"/crossref/works?rows=50&cursor={quote(cursor, safe='')}"
    first, second = client.send("GET", target).body, client.send("GET", target).body
    assert first == second
    with Simulator(sizes={"crossref": 260}) as again:
        connection = HTTPConnection("127.0.0.1", again.port)
        connection.request("GET", target)
        assert connection.getresponse().read() == first
        connection.close()


def test_crossref_cursor_must_be_encoded_and_belongs_to_its_query(client: Any) -> None:
    message = client.get("/crossref/works", rows=5, cursor="*").json["message"]
    assert message["next-cursor"].startswith("+/")
    raw = client.send("GET", f"/crossref/works?rows=5&cursor={message['next-cursor']}")
    assert raw.status == 400
    other = client.get("/crossref/works", rows=5, cursor=message["next-cursor"], filter="from-index-date:2024-01-02")
    assert other.status == 400
    assert other.json["message-type"] == "validation-failure"


@pytest.mark.parametrize(
    "params",
    [{"rows": 1001}, {"rows": -1}, {"filter": "from-index-date:soon"}, {"filter": "colour:red"}, {"cursor": "x"}],
)
def test_crossref_refuses_what_the_real_one_refuses(client: Any, params: dict[str, object]) -> None:
    assert client.get("/crossref/works", **params).status == 400


def test_pubmed_walk_gives_the_truth_with_counts_as_strings(sim: Simulator, client: Any) -> None:
    items: list[dict[str, Any]] = []
    while True:
        result = client.get("/pubmed/esearch", retstart=len(items), retmax=50).json["esearchresult"]
        assert (result["count"], result["retstart"]) == ("120", str(len(items)))
        assert result["retmax"] == str(len(result["items"]))
        items += result["items"]
        if len(items) >= int(result["count"]):
            break
    assert copy(items, "uid", parse_minutes) == tell(sim, "pubmed")


def parse_minutes(item: dict[str, Any]) -> str:
    return str(item["lastmodified"]).replace("/", "-").replace(" ", "T") + ":00Z"


def test_pubmed_days_are_inclusive(sim: Simulator, client: Any) -> None:
    first, last = (WALKED[end].replace("-", "/") for end in ("from", "until"))
    result = client.get("/pubmed/esearch", mindate=first, maxdate=last, retmax=9999).json["esearchresult"]
    assert copy(result["items"], "uid", parse_minutes) == tell(sim, "pubmed", *WALKED_TRUTH)
    assert client.get("/pubmed/esearch", mindate=first).status == 400


def test_pubmed_serves_no_record_past_9999() -> None:
    with Simulator(sizes={"pubmed": 10_050}) as sim:
        connection = HTTPConnection("127.0.0.1", sim.port)

        def search(query: str) -> tuple[int, bytes]:
            connection.request("GET", f"/pubmed/esearch?{query}")
            response = connection.getresponse()
            return response.status, response.read()

        edge = search("retstart=9990&retmax=100")[1]
        assert edge.count(b'"uid":') == 9
        assert b'"count":"10050"' in edge
        status, refused = search("retstart=9999&retmax=1")
        assert status == 200
        assert b"cannot retrieve more than 9,999" in refused
        assert b"Restrictions achieved. start and count adjusted to 9998, 1" in search("retstart=9998&retmax=10000")[1]
        connection.close()


def read_links(header: str | None) -> dict[str, str]:
    return {rel: url for url, rel in re.findall(r'<([^>]+)>; rel="(\w+)"', header or "")}


def test_github_walk_by_link_header_gives_the_truth(sim: Simulator, client: Any) -> None:
    issues: list[dict[str, Any]] = []
    target: str | None = "/github/repos/acme/widgets/issues?per_page=40&since=2024-01-01T00:00:00Z"
    seen = []
    while target:
        reply = client.send("GET", target)
        links = read_links(reply.headers["Link"])
        seen.append(sorted(links))
        issues += reply.json
        assert all(url.startswith(f"{sim.url}/github/") for url in links.values())
        following = urlsplit(links.get("next", ""))
        target = f"{following.path}?{following.query}" if links.get("next") else None
    assert seen == [["last", "next"], ["first", "last", "next", "prev"], ["first", "prev"]]
    assert copy(issues, "id", lambda issue: issue["updated_at"]) == tell(sim, "github")
    assert [i["updated_at"] for i in issues] == sorted(i["updated_at"] for i in issues)


def test_github_since_is_inclusive_and_one_page_has_no_link(sim: Simulator, client: Any) -> None:
    times = sorted(tell(sim, "github").values())
    reply = client.get("/github/repos/acme/widgets/issues", per_page=1000, since=times[50])
    assert [issue["updated_at"] for issue in reply.json] == [at for at in times if at >= times[50]]
    assert "Link" not in reply.headers
    assert len(client.get("/github/repos/acme/widgets/issues").json) == 30


def test_github_repositories_share_the_records_out() -> None:
    with Simulator(sizes={"github": 50}, github_repos=("a/one", "a/two")) as sim:
        parts = [sim.truth("github", repo=repo, full=True)["records"] for repo in ("a/one", "a/two")]
        assert parts[0].keys() | parts[1].keys() == sim.truth("github", full=True)["records"].keys()
        assert not parts[0].keys() & parts[1].keys()
        connection = HTTPConnection("127.0.0.1", sim.port)
        connection.request("GET", "/github/repos/a/two/issues?per_page=100")
        assert connection.getresponse().read().count(b'"node_id":') == 25
        connection.request("GET", "/github/repos/a/three/issues")
        response = connection.getresponse()
        assert (response.status, b"Not Found" in response.read()) == (404, True)
        connection.close()


@pytest.mark.parametrize("by_page", [True, False])
def test_plain_walk_gives_the_truth(sim: Simulator, client: Any, by_page: bool) -> None:
    items: list[dict[str, Any]] = []
    more = True
    while more:
        place = {"page": len(items) // 50 + 1, "size": 50} if by_page else {"offset": len(items), "limit": 50}
        page = client.get("/plain/items", **place).json
        assert page["total"] == 130
        items += page["data"]
        more = page["has_more"]
    assert copy(items, "id", lambda item: item["updated_at"]) == tell(sim, "plain")


def test_plain_window_is_half_open(sim: Simulator, client: Any) -> None:
    times = sorted(tell(sim, "plain").values())
    page = client.get("/plain/items", size=1000, updated_from=times[10], updated_to=times[20]).json
    wanted = [at for at in times if times[10] <= at < times[20]]
    assert sorted(item["updated_at"] for item in page["data"]) == wanted
    assert page["has_more"] is False


def test_plain_bad_every_spoils_every_kth_item(client: Any) -> None:
    items = client.get("/plain/items", size=30, bad_every=10).json["data"]
    assert [place for place, item in enumerate(items, 1) if "id" not in item] == [10, 30]
    assert [place for place, item in enumerate(items, 1) if not item["updated_at"].startswith("2024")] == [20]


@pytest.mark.parametrize("query", ["page=1&offset=0", "size=1001", "page=0", "limit=x", "updated_from=x"])
def test_plain_refuses_nonsense(client: Any, query: str) -> None:
    assert client.send("GET", f"/plain/items?{query}").status == 400


@pytest.mark.parametrize("path", ["/", "/crossref", "/crossref/journals", "/plain/items/7", "/pubmed/", "/elsewhere"])
def test_unknown_paths_are_not_found(client: Any, path: str) -> None:
    assert client.get(path).status == 404


def test_parameters_may_come_in_a_posted_form_or_object(client: Any) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    reply = client.send("POST", "/pubmed/esearch", b"retmax=3", form)
    assert len(reply.json["esearchresult"]["items"]) == 3
    reply = client.send("POST", "/plain/items", b'{"size": 4}', {"Content-Type": "application/json"})
    assert len(reply.json["data"]) == 4


@pytest.mark.parametrize(
    ("api", "path"),
    [
        ("crossref", "/crossref/works?rows=200"),
        ("pubmed", "/pubmed/esearch?retmax=100"),
        ("github", "/github/repos/acme/widgets/issues?per_page=90"),
        ("plain", "/plain/items?size=100"),
    ],
)
def test_records_are_about_a_kilobyte(client: Any, api: str, path: str) -> None:
    body = client.send("GET", path).body
    count = {"crossref": 200, "pubmed": 100, "github": 90, "plain": 100}[api]
    assert 800 < len(body) / count < 1300
