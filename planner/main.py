"""`ingest-planner`: the daemon that decides what is missing and writes it down as tasks."""

import json
import sys
from typing import Annotated

import typer

from ingest.errors import OperatorError

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Plan what is missing and queue it as tasks.")


@app.callback()
def _root() -> None:
    """Keep `run` a command of its own: more may come."""


@app.command(
    epilog="Example: ingest-planner run        (under systemd)   ·   ingest-planner run --once   (in a script)"
)
def run(
    once: Annotated[bool, typer.Option("--once", help="Make one pass and end; prints what it did as JSON.")] = False,
) -> None:
    """Fire schedules, plan, slice, queue, rescue; until SIGTERM."""
    from dataclasses import asdict
    from functools import partial

    from ingest.daemon import Daemon
    from ingest.logs import configure_logs, get_log
    from ingest.settings import load_settings
    from ingest.states import ProcessKind
    from planner.tick import Planner
    from registry.load import compile_endpoint

    settings = load_settings()
    configure_logs(settings.log_level, process="planner")
    log = get_log("planner")
    daemon = Daemon(ProcessKind.PLANNER, settings, pool_size=3)
    daemon.stop_on_signals()
    database = daemon.connect()
    if database is None:
        return
    # a source file cannot open what the installation keeps closed: the check is made again with its own settings
    checked = partial(compile_endpoint, open_origins=settings.open_origins)
    planner = Planner(database, settings, checked)
    if once:
        sys.stdout.write(json.dumps(asdict(planner.tick())) + "\n")
        return
    daemon.start_heartbeat(database)
    log.info("planner started", boot_id=daemon.boot_id)
    daemon.loop("tick", planner.tick, settings.tick_seconds)
    daemon.say_stopped(database)
    log.info("planner stopped", boot_id=daemon.boot_id)


def main() -> None:
    """Entry point: errors a person can mend are one sentence and an exit code."""
    try:
        app()
    except OperatorError as error:
        sys.stderr.write(f"ingest-planner: {error}\n")
        raise SystemExit(error.exit_code) from None
