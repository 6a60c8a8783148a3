"""`ingest run`: fetch what is missing of one stream now, and watch it if asked to."""

from typing import Annotated

import typer

from ingest.cli.follow import describe_end, exit_code_of, watch_fire
from ingest.cli.names import get_endpoint
from ingest.cli.screen import say, say_next, write, write_json
from ingest.cli.session import name_actor, open_checked

OPTIONS = {
    "epilog": """\b
Examples:  ingest run crossref.works             ask, and go on with other things
           ingest run crossref.works --follow    watch until it is done; exits 1 if a window failed
           ingest run crossref.works --wait      the same without progress, for scripts

It plans every window that is missing now; a stream without gaps fetches nothing."""
}


def run(
    stream: Annotated[str, typer.Argument(metavar="SOURCE.ENDPOINT", help="What to run.")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Show progress until it is done.")] = False,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until it is done, quietly.")] = False,
    reason: Annotated[str, typer.Option("--reason", help="Kept in the audit trail.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Fetch what is missing of a stream now."""
    from ingest.admin.runs import request_run
    from ingest.store.views import read_queue
    from ingest.store.views_runs import get_fire

    with open_checked() as (database, settings):
        with database.transaction() as conn:
            endpoint = get_endpoint(conn, stream)
            queue = read_queue(conn)
        fire_id = request_run(
            database, source=endpoint.source, endpoint=endpoint.endpoint, actor=name_actor(settings), reason=reason
        )
        _say_who_is_missing(planners=queue.count_alive("PLANNER"), executors=queue.count_alive("EXECUTOR"))
        if not follow and not wait:
            if as_json:
                write_json("run-request", {"stream": endpoint.name, "fire": fire_id})
                return
            write(f"{endpoint.name}: asked for (fire {fire_id})")
            say_next(f"ingest status {endpoint.name}")
            return
        say(f"{endpoint.name}: asked for (fire {fire_id}); Ctrl-C stops watching, not the work")
        watch_fire(database, fire_id, show=follow)
        with database.transaction() as conn:
            fire = get_fire(conn, fire_id)
    if as_json:
        write_json("run-result", {"fire": fire, "ok": exit_code_of(fire) == 0})
    else:
        write(describe_end(fire))
    if code := exit_code_of(fire):
        say_next(f"ingest runs list {endpoint.name}")
        raise typer.Exit(code)


def _say_who_is_missing(*, planners: int, executors: int) -> None:
    if not planners:
        say("No planner is alive: it waits until one is started (ingest-planner run).")
    if not executors:
        say("No executor is alive: nothing is fetched until one is started (ingest-executor run --workers 4).")
