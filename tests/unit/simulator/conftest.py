"""A small simulator and a client on a real socket, both closed after each test."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from email.message import Message
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlencode

import pytest

from simulator.server import Simulator

SIZES = {"crossref": 260, "pubmed": 120, "github": 95, "plain": 130} | dict.fromkeys(
    ("europepmc", "oai", "biorxiv", "stripe", "shopify", "tushare_daily", "binance_klines", "binance_funding"), 130
)
SIZES |= {"tushare_stock_basic": 20, "tushare_adj_factor": 130, "tushare_daily_basic": 130}


@dataclass(frozen=True)
class Reply:
    status: int
    headers: Message
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Client:
    def __init__(self, port: int) -> None:
        self.connection = HTTPConnection("127.0.0.1", port, timeout=10)

    def get(self, path: str, headers: dict[str, str] | None = None, **params: object) -> Reply:
        target = f"{path}?{urlencode(params)}" if params else path
        return self.send("GET", target, headers=headers or {})

    def post(self, path: str, value: object) -> Reply:
        return self.send("POST", path, json.dumps(value).encode())

    def send(self, method: str, target: str, body: bytes | None = None, headers: dict[str, str] | None = None) -> Reply:
        try:
            self.connection.request(method, target, body, headers or {})
            response = self.connection.getresponse()
            return Reply(response.status, response.headers, response.read())
        except Exception:
            self.connection.close()
            raise


@pytest.fixture
def sim() -> Iterator[Simulator]:
    with Simulator(sizes=SIZES) as simulator:
        yield simulator


@pytest.fixture
def client(sim: Simulator) -> Iterator[Client]:
    made = Client(sim.port)
    yield made
    made.connection.close()
