"""`ingest cancel`: end a plan, a slice, a task or a run now."""

from typing import Annotated, Literal, cast, get_args

import typer

from ingest.cli.screen import say, write, write_json
from ingest.cli.session import name_actor, open_checked
from ingest.cli.texts import plural

Kind = Literal["plan", "slice", "task", "run"]
OPTIONS = {
    "epilog": """\b
Examples:  ingest cancel plan 12 --reason 'wrong window'
           ingest cancel run 41

Effective before the next page is written: pages stored so far stay, the window is not covered. It stays a gap, and
the next fire plans it again; `ingest pause` stops that."""
}


def cancel(
    kind: Annotated[str, typer.Argument(metavar="plan|slice|task|run", help="What to cancel.")],
    number: Annotated[int, typer.Argument(min=1, help="Its id.")],
    reason: Annotated[str, typer.Option("--reason", help="Kept on the task and in the audit trail.")] = "",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """End a plan, a slice, a task or a run now."""
    from ingest.admin import cancels
    from ingest.errors import ValueRefused

    if kind not in get_args(Kind):
        raise ValueRefused(f"'{kind}' cannot be cancelled: plan, slice, task or run")
    with open_checked() as (database, settings):
        ended = cancels.cancel(database, cast("Kind", kind), number, actor=name_actor(settings), reason=reason)
    if as_json:
        write_json("cancelled", {"kind": kind, "id": number, "tasks": ended})
        return
    write(f"{kind} {number}: cancelled, {plural(ended, 'live task')} ended")
    say("Its windows stay gaps: the next fire plans them again unless the source is paused.")
