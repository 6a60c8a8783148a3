"""`ingest version`."""

from typing import Annotated

import typer

from ingest.cli.screen import write, write_json


def version(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Say which version this is."""
    import platform
    from importlib.metadata import version as find_version

    found, python = find_version("patra-ingest"), platform.python_version()
    if as_json:
        write_json("version", {"version": found, "python": python, "platform": platform.platform()})
    else:
        write(f"ingest {found} (python {python})")
