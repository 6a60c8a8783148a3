"""TuShare and Binance: one address for many tables, throttles inside HTTP 200, pages that are only windows of time."""

import json
from datetime import date
from itertools import pairwise
from typing import Any

import pytest

from simulator.binance import SYMBOLS
from simulator.server import Simulator
from simulator.tushare import STOCKS

KLINES, FUNDING = "/binance/api/v3/klines", "/binance/fapi/v1/fundingRate"
HOUR_MS = 3_600_000


def ask(client: Any, table: str, fields: str = "", token: str = "t", **params: object) -> dict[str, Any]:
    body = {"api_name": table, "token": token, "params": params, "fields": fields}
    reply = client.send("POST", "/tushare", json.dumps(body).encode(), {"Content-Type": "application/json"})
    assert (reply.status, reply.headers["Retry-After"]) == (200, None)
    answer: dict[str, Any] = reply.json
    return answer


def read_rows(answer: dict[str, Any]) -> list[dict[str, Any]]:
    assert answer["code"] == 0, answer["msg"]
    return [dict(zip(answer["data"]["fields"], item, strict=True)) for item in answer["data"]["items"]]


def walk(client: Any, table: str, **params: object) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    more = True
    while more:
        answer = ask(client, table, **params, offset=len(found), limit=30)
        found += read_rows(answer)
        more = answer["data"]["has_more"]
    return found


@pytest.mark.parametrize("table", ["daily", "adj_factor", "daily_basic"])
def test_a_table_of_days_walked_to_its_end_is_the_truth(sim: Simulator, client: Any, table: str) -> None:
    found = walk(client, table)
    keys = [f"{row['ts_code']}/{row['trade_date']}" for row in found]
    assert len(keys) == len(set(keys)) == 130
    assert set(keys) == sim.truth(f"tushare_{table}", full=True)["records"].keys()
    days = [row["trade_date"] for row in found]
    assert days == sorted(days, reverse=True)
    assert all(date.fromisoformat(day).weekday() < 5 for day in days)


def test_one_trade_date_is_one_row_of_every_stock(sim: Simulator, client: Any) -> None:
    rows = read_rows(ask(client, "daily", trade_date="20240102"))
    assert len({row["ts_code"] for row in rows}) == len(rows) == STOCKS
    assert {row["ts_code"] for row in rows} == {row["ts_code"] for row in read_rows(ask(client, "stock_basic"))}
    assert read_rows(ask(client, "daily", trade_date="20240106")) == []  # a Saturday
    assert read_rows(ask(client, "daily", start_date="20240102", end_date="20240102")) == rows
    one = ask(client, "daily", "trade_date,close", ts_code=rows[0]["ts_code"], trade_date="20240102")
    assert one["data"]["fields"] == ["trade_date", "close"]
    assert one["data"]["items"] == [["20240102", rows[0]["close"]]]


def test_a_throttle_and_a_missing_right_have_one_code_and_two_sentences(sim: Simulator, client: Any) -> None:
    sim.limit("tushare_daily", (1, 60.0))
    assert ask(client, "daily")["code"] == 0
    throttled = ask(client, "daily")
    assert (throttled["code"], throttled["data"]) == (40203, None)
    assert "每分钟最多访问该接口1次" in throttled["msg"]
    assert ask(client, "adj_factor")["code"] == 0  # each table has a limit of its own
    sim.limit("tushare_daily")
    forbidden = ask(client, "sw_daily")
    assert (forbidden["code"], forbidden["msg"]) == (40203, "抱歉，您没有接口(sw_daily)访问权限")
    sim.add_fault("tushare_daily", "throttle")
    assert "每分钟最多访问该接口200次" in ask(client, "daily")["msg"]


def test_tushare_refuses_in_its_own_words_with_http_200(sim: Simulator, client: Any) -> None:
    assert ask(client, "daily", token="")["code"] == 40101
    assert ask(client, "daily", trade_date="2024-01-02")["code"] == -2001
    sim.add_fault("tushare_daily", "503")
    body = json.dumps({"api_name": "daily", "token": "t"}).encode()
    assert client.send("POST", "/tushare", body, {"Content-Type": "application/json"}).status == 503
    assert client.get("/tushare", api_name="daily").status == 404
    assert "secret-token" not in str(sim.requests("tushare_daily")["last"])


def test_a_restated_day_keeps_its_key(sim: Simulator, client: Any) -> None:
    before = read_rows(ask(client, "adj_factor", trade_date="20240103"))
    sim.mutate("tushare_adj_factor", ids=[f"{before[0]['ts_code']}/20240103"])
    after = read_rows(ask(client, "adj_factor", trade_date="20240103"))
    assert [row["ts_code"] for row in after] == [row["ts_code"] for row in before]
    assert [n for n, row in enumerate(after) if row != before[n]] == [0]


def walk_feed(client: Any, path: str, step: int, **params: object) -> list[Any]:
    found: list[Any] = []
    start = 0
    while page := client.get(path, **params, startTime=start, limit=10).json:
        found += page
        last = page[-1]
        start = (last[0] if isinstance(last, list) else last["fundingTime"]) + step
    return found


def test_klines_walked_forward_are_the_truth_with_its_halts(sim: Simulator, client: Any) -> None:
    keys = {
        f"{symbol}/1h/{bar[0]}"
        for symbol in SYMBOLS
        for bar in walk_feed(client, KLINES, 1, symbol=symbol, interval="1h")
    }
    assert keys == sim.truth("binance_klines", full=True)["records"].keys()
    with Simulator(sizes={"binance_klines": 360}) as longer:
        times = sorted({int(key.rpartition("/")[2]) for key in longer.truth("binance_klines", full=True)["records"]})
    assert {later - at for at, later in pairwise(times)} == {HOUR_MS, 4 * HOUR_MS}


def test_both_ends_of_a_window_of_bars_are_included(sim: Simulator, client: Any) -> None:
    bars = walk_feed(client, KLINES, 1, symbol="BTCUSDT", interval="1h")
    first, last = bars[3][0], bars[9][0]
    asked = {"symbol": "BTCUSDT", "interval": "1h"}
    assert client.get(KLINES, **asked, startTime=first, endTime=last).json == bars[3:10]
    assert client.get(KLINES, **asked, startTime=first + 1, endTime=last - 1).json == bars[4:9]
    assert client.get(KLINES, **asked, endTime=last, limit=2).json == bars[8:10]  # the newest before the end
    assert all(len(bar) == 12 and bar[6] == bar[0] + HOUR_MS - 1 for bar in bars)


def test_funding_without_a_start_begins_at_the_oldest(sim: Simulator, client: Any) -> None:
    rates = walk_feed(client, FUNDING, 1, symbol="ETHUSDT")
    assert client.get(FUNDING, symbol="ETHUSDT", endTime=rates[-1]["fundingTime"], limit=2).json == rates[:2]
    keys = {f"{symbol}/{r['fundingTime']}" for symbol in SYMBOLS for r in walk_feed(client, FUNDING, 1, symbol=symbol)}
    assert keys == sim.truth("binance_funding", full=True)["records"].keys()


def test_who_goes_on_after_429_is_banned(sim: Simulator, client: Any) -> None:
    sim.limit("binance_klines", (2, 60.0))
    used = [client.get(KLINES, symbol="BTCUSDT", interval="1h").headers["X-MBX-USED-WEIGHT-1M"] for _ in range(2)]
    assert used == ["2", "4"]
    replies = [client.get(KLINES, symbol="BTCUSDT", interval="1h") for _ in range(4)]
    assert [reply.status for reply in replies] == [429, 429, 429, 418]
    assert all(reply.json["code"] == -1003 and int(reply.headers["Retry-After"]) > 0 for reply in replies)
    assert replies[-1].headers.get_all("Retry-After") == ["120"]
    sim.limit("binance_klines")
    assert client.get(KLINES, symbol="BTCUSDT", interval="1h").status == 200


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"interval": "1h"}, -1102),
        ({"symbol": "NOPE", "interval": "1h"}, -1121),
        ({"symbol": "BTCUSDT", "interval": "7h"}, -1120),
        ({"symbol": "BTCUSDT", "interval": "1h", "startTime": "yesterday"}, -1100),
    ],
)
def test_binance_names_what_is_wrong_by_a_code(sim: Simulator, client: Any, params: dict[str, str], code: int) -> None:
    reply = client.get(KLINES, **params)
    assert (reply.status, reply.json["code"]) == (400, code)


def test_a_bar_can_change_and_a_spoilt_one_has_no_open_time(sim: Simulator, client: Any) -> None:
    asked = {"symbol": "BTCUSDT", "interval": "1h", "startTime": 0, "limit": 2}
    before = client.get(KLINES, **asked).json
    sim.mutate("binance_klines", ids=[f"BTCUSDT/1h/{before[1][0]}"])
    after = client.get(KLINES, **asked).json
    assert after[0] == before[0]
    assert (after[1][0], after[1][4] != before[1][4]) == (before[1][0], True)
    sim.add_fault("binance_klines", "bad_record", record=2)
    assert [bar[0] for bar in client.get(KLINES, **asked).json] == [before[0][0], None]
