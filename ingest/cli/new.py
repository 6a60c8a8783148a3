"""`ingest new`: the file of a new source, from a template or from an answer of the source itself."""

import os
from pathlib import Path
from typing import Annotated

import typer

from ingest.cli.applying import write_problems
from ingest.cli.screen import say, say_next, write

OPTIONS = {
    "epilog": """\b
Examples:  ingest new shop --template windowed      a file to fill in: page, offset, token, link, keyset, windowed
           ingest new shop --from-url 'https://api.example.org/v1/items?page=1&size=50'"""
}


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The source's name: small letters, digits and _.")],
    template: Annotated[str, typer.Option("--template", help="What kind of paging to begin with.")] = "page",
    from_url: Annotated[str | None, typer.Option("--from-url", help="Ask this URL once and propose a file.")] = None,
    file: Annotated[Path | None, typer.Option("--file", help="Where to; default: NAME.yaml among the sources.")] = None,
) -> None:
    """Write the file of a new source, with a reason behind each guess; what is there is never touched."""
    from ingest.errors import NotFound, OperatorError
    from ingest.settings import load_settings
    from registry.builtin import BUILTIN
    from registry.drafts import make_draft
    from registry.files import read_text
    from registry.propose import TEMPLATES, propose, propose_template

    settings = load_settings()
    if template not in TEMPLATES:
        raise NotFound(f"no template '{template}': there is {', '.join(TEMPLATES)}")
    path = file or settings.sources / f"{name}.yaml"
    if path.exists():
        raise OperatorError(f"{path} is there already: choose another name or --file")
    if from_url is None:
        proposal = propose_template(name, template)
    else:
        from executor.trial import ask_once

        answer, links = ask_once(from_url, settings)
        proposal = propose(name, from_url, answer, links)
    text = proposal.text()
    draft = make_draft(read_text(str(path), text, os.environ), BUILTIN, settings.open_origins)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise OperatorError(f"cannot write {path}: {error.strerror}") from error
    write(f"made      {path}")
    if draft.problems:
        write_problems(draft.problems, files=1, as_json=False)
    say("Go over it: each guess says where it comes from.")
    say_next(f"ingest try {name}.{next(iter(draft.compiled), 'ENDPOINT')}")
