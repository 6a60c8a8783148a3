"""`ingest-executor`: the daemon that leases tasks, pages through sources and stores what they send."""

import os
import sys
from typing import Annotated

import typer

from ingest.errors import OperatorError

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Lease tasks and harvest their pages.")


@app.callback()
def _root() -> None:
    """Keep `run` a command of its own: more may come."""


@app.command(
    epilog="Example: ingest-executor run --workers 8      Run one per host; they share the work and the limits."
)
def run(
    workers: Annotated[
        int | None, typer.Option("--workers", min=1, max=256, help="Threads, C_total; default: two per CPU.")
    ] = None,
) -> None:
    """Work until SIGTERM; then finish the page in hand and give the task back."""
    from datetime import timedelta

    from executor.pool import Pool
    from ingest.daemon import Daemon
    from ingest.logs import configure_logs, get_log
    from ingest.settings import load_settings
    from ingest.states import ProcessKind
    from ingest.store.leases import take_back_expired

    # The thread that writes waits for PostgreSQL ten times a page, and each time, for up to the switch interval, for
    # the thread that maps the next page: at 5 ms that is half of the page's time, at 0.5 ms hardly any (measured).
    sys.setswitchinterval(0.0005)
    settings = load_settings()
    configure_logs(settings.log_level, process="executor")
    log = get_log("executor")
    count = workers or (os.cpu_count() or 1) * 2
    daemon = Daemon(ProcessKind.EXECUTOR, settings, pool_size=count * 2 + 3, capacity=count)
    daemon.stop_on_signals()
    database = daemon.connect()
    if database is None:
        return
    daemon.start_heartbeat(database)
    pool = Pool(daemon, database, settings, workers=count)

    def take_back() -> None:
        with database.transaction() as conn:
            stall = timedelta(seconds=settings.stall_seconds)
            expired = take_back_expired(conn, poison=settings.poison_expiries, stall=stall)
        for lease in expired:
            log.warning("lease expired", task_id=lease.task_id, stream=lease.name, parked=lease.parked)

    pool.keeper.start()
    # a loop in every daemon, never a queued job: the job that rescues stalled jobs could stall itself
    daemon.spawn("reaper", take_back, min(5.0, settings.lease_seconds / 2))
    log.info("executor started", boot_id=daemon.boot_id, workers=count)
    pool.run()
    daemon.say_stopped(database)
    log.info("executor stopped", boot_id=daemon.boot_id)


def main() -> None:
    """Entry point: errors a person can mend are one sentence and an exit code."""
    try:
        app()
    except OperatorError as error:
        sys.stderr.write(f"ingest-executor: {error}\n")
        raise SystemExit(error.exit_code) from None
