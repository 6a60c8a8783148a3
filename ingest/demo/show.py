"""The show: `ingest demo` from an empty folder to a proof, in numbered steps.

Invariant: whatever happens at whatever moment, Ctrl-C included, nothing this started is left running when it returns
(but the embedded PostgreSQL with --keep). It talks to this machine alone.
"""

import fcntl
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ingest.cli.screen import say, write
from ingest.cli.texts import plural, short_moment, table
from ingest.demo.children import Child, clean_environment, find_program, stop_all
from ingest.demo.harvest import Harvest
from ingest.demo.progress import INDENT, open_screen
from ingest.demo.project import STREAMS, write_project
from ingest.demo.proof import Proof, prove
from ingest.demo.world import World
from ingest.errors import OperatorError, RefusedByState

if TYPE_CHECKING:
    from ingest.db import Database

_FOLDER = Path(".demo")
_STEPS = 7
_EXECUTORS = 2
_WORKERS = 2
_CHANGE_SECONDS = 20.0
_ALIVE_SECONDS = 30.0


def run_demo(*, check: bool, keep: bool) -> int:
    """Run the demo in ./.demo; return its exit code."""
    with _alone(_FOLDER), _interruptible():
        demo = _Demo(_FOLDER.absolute())
        try:
            proved = demo.perform()
            if not proved or check:
                return 0 if proved else 1
            demo.linger()
            return 0
        except KeyboardInterrupt:
            write()
            return 0 if demo.proved else 130
        except OperatorError as error:
            say(f"ingest: {error}")
            say(f"Logs: {_FOLDER}/logs/*.log, {_FOLDER}/postgres.log")
            return error.exit_code
        finally:
            demo.stop(keep=keep)


class _Demo:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = clean_environment()
        self._world = World(folder)
        self._executors: list[Child] = []
        self._planner: Child | None = None
        self._simulator: Child | None = None
        self._step = 0
        self._since = time.monotonic()
        self._url = ""
        self._database: Database | None = None
        self._harvest: Harvest | None = None
        self.proved = False

    def perform(self) -> bool:
        """Go through the steps; say whether the data is the truth."""
        from ingest.db import Database

        started = time.monotonic()
        self._start_database()
        self._database = Database(self._url)
        self._start_programs()
        self._meet_simulator()
        self._apply()
        harvest = Harvest(self._database, self._world)
        # asked for before there is a planner: its first pass then has all of it, and no schedule comes between
        harvest.ask()
        self._meet_daemons(harvest)
        self._tell("harvesting; one executor is killed on the way" if harvest.is_whole else "catching up")
        with open_screen() as screen:
            harvest.run(screen, self._executors, start_executor=self._start_executor, check=self._check_children)
        with self._database.transaction() as conn:
            proofs = [prove(conn, self._world, stream) for stream in STREAMS]
        self._conclude(proofs, harvest, time.monotonic() - started)
        self._harvest = harvest
        return self.proved

    def linger(self) -> None:
        """Keep everything running, with records changing now and then, until Ctrl-C."""
        command = _own_command(self._folder)
        write("Try, in another terminal:")
        write(f"  cd {_FOLDER}          (an ordinary project: ingest.toml, sources/, logs/)")
        for line in (
            "status",
            "runs list",
            "quarantine list",
            "coverage crossref.works",
            "run github.issues --follow",
            "registry show crossref.works",
            "db psql -c 'SELECT type, count(*) FROM data.crossref_works GROUP BY 1'",
        ):
            write(f"  {command} {line}")
        write(f"Still running: every {_CHANGE_SECONDS:.0f} s a few records change and are fetched within a minute.")
        write("Ctrl-C stops everything; `ingest demo` again goes on from here.")
        sys.stdout.flush()
        change_at = time.monotonic() + _CHANGE_SECONDS
        with open_screen(lines=False) as screen:
            while self._harvest is not None:
                self._check_children()
                if time.monotonic() > change_at:
                    self._world.change()
                    self._harvest.expect()
                    change_at += _CHANGE_SECONDS
                self._harvest.show(screen)
                time.sleep(1.0)

    def stop(self, *, keep: bool) -> None:
        """Stop what runs, in an order that leaves no work half done: executors, planner, simulator, database."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)  # the way out is bounded; a second Ctrl-C would only leave things
        say("Stopping.")
        if self._database is not None:
            self._database.close()
        stop_all(self._executors)
        stop_all(child for child in (self._planner, self._simulator) if child)
        if not keep:
            from ingest.embedded.server import stop

            stop(self._folder)

    def _start_database(self) -> None:
        from ingest.db import Database
        from ingest.embedded.server import start
        from ingest.store.schema import migrate

        self._url = start(self._folder, say=say).url
        owner = Database(self._url, owner=True)
        try:
            version = owner.check()
            self._tell(f"embedded PostgreSQL {version} in {_FOLDER}/pg, socket only")
            before, after = migrate(owner)
        finally:
            owner.close()
        self._tell(f"schema at revision {after}" + ("" if before == after else ", migrated"))

    def _start_programs(self) -> None:
        """Start what needs no source to be applied yet: loading takes a second each, so all at once."""
        write_project(self._folder, self._world)
        self._simulator = self._world.serve(self._environment)
        for _ in range(_EXECUTORS):
            self._start_executor()

    def _meet_simulator(self) -> None:
        assert self._simulator is not None  # noqa: S101 -- started before
        self._world.wait(self._simulator)
        if self._world.is_new:
            self._world.plant_faults()
        self._tell(f"simulator on {self._world.origin}: four APIs, no internet needed")

    def _apply(self) -> None:
        done = subprocess.run(  # noqa: S603 -- our own command
            [find_program("ingest"), "registry", "apply", "--reason", "demo"],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        (self._folder / "logs" / "registry.log").write_text(done.stdout + done.stderr, encoding="utf-8")
        if done.returncode:
            raise OperatorError(f"`ingest registry apply` ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        self._tell(f"{plural(len(STREAMS), 'source')} applied from {_FOLDER}/sources/")

    def _meet_daemons(self, harvest: Harvest) -> None:
        self._planner = self._start("planner", "ingest-planner", "run")
        deadline = time.monotonic() + _ALIVE_SECONDS
        while not harvest.are_alive([child.pid for child in (self._planner, *self._executors)]):
            self._check_children()
            if time.monotonic() > deadline:
                raise OperatorError(f"the daemons show no heartbeat after {_ALIVE_SECONDS:.0f} s")
            time.sleep(0.05)
        self._tell(f"planner and {_EXECUTORS} executors ({_EXECUTORS * _WORKERS} workers) started")

    def _start_executor(self) -> Child:
        number = len(self._executors) + 1
        child = self._start(f"executor-{number}", "ingest-executor", "run", "--workers", str(_WORKERS))
        self._executors.append(child)
        return child

    def _start(self, name: str, program: str, *arguments: str) -> Child:
        command = [find_program(program), *arguments]
        return Child(name, command, folder=self._folder, environment=self._environment)

    def _check_children(self) -> None:
        for child in (self._simulator, self._planner, *self._executors):
            if child is not None and not child.killed:
                child.check()

    def _conclude(self, proofs: list[Proof], harvest: Harvest, seconds: float) -> None:
        lost, wrong = sum(proof.lost for proof in proofs), sum(proof.wrong for proof in proofs)
        duplicate = sum(proof.duplicate for proof in proofs)
        self._tell(f"compared with the simulator's own truth: {lost} lost, {duplicate} duplicate, {wrong} wrong")
        rows = [
            [
                proof.name,
                f"{proof.records:,}",
                f"{proof.requests:,}",
                f"{proof.quarantined:,}",
                short_moment(proof.watermark),
                "equal" if proof.holds else f"{proof.lost} LOST, {proof.duplicate} DUPLICATE, {proof.wrong} WRONG",
            ]
            for proof in proofs
        ]
        headers = ["STREAM", "RECORDS", "REQUESTS", "QUARANTINED", "WATERMARK", "TRUTH"]
        for line in table(headers, rows, right=headers[1:4]):
            write(INDENT + line)
        self.proved = all(proof.holds for proof in proofs) and not harvest.problems
        for problem in harvest.problems:
            write(f"{INDENT}! {problem}")
        if self.proved:
            records = sum(proof.records for proof in proofs)
            write(f"All demo checks passed in {seconds:.0f} s: {records:,} records, 0 lost, 0 duplicate.")
        else:
            write(f"The demo FAILED. Read {_FOLDER}/logs/*.log")
        sys.stdout.flush()

    def _tell(self, text: str) -> None:
        self._step += 1
        now = time.monotonic()
        write(f"[{self._step}/{_STEPS}] {text.ljust(74)} {now - self._since:>5.1f} s")
        sys.stdout.flush()
        self._since = now


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the folder's lock: two demos would stop each other's database."""
    folder.mkdir(exist_ok=True)
    with (folder / "demo.lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RefusedByState(f"another demo runs in {folder}/: stop it with Ctrl-C") from None
        yield


@contextmanager
def _interruptible() -> Iterator[None]:
    """Answer SIGTERM and a closed terminal like Ctrl-C, also where a shell started us with SIGINT ignored."""

    def interrupt(_number: int, _frame: object) -> NoReturn:
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupt)
    yield


def _own_command(folder: Path) -> str:
    """Return how to call `ingest` from the demo's folder."""
    program = Path(find_program("ingest"))
    on_path = shutil.which("ingest")
    if on_path and Path(on_path).samefile(program):
        return "ingest"
    try:
        return str(Path("..") / program.relative_to(folder.parent))
    except ValueError:
        return str(program)
