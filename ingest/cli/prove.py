"""`ingest test`: a source file against answers that were recorded; nothing is sent and nothing stored."""

from pathlib import Path
from typing import Annotated

import typer

from ingest.cli.bench import check_lines, find_snapshots
from ingest.cli.screen import say, width, write, write_json, write_lines
from ingest.cli.texts import plural

OPTIONS = {
    "epilog": """\b
Examples:  ingest try shop.items --pages 5 --record fixtures    first: keep some answers
           ingest test shop --offline                           then: does the file still read them?
           ingest test shop.items --json                        exit code 1 if a check fails"""
}


def prove(
    source: Annotated[str, typer.Argument(metavar="SOURCE[.ENDPOINT]", help="What to test.")],
    file: Annotated[Path | None, typer.Option("--file", help="The source file; default: the sources folder.")] = None,
    fixtures: Annotated[Path, typer.Option("--fixtures", help="Where the answers are.")] = Path("fixtures"),
    offline: Annotated[bool, typer.Option("--offline", help="Send nothing. So it is today, said or not.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Check a source file on recorded answers: records, ids, times, types, paging and its end."""
    from executor.fixtures import load_recording, recorded_fetch
    from executor.soundness import check_pages
    from executor.trial import try_pages
    from ingest.errors import NotFound
    from ingest.settings import load_settings

    snapshots = find_snapshots(source, load_settings(), file)
    recorded = [snapshot for snapshot in snapshots if (fixtures / snapshot.name / "trial.json").exists()]
    if not recorded:
        hint = f"ingest try {snapshots[0].name} --pages 3 --record {fixtures}"
        raise NotFound(f"no fixtures of {source} in {fixtures}/: record some with `{hint}`")
    results = {}
    for snapshot in recorded:
        recording = load_recording(fixtures / snapshot.name)
        fetch, most = recorded_fetch(snapshot, recording), len(recording.answers)
        pages = list(try_pages(snapshot, fetch, span=recording.span, most=max(1, most), partition=recording.partition))
        results[snapshot.name] = check_pages(snapshot, pages, recording.span)
    failed = sum(check.verdict == "fail" for checks in results.values() for check in checks)
    if as_json:
        write_json("test", {"streams": results, "failed": failed})
    else:
        for name, checks in results.items():
            write(name)
            write_lines([*check_lines(checks, width=width()), ""])
    missing = [snapshot.name for snapshot in snapshots if snapshot not in recorded]
    if missing:
        say(f"Not tested, for nothing was recorded: {', '.join(missing)}.")
    say(f"{plural(len(recorded), 'stream')} tested, {plural(failed, 'check')} failed.")
    if failed:
        raise typer.Exit(1)
