"""`ingest demo`: the whole system on simulated sources, proved and cleaned up (`ingest.demo`)."""

from typing import Annotated

import typer

OPTIONS = {
    "epilog": """\b
Examples:  ingest demo            watch it, try commands beside it, stop it with Ctrl-C
           ingest demo            again: it goes on where it stopped
           ingest demo --check    no questions: exits 0 if the data equals the simulator's truth, else 1

Everything it makes is in ./.demo; it talks to nothing but this machine."""
}


def demo(
    check: Annotated[bool, typer.Option("--check", help="Prove it, stop everything, exit 0 or 1.")] = False,
    keep: Annotated[bool, typer.Option("--keep", help="Leave the embedded PostgreSQL running at the end.")] = False,
) -> None:
    """Harvest four simulated sources with two executors, kill one on the way, and prove that nothing was lost."""
    from ingest.demo.show import run_demo

    raise typer.Exit(run_demo(check=check, keep=keep))
