"""Binance: a stand-in for `/api/v3/klines` (bars as arrays, by position) and `/fapi/v1/fundingRate`.

There is no token: the next page begins after the last record's time. `startTime` and `endTime` are milliseconds and
both included; rows ascend; without a start, bars are the newest up to the end and funding rates the oldest. A halt has
no bars. A bar whose hour is not over is unfinished and changes. Who goes on asking after 429 gets 418.
"""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import Any

from simulator.answers import Allowance, Answer, BadRequest, Headers, NoSuchPath, Request, Twist, answer_json
from simulator.dataset import Dataset, Row, Shape, Window, encode_json
from simulator.instants import BEGINNING, END

SYMBOLS = ("BTCUSDT", "ETHUSDT", "ADAUSDT")
_HOUR = 3600
_STRIKES = 3  # refusals in a row before the ban
_BAN_SECONDS = 120


@dataclass(frozen=True, slots=True)
class Feed:
    """One list: where it is, how far apart its records are, and what a request costs and may ask for."""

    name: str
    path: str
    step: int
    weight: int
    size: int
    most: int
    halts: bool
    newest_without_start: bool
    any_symbol: bool  # whether the symbol may be left out


KLINES = Feed("binance_klines", "/binance/api/v3/klines", _HOUR, 2, 500, 1000, True, True, False)
FUNDING = Feed("binance_funding", "/binance/fapi/v1/fundingRate", 8 * _HOUR, 1, 100, 1000, False, False, True)


class Binance:
    def __init__(self, feed: Feed) -> None:
        self._feed = feed
        self.shape = Shape(
            name=feed.name,
            id_path=("symbol",),
            updated_path=("fundingTime",),
            make_id=lambda drawn, index: SYMBOLS[index % len(SYMBOLS)],
            make_record=_make_bar if feed is KLINES else _make_funding,
            write=_write_record,
            spoil=_spoil_bar if feed is KLINES else None,
            grain=feed.step,
            place=self._place,
            moves=False,
            name_at=self._name,
        )
        self._lock = Lock()
        self._strikes = 0
        self._minute = 0
        self._used = 0

    def answer(self, dataset: Dataset, request: Request, twist: Twist) -> Answer:
        if request.path != self._feed.path:
            raise NoSuchPath
        keep = self._keep_symbol(request)
        if self._feed is KLINES and request.params.get("interval") != "1h":
            raise BadRequest("Invalid interval.", "-1120")
        size = min(_read_number(request, "limit", self._feed.size), self._feed.most)  # larger is clamped, silently
        window = _read_window(request)
        start = 0
        if "startTime" not in request.params and self._feed.newest_without_start:
            start = max(0, dataset.page_by_time(window, 0, 0, keep=keep).total - size)
        page = dataset.page_by_time(window, start, size, keep=keep)
        bodies = twist.apply(page.bodies, self.shape)
        used: Headers = (("X-MBX-USED-WEIGHT-1M", str(self._weigh())),)
        return Answer(200, b"[" + b",".join(bodies) + b"]", headers=used)

    def is_first_page(self, request: Request) -> bool:
        return True  # every page is a window of its own: nothing says that another came before

    def refuse(self, status: int, reason: str, value: str = "") -> Answer:
        match status:
            case 400:
                code = int(value) if value.removeprefix("-").isdigit() else -1100
                return answer_json({"code": code, "msg": reason}, 400)
            case 429 | 418:
                with self._lock:
                    self._strikes += 1
                    banned = status == 418 or self._strikes > _STRIKES
                if not banned:
                    text = "Too much request weight used; please use WebSocket Streams for live updates."
                    return answer_json({"code": -1003, "msg": text}, 429)
                until = int(time.time() + _BAN_SECONDS) * 1000
                text = f"Way too much request weight used; IP banned until {until}."
                return answer_json({"code": -1003, "msg": text}, 418, (("Retry-After", str(_BAN_SECONDS)),))
            case _:
                return Answer(status, f"<html><body><h1>{status}</h1></body></html>".encode(), "text/html")

    def describe_allowance(self, allowance: Allowance) -> Headers:
        return (("X-MBX-USED-WEIGHT-1M", str((allowance.limit - allowance.remaining) * self._feed.weight)),)

    def _weigh(self) -> int:
        """Count a served request; a clock minute later the count begins again."""
        minute = int(time.time() // 60)
        with self._lock:
            self._strikes = 0
            self._used = self._feed.weight + (self._used if minute == self._minute else 0)
            self._minute = minute
            return self._used

    def _keep_symbol(self, request: Request) -> Callable[[int], bool] | None:
        symbol = request.params.get("symbol")
        if symbol is None and self._feed.any_symbol:
            return None
        if symbol is None:
            raise BadRequest("Mandatory parameter 'symbol' was not sent, was empty/null, or malformed.", "-1102")
        if symbol not in SYMBOLS:
            raise BadRequest("Invalid symbol.", "-1121")
        wanted = SYMBOLS.index(symbol)
        return lambda index: index % len(SYMBOLS) == wanted

    def _place(self, seed: int, index: int, span: Window) -> int:
        """One record of every symbol each step, from the span's first step on; a halt of three after every hundred."""
        number = index // len(SYMBOLS)
        halted = number // 100 * 3 if self._feed.halts else 0
        return (-(-span[0] // self._feed.step) + number + halted) * self._feed.step

    def _name(self, index: int, at: int) -> str:
        symbol = SYMBOLS[index % len(SYMBOLS)]
        return f"{symbol}/1h/{at * 1000}" if self._feed is KLINES else f"{symbol}/{at * 1000}"


def _read_window(request: Request) -> Window:
    low, high = BEGINNING, END
    if "startTime" in request.params:
        low = -(-_read_number(request, "startTime", 0) // 1000)
    if "endTime" in request.params:
        high = _read_number(request, "endTime", 0) // 1000 + 1
    return low, high


def _read_number(request: Request, name: str, default: int) -> int:
    try:
        return request.read_int(name, default, low=0)
    except BadRequest:
        raise BadRequest(f"Illegal characters found in parameter '{name}'.", "-1100") from None


def _make_bar(drawn: bytes, row: Row) -> dict[str, Any]:
    base = (61_000.0, 3_000.0, 0.5)[row.index % len(SYMBOLS)] * (1 + drawn[30] / 4096)
    close = base * (1 + (drawn[31] - 128) / 8192) + row.version / 100
    high, low = max(base, close) * 1.001, min(base, close) * 0.999
    volume = drawn[32] + row.version
    bar = [
        row.updated * 1000, *(f"{price:.8f}" for price in (base, high, low, close)), f"{volume:.8f}",
        (row.updated + _HOUR) * 1000 - 1, f"{volume * close:.8f}", drawn[33] * 10,
        f"{volume / 2:.8f}", f"{volume / 2 * close:.8f}", "0",
    ]  # fmt: skip
    return {"bar": bar}


def _make_funding(drawn: bytes, row: Row) -> dict[str, Any]:
    return {
        "symbol": SYMBOLS[row.index % len(SYMBOLS)],
        "fundingTime": row.updated * 1000,
        "fundingRate": f"{(drawn[30] - 128) / 1_000_000:.8f}",
        "markPrice": f"{1000 + drawn[31] + row.version / 100:.8f}",
    }


def _write_record(record: dict[str, Any]) -> str:
    return encode_json(record.get("bar", record))


def _spoil_bar(body: bytes, which: str) -> bytes:
    bar = json.loads(body)
    bar[0] = None if which == "id" else "the day before yesterday"
    return encode_json(bar).encode()
