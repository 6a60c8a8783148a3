"""The documents are true: their commands run and their files validate, in the order a newcomer meets them."""

import os
import re
import shlex
import subprocess
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from ingest.db import Database
from simulator.server import Simulator
from tests.flow.processes import BIN, Crew, all_tasks_ended, crew, scalar, wait_until

_ROOT = Path(__file__).parents[2]
_GUIDE = (_ROOT / "docs" / "adding-a-source.md").read_text(encoding="utf-8")
_README = (_ROOT / "README.md").read_text(encoding="utf-8")
_RUNNING = ("ingest sim", "ingest-planner run", "ingest-executor run")


def _blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


def _commands(text: str) -> list[str]:
    lines = [line for block in _blocks(text, "console") for line in block.splitlines() if line.startswith("$ ")]
    return [line.removeprefix("$ ").split("   #")[0].strip() for line in lines]


@pytest.fixture
def simulator() -> Iterator[Simulator]:
    with Simulator(sizes={"plain": 900}) as it:
        yield it


@pytest.fixture
def team(database: Database, tmp_path: Path) -> Iterator[Crew]:
    with crew(database.url, tmp_path) as it:
        yield it


def test_following_the_guide_line_by_line_harvests_the_source(
    database: Database, simulator: Simulator, team: Crew, tmp_path: Path
) -> None:
    project = tmp_path / "my-project"
    # the guide's simulator is the fixture's: the port is the only thing that differs
    port = str(simulator.port)
    environment = {**os.environ, "INGEST_DATABASE_URL": database.url, "PATH": f"{BIN}:{os.environ['PATH']}"}
    done = []
    for command in _commands(_GUIDE):
        command = command.replace("8099", port)
        if command.startswith(_RUNNING):
            _start(team, command, port)
        elif command.startswith("curl"):
            with urllib.request.urlopen(shlex.split(command)[1]) as answer:  # noqa: S310 -- loopback
                assert b'"data"' in answer.read()
        elif command == "cd my-project":
            _write_files(project, port)
        else:
            if command == "ingest status":
                wait_until(
                    lambda: scalar(database, "SELECT count(*) FROM ing_task") and all_tasks_ended(database), "rows"
                )
            folder = project if project.exists() else tmp_path
            ran = subprocess.run(
                shlex.split(command), cwd=folder, env=environment, capture_output=True, text=True, check=False
            )
            assert ran.returncode == 0, f"{command}\n{ran.stdout}{ran.stderr}"
            done.append(ran.stdout + ran.stderr)
    assert scalar(database, "SELECT count(*) FROM data.shop_items") == 900
    assert scalar(database, "SELECT count(*) FROM data.shop_items WHERE price IS NOT NULL AND city IS NOT NULL") > 0
    assert any("shop.items" in text for text in done)


def _start(team: Crew, command: str, port: str) -> None:
    if command.startswith("ingest-planner"):
        team.planner(INGEST_OPEN_ORIGINS=f'["http://127.0.0.1:{port}"]')
    elif command.startswith("ingest-executor"):
        team.executor(workers=4, INGEST_OPEN_ORIGINS=f'["http://127.0.0.1:{port}"]')


def _write_files(project: Path, port: str) -> None:
    (settings,) = _blocks(_GUIDE, "toml")
    assert (
        tomllib.loads(settings)["open_origins"] == tomllib.loads((project / "ingest.toml").read_text())["open_origins"]
    )
    toml = project / "ingest.toml"
    toml.write_text(toml.read_text().replace("8099", port))
    (source,) = _blocks(_GUIDE, "yaml")
    (project / "sources" / "example.yaml").unlink()
    (project / "sources" / "shop.yaml").write_text(source.replace("8099", port), encoding="utf-8")


def test_the_guides_error_is_what_the_command_prints(tmp_path: Path) -> None:
    (source,) = _blocks(_GUIDE, "yaml")
    sources = tmp_path / "sources"
    sources.mkdir()
    (sources / "shop.yaml").write_text(source.replace("kind: page,", "kind: pages,"), encoding="utf-8")
    environment = {**os.environ, "INGEST_OPEN_ORIGINS": '["http://127.0.0.1:8099"]'}
    command = [str(BIN / "ingest"), "registry", "validate"]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    shown = re.search(r"^```\n(sources/shop.yaml:.*?)^```$", _GUIDE, re.M | re.S)
    assert shown is not None
    assert shown[1].strip() in ran.stdout + ran.stderr


def test_every_make_target_the_documents_name_exists() -> None:
    makefile = (_ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    documents = [
        _README,
        (_ROOT / "CONTRIBUTING.md").read_text(),
        *(p.read_text() for p in (_ROOT / "docs").glob("*.md")),
    ]
    named = {name for text in documents for name in re.findall(r"`?make ([a-z][a-z-]*)`", text)}
    assert named <= targets | {"demo"}


def test_every_test_the_readme_points_at_exists() -> None:
    named = re.findall(r"`(tests/[a-z_/]+\.py)`", _README)
    assert len(named) >= 8
    assert [name for name in named if not (_ROOT / name).exists()] == []


@pytest.mark.parametrize(
    "command",
    sorted({c.split("&&")[0].strip() for c in _commands(_README) if c.startswith((".venv/bin/ingest", "ingest"))}),
)
def test_every_command_the_readme_shows_is_known(command: str, tmp_path: Path) -> None:
    words = [word for word in shlex.split(command) if not word.startswith("my-")]
    program = BIN / Path(words[0]).name
    ran = subprocess.run([program, *words[1:], "--help"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
