"""`ingest sim`: the bundled simulator, with its own options passed through."""

import typer

# the simulator reads its options, --help too
OPTIONS = {
    "add_help_option": False,
    "context_settings": {"ignore_unknown_options": True, "allow_extra_args": True},
}


def sim(context: typer.Context) -> None:
    """Serve simulated APIs on http://127.0.0.1:8099 until Ctrl-C, to try things on (`ingest sim --help`)."""
    from simulator.__main__ import main

    raise typer.Exit(main(context.args))
