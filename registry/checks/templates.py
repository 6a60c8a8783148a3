"""Checks of templates: they parse, use only names that will be there, and only functions this source may use (B10)."""

from collections.abc import Iterator

from jinja2 import TemplateSyntaxError, nodes
from jinja2.sandbox import SandboxedEnvironment

from ingest.spec.templates import FILTERS, FUNCTIONS, check_template
from registry.checks.pagination import PAGE_NAMES
from registry.checks.partitions import dimensions_of
from registry.checks.subject import Subject, error
from registry.problems import Finding, suggest

_PARSER = SandboxedEnvironment()
_FOLLOWS = "kind url follows the source's own link: write what the first request needs, such as page: 1"


def check_templates(subject: Subject) -> Iterator[Finding]:
    """Every template of the request can be rendered."""
    kind = str(subject.get("pagination.kind"))
    names = {
        "vars": tuple(subject.merged.get("vars", {})),
        "window": ("from", "to"),
        "page": PAGE_NAMES.get(kind, ("number", "size", "offset", "token")),
    }
    dimensions = [str(each["name"]) for each in dimensions_of(subject)]
    if dimensions:
        names["partition"] = tuple(dimensions)
    allowed = subject.get("functions") or []
    for text in subject.texts():
        problems = check_template(text.text, names=names)
        for problem in problems:
            hint = _FOLLOWS if kind == "URL" and "of 'page'" in problem.message else problem.hint or ""
            yield error("bad-template", text.where, problem.message, hint, offset=problem.offset)
        if not problems:
            for name in sorted(_used_functions(text.text) - set(allowed)):
                offset = text.text.find(name)
                known = ", ".join(allowed) or "none"
                message = f"the function '{name}' is not allowed here ({known})"
                yield error("bad-template", text.where, message, offset=offset)
    for name in allowed:
        if name not in FUNCTIONS and name not in FILTERS:
            hint = suggest(name, sorted({*FUNCTIONS, *FILTERS}))
            yield error("unknown-code", subject.where("functions"), f"'{name}' is not a function", hint)


def _used_functions(text: str) -> set[str]:
    try:
        tree = _PARSER.parse(text)
    except TemplateSyntaxError:
        return set()
    called = {node.node.name for node in tree.find_all(nodes.Call) if isinstance(node.node, nodes.Name)}
    return called | {str(node.name) for node in tree.find_all(nodes.Filter)}
