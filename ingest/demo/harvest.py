"""The harvest as it is watched: runs asked for, progress shown, one executor killed, its task seen to go on."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from ingest.admin.runs import request_run
from ingest.cli.follow import describe_end
from ingest.cli.status import describe_activity
from ingest.cli.texts import plural, short_moment
from ingest.demo.children import Child
from ingest.demo.progress import INDENT, Line, Screen
from ingest.demo.project import STREAMS
from ingest.demo.world import World
from ingest.errors import OperatorError
from ingest.store.processes import list_processes
from ingest.store.views import Stream, list_streams
from ingest.store.views_records import sum_ledger
from ingest.store.views_runs import FireView, HeldTask, get_fire, get_lineage, list_held_tasks, list_runs

if TYPE_CHECKING:
    from ingest.db import Connection, Database

_POLL_SECONDS = 0.15
_LONGEST_SECONDS = 180.0
_ENOUGH_PAGES = 2  # stored by the victim before it dies, so that there is something to lose
_ENOUGH_RECORDS = 1000  # missing at the start, or there is no harvest to disturb
_MOST_KILLS = 3
_WINDOWED = {stream.name for stream in STREAMS if stream.windowed}
_SETTLE = timedelta(seconds=4)  # the sources' safety lag and a little: the last change is in a closed window by then


@dataclass(frozen=True, slots=True)
class _Orphans:
    """The tasks whose worker was killed."""

    tasks: Sequence[HeldTask]
    killed_at: float


class Harvest:
    """The runs of one demo."""

    def __init__(self, database: "Database", world: World) -> None:
        self._database = database
        self._world = world
        self._fires: list[int] = []
        self._before: dict[str, datetime | None] = {}
        self._expected: dict[str, int] = {}
        self._kills_left = 0
        self._orphans: _Orphans | None = None
        self.recovered = False
        self.problems: list[str] = []

    def ask(self) -> None:
        """Ask for a run of every stream."""
        if self._world.last_change is not None:
            rest = self._world.last_change + _SETTLE - datetime.now(UTC)
            time.sleep(max(0.0, rest.total_seconds()))
        self.expect()
        with self._database.transaction() as conn:
            self._before = {stream.name: stream.watermark for stream in list_streams(conn)}
            stored = sum(sum_ledger(conn, source=s.source, endpoint=s.endpoint).inserted for s in STREAMS)
        if sum(self._expected.values()) - stored >= _ENOUGH_RECORDS:
            self._kills_left = _MOST_KILLS
        self._fires = [
            request_run(self._database, source=stream.source, endpoint=stream.endpoint, actor="demo")
            for stream in STREAMS
        ]

    @property
    def is_whole(self) -> bool:
        """There is enough to fetch that a worker can be killed on the way."""
        return self._kills_left > 0 or self._orphans is not None

    @property
    def _may_kill(self) -> bool:
        return self._kills_left > 0 and self._orphans is None

    def are_alive(self, pids: Sequence[int]) -> bool:
        """Say whether all these daemons show a heartbeat."""
        with self._database.transaction() as conn:
            alive = {process.pid for process in list_processes(conn) if process.alive}
        return alive.issuperset(pids)

    def run(
        self,
        screen: Screen,
        executors: Sequence[Child],
        *,
        start_executor: Callable[[], Child],
        check: Callable[[], None],
    ) -> None:
        """Watch until everything asked for is there; kill an executor once it has stored some pages."""
        whole = self.is_whole
        deadline = time.monotonic() + _LONGEST_SECONDS
        while True:
            check()
            with self._database.transaction() as conn:
                streams = list_streams(conn)
                fires = [get_fire(conn, fire) for fire in self._fires]
                screen.show(self._describe(conn, streams))
                self._look_after_orphans(conn, screen)
            if self._may_kill and self._kill_worker(screen, next(e for e in executors if not e.killed)):
                start_executor()
            done = all(fire.over for fire in fires) and not any(s.running or s.queued for s in streams)
            if done and (self._orphans is None or self.recovered):
                break
            if time.monotonic() > deadline:
                raise OperatorError(f"the harvest was not done after {_LONGEST_SECONDS:.0f} s")
            time.sleep(_POLL_SECONDS)
        for fire in fires:
            screen.say(INDENT + self._describe_end(fire))
            if fire.failed or fire.result == "FAILED":
                self.problems.append(describe_end(fire))
        if whole and not self.recovered:
            self.problems.append("no executor could be killed in the middle of a task")

    def show(self, screen: Screen) -> None:
        """Show how the streams are now."""
        with self._database.transaction() as conn:
            screen.show(self._describe(conn, list_streams(conn)))

    def expect(self) -> None:
        """Ask the simulator how many records there are now."""
        self._expected = {stream.name: int(self._world.tell_truth(stream.api)["count"]) for stream in STREAMS}

    def _describe(self, conn: "Connection", streams: Sequence[Stream]) -> list[Line]:
        lines = []
        for stream in streams:
            totals = sum_ledger(conn, source=stream.source, endpoint=stream.endpoint)
            line = Line(
                name=stream.name,
                records=totals.inserted,
                quarantined=totals.quarantined,
                expected=self._expected.get(stream.name, 0),
                pages=totals.pages,
                activity=describe_activity(stream),
            )
            lines.append(line)
        return lines

    def _describe_end(self, fire: FireView) -> str:
        before = self._before.get(fire.name)
        if before is None or fire.failed:
            return describe_end(fire)
        if fire.result == "NOTHING":
            return f"{fire.name}: already covered up to {short_moment(before)}: nothing to fetch"
        what = f"{plural(fire.tasks, 'new window')} since {short_moment(before)}"
        if fire.name not in _WINDOWED:
            what = "no windows, so it was walked again"
        return f"{fire.name}: {what}: {plural(fire.records, 'record')}, {fire.inserted:,} new, {fire.updated:,} changed"

    def _kill_worker(self, screen: Screen, executor: Child) -> bool:
        """Kill the executor if it is in the middle of a task; say whether it was."""
        with self._database.transaction() as conn:
            held = [task for task in list_held_tasks(conn, executor.pid) if task.name in _WINDOWED]
        if not held or held[0].pages_done < _ENOUGH_PAGES:
            return False
        executor.kill()
        killed_at = time.monotonic()
        with self._database.transaction() as conn:
            held = list_held_tasks(conn, executor.pid)
        screen.say(f"{INDENT}killed executor {executor.pid} with SIGKILL and started another")
        self._kills_left -= 1
        if held:
            self._orphans = _Orphans(held, killed_at)
            task = held[0]
            screen.say(f"{INDENT}it held {task.name}, task {task.task_id}: {plural(task.pages_done, 'page')} stored")
        return True

    def _look_after_orphans(self, conn: "Connection", screen: Screen) -> None:
        """Say once that a task of the dead worker was taken back and went on where it was."""
        if self._orphans is None or self.recovered:
            return
        ended = 0
        for task in self._orphans.tasks:
            runs = list_runs(conn, task_id=task.task_id)[::-1]
            expired = [run.id for run in runs if run.error is not None and run.error.startswith("lease expired")]
            following = [run for run in runs if expired and run.id > expired[-1] and run.pages]
            if following:
                self.recovered = True
                waited = time.monotonic() - self._orphans.killed_at
                kept = get_lineage(conn, following[0].id).first_page
                screen.say(
                    f"{INDENT}its lease ran out, the task was taken back; {waited:.1f} s after the kill run "
                    f"{following[0].id} went on at page {kept + 1}"
                )
                return
            ended += not expired and runs[-1].finished_at is not None
        if ended == len(self._orphans.tasks):
            # PostgreSQL had the last page in its hands when the worker died: nothing was lost, and nothing was shown
            self._orphans = None
