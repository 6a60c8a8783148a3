"""The commands: one line when they serve, one line when they cannot, and a prompt end."""

import re
import signal
import subprocess
import sys
from http.client import HTTPConnection

import pytest

from simulator.__main__ import main
from simulator.server import Simulator

SMALL = [
    "--crossref",
    "5",
    "--pubmed",
    "6",
    "--github",
    "7",
    "--plain",
    "8",
    "--europepmc",
    "3",
    "--oai",
    "4",
    "--biorxiv",
    "5",
    "--stripe",
    "6",
    "--shopify",
    "7",
    *("--tushare_stock_basic", "1", "--tushare_daily", "2", "--tushare_adj_factor", "3", "--tushare_daily_basic", "4"),
    *("--binance_klines", "5", "--binance_funding", "6"),
]


def start(*arguments: str) -> "tuple[subprocess.Popen[str], str, int]":
    process = subprocess.Popen(
        [sys.executable, "-m", "simulator", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.search(r"http://127\.0\.0\.1:(\d+)", line)
    assert found, line
    return process, line, int(found[1])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_simulator_serves_until_it_is_told_to_stop(number: signal.Signals) -> None:
    process, line, port = start("--port", "0", *SMALL)
    with process:
        connection = HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/plain/items")
        assert connection.getresponse().read().endswith(b'"total":8,"has_more":false}')
        process.send_signal(number)  # the idle connection above must not hold it up
        output, errors = process.communicate(timeout=5)
        connection.close()
    assert (process.returncode, output, errors) == (0, "", "")
    assert "crossref 5, pubmed 6, github 7, plain 8, europepmc 3, oai 4, biorxiv 5, stripe 6, shopify 7, " in line
    assert "tushare_daily 2, tushare_adj_factor 3, " in line
    assert "binance_klines 5, binance_funding 6 records (seed 7)" in line


def test_bench_serves_until_it_is_told_to_stop() -> None:
    process, line, port = start("bench", "--port", "0", "--pages", "2", "--records", "10")
    with process:
        connection = HTTPConnection("127.0.0.1", port)
        connection.request("GET", "/bench/p1/items?page=1")
        assert connection.getresponse().read().endswith(b'"next":2}')
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=5) == 0
        connection.close()
    assert "2 pages of 10 records" in line


@pytest.mark.parametrize("command", [[], ["bench"]])
def test_a_taken_port_is_one_clear_line(sim: Simulator, capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    handlers = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    try:
        assert main([*command, "--port", str(sim.port)]) == 1
    finally:
        for number, handler in zip((signal.SIGTERM, signal.SIGINT), handlers, strict=True):
            signal.signal(number, handler)
    output, errors = capsys.readouterr()
    assert output == ""
    assert errors == (
        f"simulator: port {sim.port} on 127.0.0.1 is taken; stop what listens there or choose another with --port\n"
    )


@pytest.mark.parametrize("wrong", [["--end", "2023-01-01"], ["--start", "soon"], ["bench", "--build", "p9"]])
def test_wrong_options_are_one_clear_line(wrong: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "simulator", *wrong, "--port", "0"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("simulator: ")
    assert done.stderr.count("\n") == 1
