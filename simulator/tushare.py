"""TuShare: a stand-in for the one address that serves every table, with the token and the question in the body.

All is HTTP 200: rows (columnar: `fields` once, then `items`), a throttle (code 40203 and a sentence), a table one may
not read (code 40203 too, another sentence) and a wrong token (40101). Days are text, China's, both ends included;
rows come newest day first and at most `CAP` in a call, `has_more` tells of the rest. A day's row can change later and
keeps its day. The bars of one day are those of `STOCKS` stocks; weekends have none.
"""

import json
from collections.abc import Callable
from typing import Any

from simulator.answers import Allowance, Answer, Headers, NoSuchPath, Request, Twist, answer_json
from simulator.dataset import Dataset, Row, Shape, Window
from simulator.instants import BEGINNING, DAY, END, find_date, parse_unit
from simulator.words import PLACES, draw, pick

STOCKS = 20
CAP = 6_000
TABLES: dict[str, tuple[str, ...]] = {
    "stock_basic": ("ts_code", "symbol", "name", "area", "industry", "market", "list_status", "list_date"),
    "daily": (
        "ts_code", "trade_date", "open", "high", "low", "close", "pre_close", "change", "pct_chg", "vol", "amount",
    ),
    "adj_factor": ("ts_code", "trade_date", "adj_factor"),
    "daily_basic": ("ts_code", "trade_date", "close", "turnover_rate", "pe", "pb", "total_share", "total_mv"),
}  # fmt: skip
_MARKETS = ("主板", "创业板", "科创板")
_INDUSTRIES = ("银行", "全国地产", "软件服务", "生物制药", "白酒")
_MINUTE_LIMIT = 200  # of an account with 2,000 points
_DETAILS = "https://tushare.pro/document/1?doc_id=108"


class TuShare:
    def __init__(self, seed: int, table: str) -> None:
        """Serve one table of the service."""
        self._seed = seed
        self._table = table
        self._fields = TABLES[table]
        dated = "trade_date" in self._fields
        self.shape = Shape(
            name=f"tushare_{table}",
            id_path=("ts_code",),
            updated_path=("trade_date",) if dated else ("list_date",),
            make_id=lambda drawn, index: name_stock(seed, index),
            make_record=self._make_row,
            grain=DAY,
            moves=False,
            place=_place_bar if dated else _place_listing,
            name_at=self._name_bar if dated else None,
        )

    def answer(self, dataset: Dataset, request: Request, twist: Twist) -> Answer:
        if request.path.rstrip("/") != "/tushare" or request.method != "POST":
            raise NoSuchPath
        asked = _read_body(request)
        if not isinstance(asked.get("token"), str) or not asked["token"]:
            return _say(40101, "您的token不对，请确认。")
        if asked.get("api_name") not in TABLES:
            return _say(40203, f"抱歉，您没有接口({asked.get('api_name')})访问权限")
        params = asked.get("params") or {}
        try:
            window = _read_days(params)
            limit = min(int(params.get("limit") or CAP), CAP)
            offset = int(params.get("offset") or 0)
        except ValueError as error:
            return _say(-2001, f"参数校验失败: {error}")
        offset = max(0, offset - limit) if twist.again else offset
        page = dataset.page_by_time(window, 0, len(dataset), keep=self._keep_codes(params))
        newest_first = sorted(page.bodies, key=_day_of, reverse=True)
        bodies = twist.apply(newest_first[offset : offset + limit], self.shape)
        wanted = [name for name in str(asked.get("fields") or "").split(",") if name in self._fields] or self._fields
        rows = [json.loads(body) for body in bodies]
        data = {
            "fields": list(wanted),
            "items": [[row.get(name) for name in wanted] for row in rows],
            "has_more": offset + limit < page.total,
        }
        return answer_json({"request_id": f"{self._table}-{offset}", "code": 0, "msg": None, "data": data})

    def is_first_page(self, request: Request) -> bool:
        return not (_read_body(request).get("params") or {}).get("offset")

    def refuse(self, status: int, reason: str, value: str = "") -> Answer:
        match status:
            case 429:
                limit = value or _MINUTE_LIMIT
                return _say(40203, f"抱歉，您每分钟最多访问该接口{limit}次，权限的具体详情访问：{_DETAILS}。")
            case 401:
                return _say(40101, "您的token不对，请确认。")
            case 400:
                return _say(-2001, f"参数校验失败: {reason}")
            case _:
                return Answer(status, f"<html><body><h1>{status}</h1></body></html>".encode(), "text/html")

    def describe_allowance(self, allowance: Allowance) -> Headers:
        return ()

    def _keep_codes(self, params: dict[str, Any]) -> Callable[[int], bool] | None:
        codes = {code for code in str(params.get("ts_code") or "").split(",") if code}
        return (lambda index: name_stock(self._seed, index) in codes) if codes else None

    def _name_bar(self, index: int, at: int) -> str:
        return f"{name_stock(self._seed, index)}/{_write_day(at)}"

    def _make_row(self, drawn: bytes, row: Row) -> dict[str, Any]:
        code = name_stock(self._seed, row.index)
        if self._table == "stock_basic":
            return {
                "ts_code": code,
                "symbol": code[:6],
                "name": f"{pick(_INDUSTRIES, drawn[30])}{row.index}" + ("" if row.version == 1 else f"({row.version})"),
                "area": pick(PLACES, drawn[31]),
                "industry": pick(_INDUSTRIES, drawn[30]),
                "market": pick(_MARKETS, drawn[32]),
                "list_status": "L",
                "list_date": _write_day(row.updated),
            }
        key = {"ts_code": code, "trade_date": _write_day(row.updated)}
        price = 5 + drawn[33] / 4 + row.version / 100  # a later version: the adjustment changed backwards
        if self._table == "adj_factor":
            return key | {"adj_factor": round(1 + drawn[34] / 64 + row.version / 1000, 3)}
        if self._table == "daily_basic":
            pe = None if drawn[35] % 9 == 0 else round(drawn[35] / 3, 4)  # none while a company makes losses
            return key | {
                "close": price, "turnover_rate": round(drawn[36] / 50, 4), "pe": pe, "pb": round(drawn[37] / 40, 4),
                "total_share": drawn[38] * 1000.0, "total_mv": round(drawn[38] * 1000.0 * price, 4),
            }  # fmt: skip
        before = round(price - (drawn[39] - 128) / 500, 2)
        return key | {
            "open": before, "high": round(max(price, before) + 0.2, 2), "low": round(min(price, before) - 0.2, 2),
            "close": price, "pre_close": before, "change": round(price - before, 2),
            "pct_chg": round((price / before - 1) * 100, 4), "vol": drawn[40] * 1234.5, "amount": drawn[41] * 9876.5,
        }  # fmt: skip


def name_stock(seed: int, index: int) -> str:
    """Return the code of the stock that row `index` is about."""
    stock = index % STOCKS
    drawn = draw(seed, "tushare/stock", stock)
    return f"{drawn[0] % 4:03d}{drawn[1] % 10}{stock:02d}.SZ" if stock % 2 else f"60{drawn[1] % 100:02d}{stock:02d}.SH"


def _read_body(request: Request) -> dict[str, Any]:
    try:
        value = json.loads(request.body or b"{}")
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _read_days(params: dict[str, Any]) -> Window:
    if day := params.get("trade_date"):
        return _parse_day(str(day)), _parse_day(str(day)) + DAY
    first, last = params.get("start_date"), params.get("end_date")
    return _parse_day(str(first)) if first else BEGINNING, _parse_day(str(last)) + DAY if last else END


def _parse_day(text: str) -> int:
    if len(text) != 8 or not (text.isascii() and text.isdigit()):
        raise ValueError(f"{text} is not YYYYMMDD")
    return parse_unit(f"{text[:4]}-{text[4:6]}-{text[6:]}")[0]


def _write_day(at: int) -> str:
    year, month, day = find_date(at // DAY)
    return f"{year:04d}{month:02d}{day:02d}"


def _day_of(body: bytes) -> str:
    row = json.loads(body)
    return str(row.get("trade_date", ""))


def _place_bar(seed: int, index: int, span: Window) -> int:
    """Give each trading day one bar of every stock, from the span's first weekday on (and past its end if need be)."""
    first, left = -(-span[0] // DAY), index // STOCKS
    first += {5: 2, 6: 1}.get(_weekday(first), 0)
    weeks, rest = divmod(_weekday(first) + left, 5)
    return (first - _weekday(first) + weeks * 7 + rest) * DAY


def _place_listing(seed: int, index: int, span: Window) -> int:
    return span[0] - (1 + draw(seed, "tushare/listed", index)[0]) * DAY


def _weekday(day: int) -> int:
    """Monday is 0; the epoch began on a Thursday."""
    return (day + 3) % 7


def _say(code: int, message: str) -> Answer:
    return answer_json({"request_id": "0", "code": code, "msg": message, "data": None})
