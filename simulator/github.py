"""GitHub: a stand-in for a repository's issues, paged by Link header.

The body is a bare array. The Link header names absolute URLs on the host the client asked; the last
page has no rel="next", and a list that fits one page has no Link header at all. Record i belongs to
repository i modulo the number of repositories; other repositories are 404.
"""

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from simulator.answers import (
    JSON,
    Allowance,
    Answer,
    BadRequest,
    Headers,
    NoSuchPath,
    Request,
    Twist,
    answer_json,
)
from simulator.dataset import Dataset, Row, Shape
from simulator.instants import END, format_instant, parse_window
from simulator.words import FAMILY, pick, write_text, write_title

MAX_PER_PAGE = 100
_LABELS = ("bug", "enhancement", "documentation", "good first issue", "wontfix", "performance")
_DOCUMENTATION = "https://docs.example/rest"


class GitHub:
    def __init__(self, repos: tuple[str, ...]) -> None:
        self.repos = repos
        self.shape = Shape(
            name="github",
            id_path=("id",),
            updated_path=("updated_at",),
            make_id=lambda drawn, index: str(2_000_000_000 + index * 11 + drawn[30] % 11),
            make_record=self._make_issue,
        )

    def answer(self, dataset: Dataset, request: Request, twist: Twist) -> Answer:
        repo = request.path.removeprefix("/github/repos/").removesuffix("/issues")
        if repo not in self.repos or request.path != f"/github/repos/{repo}/issues":
            raise NoSuchPath
        size = min(_read_positive(request, "per_page", 30), MAX_PER_PAGE)
        number = _read_positive(request, "page", 1)
        number = max(1, number - 1) if twist.again else number
        try:
            window = parse_window(request.params.get("since"), None)
        except ValueError as error:
            raise BadRequest(str(error), request.params["since"]) from None
        page = dataset.page_by_time((window[0], END), (number - 1) * size, size, keep=self.keep_only(repo))
        last = max(1, -(-page.total // size))
        bodies = twist.apply(page.bodies, dataset.shape)
        links = _make_links(request, number, last)
        headers = (("Link", links),) if links else ()
        return Answer(200, b"[" + b",".join(bodies) + b"]", f"{JSON}; charset=utf-8", headers)

    def keep_only(self, repo: str) -> Callable[[int], bool] | None:
        """Return the test for records of `repo`, or None where that is all of them."""
        if self.repos == (repo,):
            return None
        count, place = len(self.repos), self.repos.index(repo)
        return lambda index: index % count == place

    def is_first_page(self, request: Request) -> bool:
        return request.params.get("page", "1") in ("", "0", "1")

    def refuse(self, status: int, reason: str, value: str = "") -> Answer:
        match status:
            case 404:
                reason = "Not Found"
            case 400:
                status, reason = 422, f"Validation Failed: {reason}"
            case 403 | 429:
                reason = "You have exceeded a secondary rate limit. Please wait before you try again."
            case _:
                reason = "Server Error"
        body = {"message": reason, "documentation_url": _DOCUMENTATION, "status": str(status)}
        return answer_json(body, status)

    def describe_allowance(self, allowance: Allowance) -> Headers:
        return (
            ("x-ratelimit-limit", str(allowance.limit)),
            ("x-ratelimit-remaining", str(allowance.remaining)),
            ("x-ratelimit-reset", str(int(-(-allowance.reset_at // 1)))),
        )

    def _make_issue(self, drawn: bytes, row: Row) -> dict[str, Any]:
        repo = self.repos[row.index % len(self.repos)]
        number = row.index // len(self.repos) + 1
        api = f"https://api.example/repos/{repo}"
        closed = drawn[31] % 3 == 0
        issue: dict[str, Any] = {
            "id": int(row.id),
            "node_id": f"I_{drawn[32:40].hex()}",
            "number": number,
            "title": write_title(drawn, row.version),
            "state": "closed" if closed else "open",
            "user": {"login": pick(FAMILY, drawn[40]).lower(), "id": 1000 + drawn[40], "type": "User"},
            "labels": [{"id": 1 + n, "name": pick(_LABELS, drawn[41 + n])} for n in range(drawn[43] % 3)],
            "assignee": None,
            "locked": False,
            "comments": drawn[44] + row.version - 1,
            "created_at": format_instant(row.first_updated - 86_400 - drawn[45] * 3600),
            "updated_at": format_instant(row.updated),
            "closed_at": format_instant(row.updated) if closed else None,
            "url": f"{api}/issues/{number}",
            "repository_url": api,
            "html_url": f"https://github.example/{repo}/issues/{number}",
            "body": write_text(drawn, 4),
        }
        if drawn[46] % 4 == 0:  # issues contain pull requests
            issue["pull_request"] = {"url": f"{api}/pulls/{number}"}
        return issue


def _read_positive(request: Request, name: str, default: int) -> int:
    """Read a number as GitHub does: whatever is none or below one counts as not given."""
    text = request.params.get(name, "")
    return (int(text) or default) if text.isascii() and text.isdigit() else default


def _make_links(request: Request, number: int, last: int) -> str:
    pages: dict[str, int] = {}
    if number > 1:
        pages |= {"prev": min(number - 1, last)}
    if number < last:
        pages |= {"next": number + 1, "last": last}
    if number > 1:
        pages |= {"first": 1}
    rest = {name: value for name, value in request.params.items() if name != "page"}
    return ", ".join(
        f'<http://{request.host}{request.path}?{urlencode(rest | {"page": page})}>; rel="{rel}"'
        for rel, page in pages.items()
    )
