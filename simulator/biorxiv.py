"""bioRxiv: a stand-in for `details`, where server, days and position are parts of the path.

Pages have 30 rows, totals are strings, and a row is one version of a paper: doi and version together
name it. Days are those on which a version was posted; a later change (the paper was published in a
journal) leaves them. Every fourth paper is medRxiv's.
"""

from collections.abc import Callable
from typing import Any

from simulator.answers import Allowance, Answer, BadRequest, Headers, NoSuchPath, Request, Twist, answer_json
from simulator.dataset import Dataset, Row, Shape, Window, encode_json
from simulator.instants import DAY, format_instant, parse_unit
from simulator.words import TOPICS, draw, list_people, pick, write_text, write_title

PAGE = 30
SERVERS = {"biorxiv": "bioRxiv", "medrxiv": "medRxiv"}
_NONE = {"messages": [{"status": "no posts found"}], "collection": []}


class BioRxiv:
    def __init__(self) -> None:
        self.shape = Shape(
            name="biorxiv",
            id_path=("doi",),
            updated_path=("date",),
            make_id=lambda drawn, index: "{}/{}".format(*name_version(index)),
            make_record=_make_row,
            grain=DAY,
            place=_place,
            moves=False,
        )

    def answer(self, dataset: Dataset, request: Request, twist: Twist) -> Answer:
        parts = request.path.removesuffix("/json").split("/")[2:]
        if len(parts) not in (4, 5) or parts[0] != "details" or parts[1] not in SERVERS:
            raise NoSuchPath
        server, first, last = parts[1:4]
        cursor = parts[4] if len(parts) == 5 else "0"
        if not (cursor.isascii() and cursor.isdigit()):  # 1e+05 is how some clients write it
            raise BadRequest("no posts found")
        start = max(0, int(cursor) - PAGE) if twist.again else int(cursor)
        try:
            window = parse_unit(first)[0], parse_unit(last)[1]
        except ValueError:
            raise BadRequest("no posts found") from None
        keep = self.keep_only(server)
        page = dataset.page_by_time(window, start, PAGE, keep=keep)
        if not page.bodies:
            return answer_json(_NONE)
        new = dataset.page_by_time(window, 0, 0, keep=lambda index: keep(index) and name_version(index)[1] == 1)
        bodies = twist.apply(page.bodies, dataset.shape)
        message = {"status": "ok", "category": "all", "interval": f"{first}:{last}", "cursor": start}
        message |= {"count": len(bodies), "count_new_papers": str(new.total), "total": str(page.total)}
        head = encode_json({"messages": [message]}).encode()
        return Answer(200, b"".join((head[:-1], b',"collection":[', b",".join(bodies), b"]}")))

    def keep_only(self, server: str) -> Callable[[int], bool]:
        """Return the test for rows of `server`; raises ValueError if there is none of that name."""
        if server not in SERVERS:
            raise ValueError(f"no such server: {server}")
        return lambda index: _find_server(index) == server

    def is_first_page(self, request: Request) -> bool:
        return request.path.removesuffix("/json").split("/")[6:] in ([], ["0"])

    def refuse(self, status: int, reason: str, value: str = "") -> Answer:
        if status == 400:
            return answer_json({"messages": [{"status": reason}], "collection": []})
        return Answer(status, f"<html><body><h1>{status}</h1></body></html>".encode(), "text/html")

    def describe_allowance(self, allowance: Allowance) -> Headers:
        return ()


def name_version(index: int) -> tuple[str, int]:
    """Return doi and version of a row: of every three, the last two are one paper's versions."""
    paper = index // 3 * 2 + min(1, index % 3)
    return f"10.1101/2023.12.{1 + paper % 28:02d}.{600_000 + paper}", 2 if index % 3 == 2 else 1


def _find_server(index: int) -> str:
    return "medrxiv" if (index // 3 * 2 + min(1, index % 3)) % 4 == 3 else "biorxiv"


def _place(seed: int, index: int, span: Window) -> int:
    """Put a first version anywhere in the span and a second one some days after the first."""
    first = index - 1 if name_version(index)[1] == 2 else index
    at = span[0] + int.from_bytes(draw(seed, "biorxiv", first)[:8], "big") % (span[1] - span[0])
    return min(at + (index - first) * 9 * DAY, span[1] - 1)


def _make_row(drawn: bytes, row: Row) -> dict[str, Any]:
    doi, version = name_version(row.index)
    return {
        "doi": doi,
        "version": str(version),
        "date": format_instant(row.updated)[:10],
        "title": write_title(drawn, 1),
        "authors": "; ".join(f"{family}, {given[0]}." for given, family in list_people(drawn)),
        "category": pick(TOPICS, drawn[40]),
        "server": SERVERS[_find_server(row.index)],
        "published": "NA" if row.version == 1 else f"10.5555/j.{row.index}.{row.version}",
        "abstract": write_text(drawn, 2),
    }
