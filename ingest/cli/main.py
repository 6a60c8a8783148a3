"""`ingest`: the command for everything that is not a daemon; one module per noun, imported when it is named.

Invariant: an error a person can mend is one line on stderr and an exit code (research/ecosystem.md §5.1); a traceback
appears only with --debug. `ingest --help` imports no noun at all, and nouns import heavy libraries inside commands.
"""

import os
import sys
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer

from ingest.errors import OperatorError

_EPILOG = """\b
Begin:      ingest demo                    everything at once, on simulated sources
            ingest init my-project         a project of your own
Daily:      ingest status                  how all streams are
            ingest run crossref.works -f   fetch what is missing, and watch
Exit codes: 0 ok, 1 the work failed, 2 wrong usage, 3 --check found something, 4 no such thing,
            5 no database, 6 refused by state, 130 Ctrl-C"""

# noun -> its line in `ingest --help`, in the order of a first day. Its module is ingest.cli.<noun>: a function of the
# same name, or a typer app named `app` with several verbs. `try` is a word of Python's own, `test` one of pytest's.
NOUNS = {
    "demo": "Everything at once on simulated sources, proved.",
    "init": "Write the files of a new project.",
    "doctor": "Check the installation and say what mends it.",
    "db": "The database: start, stop, status, migrate, psql.",
    "registry": "Source files: validate, diff, apply, show, history, rollback.",
    "new": "Write the file of a new source, from a template or a live answer.",
    "try": "A few pages of a stream, shown and not stored.",
    "test": "A source file on recorded answers.",
    "status": "How every stream is and what it does now.",
    "run": "Fetch what is missing of a stream now.",
    "schedules": "When streams are looked after; changed without a restart.",
    "pause": "Plan and lease nothing of a source, an endpoint or everything.",
    "resume": "Lift what `pause` set.",
    "cancel": "End a plan, a slice, a task or a run now.",
    "runs": "What ran, how it ended, and the ledger of its pages.",
    "cursors": "How far each stream has come without a hole.",
    "coverage": "What is covered, in flight and missing.",
    "audit": "Prove on your own data that nothing was lost or doubled.",
    "quarantine": "Records that could not be stored, and why.",
    "sim": "Serve simulated APIs to try things on.",
    "version": "Say which version this is.",
}

_MODULES = {"try": "try_out", "test": "prove"}


def make_app(*nouns: str) -> typer.Typer:
    """Return the app with these nouns whole; the others are there by name only, for --help and "did you mean"."""
    app = typer.Typer(
        name="ingest",
        help="Get data out of other people's HTTP APIs: completely, politely and provably.",
        epilog=_EPILOG,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,  # the drawn boxes cost 150 ms of imports
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )
    app.callback()(_declare_flags)
    for noun, line in NOUNS.items():
        if noun not in nouns:
            app.command(name=noun, short_help=line)(_do_nothing)
            continue
        name = _MODULES.get(noun, noun)
        module = import_module(f"ingest.cli.{name}")
        if hasattr(module, "app"):
            app.add_typer(module.app, name=noun, short_help=line)
        else:
            options: dict[str, Any] = getattr(module, "OPTIONS", {})
            app.command(name=noun, short_help=line, **options)(getattr(module, name))
    return app


def _declare_flags(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks. May stand anywhere.")] = False,
    no_color: Annotated[bool, typer.Option("--no-color", help="No colour, as NO_COLOR=1. May stand anywhere.")] = False,
) -> None:
    """Show in --help the flags that `main` takes out of the arguments."""


def _do_nothing() -> None:
    pass


def main() -> None:
    """Entry point: run the command named on the command line and exit as it ended."""
    arguments, debug = _take_flags(sys.argv[1:])
    try:
        make_app(*arguments[:1])(arguments, prog_name="ingest")
    except Exception as error:
        if debug:
            raise
        _fail(error)


def _take_flags(arguments: list[str]) -> tuple[list[str], bool]:
    """Return the arguments without the flags that may stand anywhere, and whether tracebacks are wanted."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    flags, rest = arguments[:end], arguments[end:]
    if "--no-color" in flags:
        os.environ["NO_COLOR"] = "1"
    kept = [argument for argument in flags if argument not in ("--debug", "--no-color")]
    return kept + rest, "--debug" in flags


def _fail(error: Exception) -> NoReturn:
    code, text = _explain(error)
    sys.stderr.write(f"ingest: {text}\n")
    raise SystemExit(code)


def _explain(error: Exception) -> tuple[int, str]:
    if isinstance(error, OperatorError):
        return error.exit_code, str(error)
    from ingest.db import is_connection_lost

    lines = str(getattr(error, "orig", None) or error).strip().splitlines() or [type(error).__name__]
    if is_connection_lost(error):
        return 5, f"the database went away: {lines[0]}"
    return 1, f"{type(error).__name__}: {lines[0]} (--debug shows where)"
