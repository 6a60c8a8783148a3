"""Drafts: source files that were read, checked and compiled, before anything is written.

Invariant: a draft holds all problems of its file, each at its line; it may be applied only if none is an error.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from registry.compile import Compiled, examine
from registry.dictionary import Platform
from registry.document import Document, Endpoint
from registry.expand import Rows, expand
from registry.files import SourceFile, list_files, read_file
from registry.problems import Finding, Problem, Where, sort_problems, suggest
from registry.shape import read_document


@dataclass(slots=True)
class Draft:
    """One file on its way to the registry."""

    file: SourceFile
    document: Document | None = None
    rows: Rows = field(default_factory=dict)
    compiled: dict[str, Compiled] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @property
    def source(self) -> str:
        """The source's code, empty if the file is too broken to have one."""
        return str(self.rows["reg_provenance"][0]["provenance_code"]) if self.rows else ""


def read_drafts(
    paths: Iterable[Path], platform: Platform, *, environment: Mapping[str, str], open_origins: Collection[str]
) -> list[Draft]:
    """Read and check every source file at the paths; problems are in the drafts, only a missing path is raised."""
    drafts = [make_draft(read_file(path, environment), platform, open_origins) for path in list_files(paths)]
    _check_together(drafts)
    return drafts


def make_draft(file: SourceFile, platform: Platform, open_origins: Collection[str]) -> Draft:
    """Check and compile one file."""
    draft = Draft(file, problems=list(file.problems))
    if not isinstance(file.data, dict):
        return draft
    draft.document, findings = read_document(file.data)
    if draft.document is not None:
        findings += _check_inert(draft.document)
        draft.rows = expand(draft.document, platform.dictionary)
        for endpoint in draft.document.endpoints:
            examined = examine(draft.rows, platform, endpoint, open_origins=open_origins)
            findings += examined.findings
            if examined.compiled is not None:
                draft.compiled[endpoint] = examined.compiled
    # a value that could not be read is not also wrong in some other way
    unread = {problem.path for problem in file.problems}
    found = [problem for problem in map(file.place, findings) if problem.path not in unread]
    draft.problems = sort_problems([*file.problems, *found])
    return draft


def recall_draft(
    source: str, revision: int, text: str, rows: Rows, platform: Platform, open_origins: Collection[str]
) -> Draft:
    """Make a draft of what was applied once; the rows as they were, whatever `${VAR}` in the text would say today."""
    draft = Draft(SourceFile(f"{source} revision {revision}", text), rows=rows)
    for row in rows["reg_prov_endpoint_def"]:
        name = str(row["endpoint_name"])
        examined = examine(rows, platform, name, open_origins=open_origins)
        draft.problems += map(draft.file.place, examined.findings)
        if examined.compiled is not None:
            draft.compiled[name] = examined.compiled
    return draft


def list_problems(drafts: Iterable[Draft]) -> list[Problem]:
    """Return the problems of all drafts by file and line."""
    return sort_problems(problem for draft in drafts for problem in draft.problems)


def _check_inert(document: Document) -> Iterator[Finding]:
    """Rows keep `inert` as a mark on a parameter, so a name without its parameter would vanish: say it here."""
    places: list[tuple[Where, Document | Endpoint]] = [((), document)]
    places += [(("endpoints", name), endpoint) for name, endpoint in document.endpoints.items()]
    for where, model in places:
        known = [*model.query, *model.headers]
        for index, name in enumerate(model.inert):
            if name not in known:
                yield Finding(
                    code="unknown-name",
                    where=(*where, "inert", index),
                    message=f"'{name}' is not a parameter declared beside it",
                    hint=suggest(name, known),
                )


def _check_together(drafts: list[Draft]) -> None:
    """Two files may not declare one source, nor two endpoints one table."""
    sources: dict[str, Draft] = {}
    datasets: dict[str, str] = {}
    for draft in drafts:
        if draft.document is None:
            continue
        other = sources.setdefault(draft.source, draft)
        if other is not draft:
            _add(draft, ("source",), "name-taken", f"'{draft.source}' is also declared in {other.file.name}")
            continue
        for endpoint, compiled in draft.compiled.items():
            name = f"{draft.source}.{endpoint}"
            owner = datasets.setdefault(compiled.snapshot.mapping.dataset, name)
            if owner != name:
                message = f"the table data.{compiled.snapshot.mapping.dataset} belongs to {owner}"
                _add(draft, ("endpoints", endpoint, "dataset"), "name-taken", message, "choose another with 'dataset:'")


def _add(draft: Draft, where: Where, code: str, message: str, hint: str = "") -> None:
    finding = Finding(code=code, where=where, message=message, hint=hint)
    draft.problems = sort_problems([*draft.problems, draft.file.place(finding)])
