"""Servers not written for this project: installed by `make servers` into `.servers/`, run as their own processes."""

import json
import os
import socket
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.flow.processes import wait_until

_SERVERS = Path(__file__).parents[2] / ".servers"
_HOW = "is not installed; `make servers` installs it, and CI runs it"


@pytest.fixture
def drf() -> Iterator[str]:
    """The address of a Django REST framework server with 310 items."""
    python = _SERVERS / "drf" / "bin" / "python"
    if not python.exists():
        pytest.skip(f"Django REST framework {_HOW}")
    command = [str(python), str(Path(__file__).parent / "drf_app.py"), "0", "310"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


@pytest.fixture
def json_server(tmp_path: Path) -> Iterator[str]:
    """The address of npm's json-server with 500 posts."""
    program = _SERVERS / "node_modules" / ".bin" / "json-server"
    if not program.exists():
        pytest.skip(f"npm's json-server {_HOW}")
    (tmp_path / "db.json").write_text(json.dumps({"posts": list(make_posts(500))}))
    port = _free_port()
    command = [str(program), "--quiet", "--host", "127.0.0.1", "--port", str(port), "db.json"]
    with subprocess.Popen(command, cwd=tmp_path, env={**os.environ, "NO_UPDATE_NOTIFIER": "1"}) as process:
        try:
            wait_until(lambda: _answers(f"http://127.0.0.1:{port}/posts/1"), "json-server answers")
            yield f"http://127.0.0.1:{port}"
        finally:
            process.kill()


def make_posts(count: int) -> Iterator[dict[str, Any]]:
    """Yield posts that were changed minutes apart, in an order that is not that of their ids."""
    for number in range(1, count + 1):
        minutes = 37 * (number * 263 % count)
        moment = f"2024-01-{minutes // 1440 + 1:02d}T{minutes // 60 % 24:02d}:{minutes % 60:02d}:00.000Z"
        yield {"id": number, "title": f"post {number}", "author": {"name": f"a{number % 7}"}, "updatedAt": moment}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url) as answer:  # noqa: S310 -- loopback
            return bool(answer.status == 200)
    except OSError:
        return False
