"""`ingest schedules`: when streams are looked after; changes take effect in the planner's next pass, no restart."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ingest.cli.names import find_scope
from ingest.cli.screen import say, say_next, width, write, write_json, write_lines
from ingest.cli.session import name_actor, open_checked, reading
from ingest.cli.texts import ago, details, next_at, short_moment, short_span, table

if TYPE_CHECKING:
    from ingest.rhythm import Rhythm
    from ingest.store.views_schedules import ScheduleView

app = typer.Typer(no_args_is_help=True, help="Schedules: when streams are looked after; changed without a restart.")

Json = Annotated[bool, typer.Option("--json", help="One JSON object.")]
Code = Annotated[str, typer.Argument(metavar="SOURCE.ENDPOINT", help="The schedule.")]
Reason = Annotated[str, typer.Option("--reason", help="Kept beside the change and in the audit trail.")]


@app.command(
    name="list", epilog="\b\nExamples:  ingest schedules list\n           ingest schedules list crossref --json"
)
def list_(
    scope: Annotated[str | None, typer.Argument(metavar="SOURCE[.ENDPOINT]", help="Only these.")] = None,
    as_json: Json = False,
) -> None:
    """List schedules: what they declare, what was changed, what comes next."""
    from ingest.admin.schedules import planner_is_alive
    from ingest.store.views_schedules import list_schedules

    with reading() as conn:
        source, endpoint = find_scope(conn, scope)
        found = list_schedules(conn, source=source, code=f"{source}.{endpoint}" if endpoint else None)
        alive = planner_is_alive(conn)
    if as_json:
        write_json("schedules", {"schedules": [_as_data(schedule, alive) for schedule in found]})
        return
    headers = ["SCHEDULE", "WHEN", "STATE", "NEXT", "LAST", "RESULT", "CHANGED"]
    rows = [
        [
            schedule.code,
            describe_rhythm(schedule.rhythm),
            "on" if schedule.enabled else "paused" if schedule.declared_enabled else "off",
            next_at(schedule.next_at, schedule.now),
            "-" if schedule.last_fire_at is None else ago(schedule.last_fire_at, schedule.now),
            (schedule.last_result or "-").lower(),
            f"{', '.join(schedule.overrides)} by {schedule.updated_by}" if schedule.overrides else "",
        ]
        for schedule in found
    ]
    write_lines(table(headers, rows, width=width()))
    _say_if_nobody_plans(alive)
    if found:
        say_next(f"ingest schedules show {found[0].code}")


@app.command(epilog="\b\nExample:  ingest schedules show crossref.works --next 5")
def show(
    code: Code,
    count: Annotated[int, typer.Option("--next", min=1, max=100, help="How many fires to preview.")] = 5,
    as_json: Json = False,
) -> None:
    """Show one schedule: the file's value, what was changed by whom, and its next fires."""
    from ingest.admin.schedules import get_schedule, planner_is_alive

    with reading() as conn:
        schedule = get_schedule(conn, code)
        alive = planner_is_alive(conn)
    coming = schedule.list_next(count)
    if as_json:
        write_json("schedule", _as_data(schedule, alive) | {"next_fires": coming})
        return
    changed = f"{short_moment(schedule.updated_at)} by {schedule.updated_by}" if schedule.updated_by else None
    by_hand = f"{short_moment(schedule.next_run_at)}, set by hand, once" if schedule.next_run_at else None
    interval = schedule.declared_every_s
    declared = None if interval is None else short_span(timedelta(seconds=interval))
    last = f"{short_moment(schedule.last_fire_at)} {schedule.last_result.lower()}" if schedule.last_result else None
    write_lines(
        details(
            [
                ("schedule", f"{schedule.code}  {schedule.operation}"),
                ("when", describe_rhythm(schedule.rhythm)),
                ("file says", f"every {declared}" if declared and "every" in schedule.overrides else None),
                ("state", "on" if schedule.enabled else "paused"),
                ("next run", by_hand),
                ("missed fires", schedule.rhythm.on_missed),
                ("quiet", ", ".join(schedule.rhythm.quiet)),
                ("last fire", last),
                ("changed", changed),
                ("reason", schedule.reason),
                ("planner", "running" if alive else "none is running"),
            ]
        )
    )
    write("next fires")
    write_lines(f"  {short_moment(at)}  {next_at(at, schedule.now)}" for at in coming)
    say_next(f"ingest schedules history {schedule.code}")


@app.command(
    name="set",
    epilog="\b\nExample:  ingest schedules set crossref.works --every 30m --reason 'catching up'"
    "\n\nBetween 5m and 7d; the next fire is the last planned one plus the new interval.",
)
def set_(
    code: Code,
    every: Annotated[str, typer.Option("--every", help="The new interval, such as 30m or 1800.")],
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Change the interval from the last planned fire on."""
    from ingest.admin.schedules import set_interval

    _change(as_json, lambda database, actor: set_interval(database, code, _seconds(every), actor=actor, reason=reason))


@app.command(
    name="next",
    epilog="\b\nExamples:  ingest schedules next crossref.works --at 2026-01-31T02:00:00Z"
    "\n           ingest schedules next crossref.works --in 10m",
)
def next_(
    code: Code,
    at: Annotated[str, typer.Option("--at", help="A moment; without a zone it is UTC.")] = "",
    after: Annotated[str, typer.Option("--in", help="A duration from now.")] = "",
    reason: Reason = "",
    as_json: Json = False,
) -> None:
    """Set the next fire, once; after it the rhythm goes on. At most 30 days ahead."""
    from datetime import UTC

    from ingest.admin.schedules import set_next_run
    from ingest.errors import ValueRefused

    if bool(at) == bool(after):
        raise ValueRefused("say when: --at 2026-01-31T02:00:00Z or --in 10m")
    try:
        moment = datetime.fromisoformat(at) if at else datetime.now(UTC) + timedelta(seconds=_seconds(after))
    except ValueError as error:
        raise ValueRefused(f"'{at}' is not a moment: write 2026-01-31T02:00:00Z") from error
    _change(as_json, lambda database, actor: set_next_run(database, code, moment, actor=actor, reason=reason))


@app.command(epilog="\b\nExample:  ingest schedules pause crossref.works --reason 'vendor maintenance'")
def pause(code: Code, reason: Reason = "", as_json: Json = False) -> None:
    """Stop firing until resumed; what runs goes on."""
    from ingest.admin.schedules import set_enabled

    _change(as_json, lambda database, actor: set_enabled(database, code, False, actor=actor, reason=reason))


@app.command(epilog="\b\nExample:  ingest schedules resume crossref.works")
def resume(code: Code, reason: Reason = "", as_json: Json = False) -> None:
    """Fire again, from the next moment of its rhythm on."""
    from ingest.admin.schedules import set_enabled

    _change(as_json, lambda database, actor: set_enabled(database, code, True, actor=actor, reason=reason))


@app.command(epilog="\b\nExample:  ingest schedules reset crossref.works")
def reset(code: Code, reason: Reason = "", as_json: Json = False) -> None:
    """Forget what was changed at run time: the source file's values hold again."""
    from ingest.admin import schedules

    _change(as_json, lambda database, actor: schedules.reset(database, code, actor=actor, reason=reason))


@app.command(name="run-now", epilog="\b\nExample:  ingest schedules run-now crossref.works")
def run_now(code: Code, reason: Reason = "", as_json: Json = False) -> None:
    """Fire now; the next planned fire stays where it is. Refused while the last fire is still running."""
    from ingest.admin.runs import request_run
    from ingest.admin.schedules import check_idle, get_schedule

    with open_checked() as (database, settings):
        with database.transaction() as conn:
            schedule = get_schedule(conn, code)
            check_idle(conn, code)
        fire = request_run(
            database, source=schedule.source, endpoint=schedule.endpoint, actor=name_actor(settings), reason=reason
        )
    if as_json:
        write_json("run-request", {"stream": code, "fire": fire})
        return
    write(f"{code}: asked for (fire {fire}); its next planned fire stays at {next_at(schedule.next_at, schedule.now)}")
    say_next(f"ingest schedules history {code}")


@app.command(epilog="\b\nExample:  ingest schedules history crossref.works --limit 50")
def history(
    code: Code,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1000)] = 20,
    as_json: Json = False,
) -> None:
    """List fires, newest first: what came of each, and why one was skipped."""
    from ingest.admin.schedules import get_schedule
    from ingest.store.views_schedules import list_fires

    with reading() as conn:
        schedule = get_schedule(conn, code)
        fires = list_fires(conn, source=schedule.source, endpoint=schedule.endpoint, limit=limit)
    if as_json:
        write_json("fires", {"schedule": code, "fires": fires})
        return
    headers = ["FIRE", "FOR", "BY", "RESULT", "TASKS", "FAILED", "OPEN", "WHY"]
    rows = [
        [
            str(fire.id),
            short_moment(fire.scheduled_for),
            fire.trigger.lower(),
            fire.result.lower(),
            str(fire.tasks),
            str(fire.failed),
            str(fire.open),
            fire.why,
        ]
        for fire in fires
    ]
    write_lines(table(headers, rows, right=("FIRE", "TASKS", "FAILED", "OPEN"), width=width()))


def describe_rhythm(rhythm: "Rhythm") -> str:
    """Return when it fires as people say it."""
    match rhythm.kind:
        case "every":
            said = f"every {short_span(timedelta(seconds=rhythm.every_s or 0))}"
        case "cron":
            said = f"cron {rhythm.cron} {rhythm.zone}"
        case _:
            said = "once"
    return said + (f" + up to {short_span(timedelta(seconds=rhythm.jitter_s))}" if rhythm.jitter_s else "")


def _change(as_json: bool, act: Any) -> None:
    from ingest.admin.schedules import planner_is_alive

    with open_checked() as (database, settings):
        schedule: ScheduleView = act(database, name_actor(settings))
        with database.transaction() as conn:
            alive = planner_is_alive(conn)
    if as_json:
        write_json("schedule", _as_data(schedule, alive))
        return
    state = "" if schedule.enabled else ", paused"
    write(f"{schedule.code}: {describe_rhythm(schedule.rhythm)}{state}; next {next_at(schedule.next_at, schedule.now)}")
    _say_if_nobody_plans(alive)


def _as_data(schedule: "ScheduleView", alive: bool) -> dict[str, Any]:
    """Return a schedule under the names of the admin API (S1)."""
    from ingest.admin.schedules import NO_PLANNER

    return {
        "code": schedule.code,
        "kind": schedule.rhythm.kind,
        "interval_seconds": schedule.rhythm.every_s,
        "cron": schedule.rhythm.cron,
        "zone": schedule.rhythm.zone,
        "enabled": schedule.enabled,
        "next_run_time": schedule.next_at,
        "scheduler_running": alive,
        "updated_at": schedule.updated_at,
        "updated_by": schedule.updated_by or None,
        "overrides": schedule.overrides,
        "last_result": schedule.last_result,
        "message": None if alive else NO_PLANNER,
    }


def _say_if_nobody_plans(alive: bool) -> None:
    if not alive:
        say("No planner is alive: changes are stored and take effect when one is started (ingest-planner run).")


def _seconds(text: str) -> float:
    from ingest.durations import parse_duration
    from ingest.errors import ValueRefused

    try:
        return float(text) if text.isdigit() else parse_duration(text).total_seconds()
    except ValueError as error:
        raise ValueRefused(str(error)) from error
