"""Bench pages: whole HTTP answers, built once, for a server that must not be the bottleneck.

Phase p1 is a first load. Phase p2 has the same keys in the same order; every tenth record, spread
evenly, has a newer `updated_at` and a new title. Records are about 1,067 bytes.
"""

from dataclasses import dataclass
from threading import Lock

from simulator.dataset import encode_json
from simulator.instants import format_instant, parse_bound
from simulator.words import draw, list_people, write_text, write_title

PHASES = ("p1", "p2")
RECORD_BYTES = 1067
_START = parse_bound("2024-01-01")
_LATER = 40 * 86_400
_KINDS = 64  # distinct texts; more would only cost time to build
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Phase:
    """The answers of one phase, in page order."""

    answers: list[bytes]
    records: int
    newer: int
    body_bytes: int


class BenchPages:
    def __init__(self, *, pages: int, records: int, seed: int = 7) -> None:
        self.pages = pages
        self.records = records
        self._seed = seed
        self._lock = Lock()
        self._phases: dict[str, Phase] = {}

    def get_phase(self, name: str) -> Phase:
        """Return a phase, building it on first use; raises ValueError if there is none of that name."""
        if name not in PHASES:
            raise ValueError(f"unknown phase {name!r}; known: {', '.join(PHASES)}")
        with self._lock:
            if name not in self._phases:
                self._phases[name] = self._build(newer=name == "p2")
            return self._phases[name]

    def _build(self, *, newer: bool) -> Phase:
        tails = [_make_tail(self._seed, kind) for kind in range(_KINDS)]
        titles = [[write_title(draw(self._seed, "bench", kind), v) for kind in range(_KINDS)] for v in (1, 2)]
        answers, size, changed = [], 0, 0
        for page in range(self.pages):
            rows = []
            for index in range(page * self.records, (page + 1) * self.records):
                kind = index % _KINDS
                is_newer = newer and index % 10 == 7
                at = format_instant(_START + index * 7 + (_LATER if is_newer else 0))
                rows.append(
                    f'{{"id":"bench-{index:09d}","updated_at":"{at}","number":{index},'
                    f'"title":"{titles[is_newer][kind]}",{tails[kind]}'
                )
                changed += is_newer
            following = str(page + 2) if page + 1 < self.pages else "null"
            body = f'{{"items":[{",".join(rows)}],"next":{following}}}'.encode()
            answers.append(_HEAD % len(body) + body)
            size += len(body)
        return Phase(answers, self.pages * self.records, changed, size)


def _make_tail(seed: int, kind: int) -> str:
    """Return the end of a record, its closing brace included, padded so that records come out even."""
    drawn = draw(seed, "bench", kind)
    rest = {
        "type": ("journal-article", "preprint", "dataset")[kind % 3],
        "issued": f"{2015 + kind % 10}-{1 + kind % 12:02d}-{1 + kind % 28:02d}",
        "cited_by": drawn[40],
        "score": round(drawn[41] / 16, 3),
        "open_access": drawn[42] % 2 == 0,
        "authors": [{"given": given, "family": family} for given, family in list_people(drawn)],
        "journal": {"name": "Journal of Imagined Results", "issn": "1234-5678", "volume": str(drawn[43])},
        "abstract": write_text(drawn, 5),
        "note": "",
    }
    head = {"id": "bench-000000000", "updated_at": "2024-01-01T00:00:00Z", "number": 100_000}
    bare = head | {"title": write_title(drawn, 1)} | rest
    missing = RECORD_BYTES - 1 - len(encode_json(bare).encode())  # 1 for the comma between records
    rest["note"] = ("lorem ipsum dolor sit amet " * 40)[: max(0, missing)]
    return encode_json(rest)[1:]
