"""One pass of the planner: fire, plan, go on with PARTIAL plans, rescue. Safe with any number of planners."""

import time
from dataclasses import dataclass, field
from datetime import timedelta

from ingest.db import Database
from ingest.logs import get_log
from ingest.settings import Settings
from ingest.states import FireResult
from ingest.store import cursors, lanes, leases, plans, processes, schedules
from planner.firing import fire_schedule
from planner.planning import Compile, continue_plan, plan_fire

_log = get_log("planner")
_RESCUE_SECONDS = 5.0


@dataclass(slots=True)
class Tick:
    """What one pass did."""

    fired: int = 0
    planned: int = 0
    continued: int = 0
    taken_back: int = 0
    rescued: int = 0
    problems: list[str] = field(default_factory=list)


class Planner:
    """The planner's loop body; holds nothing but when it last rescued."""

    def __init__(self, database: Database, settings: Settings, compile_endpoint: Compile) -> None:
        self._database = database
        self._settings = settings
        self._compile = compile_endpoint
        self._rescued_at = float("-inf")

    def tick(self) -> Tick:
        """Make one pass; one bad schedule, fire or plan never stops the others (G1)."""
        done = Tick()
        self._fire(done)
        self._plan_fires(done)
        self._continue_plans(done)
        self._rescue(done)
        return done

    def _fire(self, done: Tick) -> None:
        with self._database.transaction() as conn:
            schedules.adopt_schedules(conn)
            for schedule in schedules.lock_due_schedules(conn):
                try:
                    done.fired += fire_schedule(conn, schedule)
                except ValueError as error:  # a rhythm written past the checks
                    done.problems.append(f"schedule {schedule.schedule_code}: {error}")
                    _log.error("schedule cannot fire", schedule=schedule.schedule_code, error=str(error))

    def _plan_fires(self, done: Tick) -> None:
        after = 0
        while True:
            try:
                with self._database.transaction() as conn:
                    fire = schedules.take_fire(conn, after=after)
                    if fire is None:
                        return
                    after = fire.id
                    result = plan_fire(conn, fire, self._compile)
                    done.planned += result is FireResult.PLANNED
                    _log.info(
                        "fire", source=fire.provenance_code, endpoint=fire.endpoint_name, op=fire.operation_code,
                        schedule_instance_id=fire.id, result=result,
                    )  # fmt: skip
            except Exception as error:
                # the transaction is gone, so the fire stays FIRED and is tried again in the next pass
                done.problems.append(f"fire {after}: {error}")
                _log.exception("planning failed", schedule_instance_id=after)
                if after == 0:
                    return

    def _continue_plans(self, done: Tick) -> None:
        after = 0
        while True:
            with self._database.transaction() as conn:
                plan = plans.take_partial_plan(conn, after=after)
                if plan is None:
                    return
                after = plan.id
                done.continued += continue_plan(conn, plan)

    def _rescue(self, done: Tick) -> None:
        """Take back what dead workers hold and recompute cursors whose second transaction was lost."""
        settings = self._settings
        with self._database.transaction() as conn:
            stall = timedelta(seconds=settings.stall_seconds)
            expired = leases.take_back_expired(conn, poison=settings.poison_expiries, stall=stall)
        done.taken_back = len(expired)
        for lease in expired:
            _log.warning("lease expired", task_id=lease.task_id, stream=lease.name, parked=lease.parked)
        if time.monotonic() - self._rescued_at < _RESCUE_SECONDS:
            return
        self._rescued_at = time.monotonic()
        with self._database.transaction() as conn:
            done.rescued = cursors.rescue_cursors(conn)
            lanes.refresh_concurrency(conn)
            processes.prune(conn)
