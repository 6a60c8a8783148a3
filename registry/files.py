"""Source files: YAML read strictly, every value with its line and column, `${VAR}` filled from the environment.

Invariant: reading never stops at the first mistake it can get past, and every mistake has a place. YAML 1.2 by
ruamel.yaml (PyYAML reads `no` as false, `012` as 10 and keeps the last of two equal keys without a word).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ingest.errors import NotFound
from registry.problems import Finding, Problem, Where

_TAG = "tag:yaml.org,2002:"
_MOST_NODES = 50_000  # aliases can make a small file a huge tree
_DEEPEST = 32  # and one alias inside itself an endless one
_LARGEST_FILE = 1_000_000
_AT_THE_KEY = {"unknown-key", "duplicate-key"}
_VARIABLE = re.compile(r"\$\{(?P<name>[^}:]*)(?::-(?P<default>[^}]*))?\}")
_VARIABLE_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INTEGER = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)([eE][-+]?[0-9]+)?")


@dataclass(frozen=True, slots=True)
class _Mark:
    line: int  # of the value, from 0
    column: int
    key_line: int
    key_column: int
    shift: int | None  # characters between the mark and the value's first one; None: offsets mean nothing here
    scalar: bool


@dataclass(slots=True)
class SourceFile:
    """One file as written: its text, its plain data, where each value stands and what is wrong so far."""

    name: str
    text: str
    data: Any = None
    problems: list[Problem] = field(default_factory=list)
    _marks: dict[Where, _Mark] = field(default_factory=dict)

    def place(self, finding: Finding) -> Problem:
        """Put a finding at its line: the value meant, or the nearest thing around it that is in the file."""
        where, exact = self._as_written(finding.where), True
        while where not in self._marks and where:
            where, exact = where[:-1], False
        mark = self._marks.get(where)
        if mark is None:
            line, column = 0, 0
        elif mark.scalar and finding.code not in _AT_THE_KEY:
            line, column = mark.line, mark.column
            if finding.offset and mark.shift is not None:
                column += mark.shift + finding.offset
        else:
            line, column = mark.key_line, mark.key_column
        path = ".".join(map(str, where)) if exact else self._nearest_path(self._as_written(finding.where))
        if finding.code == "unknown-key":
            path = path.rpartition(".")[0]  # the key itself is in the message
        lines = self.text.splitlines()
        shown = mark is not None and not finding.sensitive and line < len(lines)
        return Problem(
            file=self.name,
            line=0 if mark is None else line + 1,
            column=0 if mark is None else column + 1,
            severity=finding.severity,
            code=finding.code,
            path=path,
            message=finding.message,
            hint=finding.hint,
            excerpt=lines[line] if shown else "",
        )

    def _as_written(self, where: Where) -> Where:
        """Return the path without the positions a short form never wrote: `id: {path: ...}` is a list of one."""
        written: Where = ()
        for part in where:
            if isinstance(part, str) or (*written, part) in self._marks:
                written = (*written, part)
        return written

    def _nearest_path(self, where: Where) -> str:
        """Return the path down to the first part that is missing; inside a short form down to the short form."""
        known = 0
        while known < len(where) and where[: known + 1] in self._marks:
            known += 1
        inside_short_form = known and self._marks[where[:known]].scalar
        kept = where[:known] if inside_short_form else where
        return ".".join(str(part) for part in kept)


def list_files(paths: Iterable[Path]) -> list[Path]:
    """Return the source files at the paths, folders searched for *.yaml and *.yml, sorted; raise `NotFound`."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(p for p in path.iterdir() if p.suffix in (".yaml", ".yml") and p.is_file())
            if not inside:
                raise NotFound(f"no source files (*.yaml) in {path}/")
            found += inside
        elif path.is_file():
            found.append(path)
        else:
            raise NotFound(f"no such file or folder: {path}")
    return list(dict.fromkeys(found))


def read_file(path: Path, environment: Mapping[str, str]) -> SourceFile:
    """Read one file; what is wrong with it is in `problems`, never raised."""
    try:
        raw = path.read_bytes()
        text = raw.decode("utf-8")
    except OSError as error:
        return _broken(str(path), "", f"cannot be read: {error.strerror}")
    except UnicodeDecodeError as error:
        return _broken(str(path), "", f"is not UTF-8 text: byte {error.start}")
    return read_text(str(path), text, environment)


def read_text(name: str, text: str, environment: Mapping[str, str]) -> SourceFile:
    """Read the text of a source file; see `read_file`."""
    if len(text) > _LARGEST_FILE:
        return _broken(name, text, f"is larger than {_LARGEST_FILE:,} characters")
    file = SourceFile(name, text)
    try:
        root = YAML(typ="rt", pure=True).compose(text)
    except MarkedYAMLError as error:
        file.problems.append(_syntax_problem(file, error))
        return file
    except YAMLError as error:
        return _broken(name, text, f"is not YAML: {str(error).splitlines()[0]}")
    if root is None:
        return _broken(name, text, "is empty")
    _Reader(file, environment).read(root)
    return file


def _broken(name: str, text: str, message: str) -> SourceFile:
    problem = Problem(file=name, line=0, column=0, severity="error", code="unreadable", path="", message=message)
    return SourceFile(name, text, problems=[problem])


def _syntax_problem(file: SourceFile, error: MarkedYAMLError) -> Problem:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line, mark.column) if mark else (0, 0)
    lines = file.text.splitlines() or [""]
    line = min(line, len(lines) - 1)
    excerpt, said = lines[line], error.problem or "is not YAML"
    message, hint = f"not valid YAML: {said}", ""
    inside_braces = "flow" in (error.context or "") or "{" in excerpt[:column]
    path = re.search(r"[\"']?\$[.\[][^\s,}]*", excerpt[: column + 1] + excerpt[column + 1 :].split(",")[0])
    if "'\\t'" in said or "\t" in excerpt[: column + 1]:
        message, hint = "a tab cannot indent YAML", "use spaces"
    elif inside_braces and path and "[" in path[0] and path[0][0] == "$":
        column = path.start()
        message = "brackets in a JSONPath inside {} or [] are read as YAML"
        hint = f'quote this path: "{path[0].rstrip("}")}"'
    elif said.startswith("mapping values are not allowed"):
        hint = "a text with ': ' in it needs quotes; or the indentation is off"
    return Problem(
        file=file.name,
        line=line + 1,
        column=column + 1,
        severity="error",
        code="yaml-syntax",
        path="",
        message=message,
        hint=hint,
        excerpt=excerpt,
    )


class _Reader:
    """Turns the node tree into plain data and marks."""

    def __init__(self, file: SourceFile, environment: Mapping[str, str]) -> None:
        self.file = file
        self.environment = environment
        self.nodes = 0

    def read(self, root: Node) -> None:
        self.file.data = self._value(root, (), root)
        if not isinstance(root, MappingNode):
            self._problem((), "wrong-type", "a source file is a mapping that begins with 'source: name'")

    def _problem(self, where: Where, code: str, message: str, hint: str = "") -> None:
        finding = Finding(code=code, where=where, message=message, hint=hint)
        self.file.problems.append(self.file.place(finding))

    def _value(self, node: Node, where: Where, key: Node) -> Any:
        self.nodes += 1
        if self.nodes > _MOST_NODES or len(where) > _DEEPEST:
            if not any(problem.code == "too-large" for problem in self.file.problems):
                self._problem(where[:1], "too-large", "too many or too deep values: are there aliases inside aliases?")
            return None
        shift = {None: 0, "": 0, '"': 1, "'": 1}.get(getattr(node, "style", None))
        self.file._marks[where] = _Mark(
            line=node.start_mark.line,
            column=node.start_mark.column,
            key_line=key.start_mark.line,
            key_column=key.start_mark.column,
            shift=shift,
            scalar=isinstance(node, ScalarNode),
        )
        if isinstance(node, MappingNode):
            return self._mapping(node, where)
        if isinstance(node, SequenceNode):
            return [self._value(item, (*where, index), item) for index, item in enumerate(node.value)]
        assert isinstance(node, ScalarNode)  # noqa: S101 -- YAML has no fourth kind of node
        return self._scalar(node, where)

    def _mapping(self, node: MappingNode, where: Where) -> dict[str, Any]:
        result: dict[str, Any] = {}
        first_lines: dict[str, int] = {}
        for key, value in node.value:
            if not isinstance(key, ScalarNode):
                self._problem(where, "yaml-syntax", "a key must be a plain word", 'quote templates: "{{ page.size }}"')
                continue
            name = str(key.value)
            inner = (*where, name)
            if key.tag == _TAG + "merge":
                self._value(value, inner, key)
                self._problem(inner, "yaml-syntax", "merge keys (<<) are not supported", "use 'defaults:'")
                continue
            duplicate = name in result
            read = self._value(value, inner, key)
            if duplicate:
                self._problem(
                    inner, "duplicate-key", f"'{name}' is given twice", f"first on line {first_lines[name] + 1}"
                )
                continue
            first_lines[name] = key.start_mark.line
            result[name] = read
        return result

    def _scalar(self, node: ScalarNode, where: Where) -> Any:
        kind, text = str(node.tag).removeprefix(_TAG), str(node.value)
        quoted = node.style in ('"', "'", "|", ">")
        filled = _VARIABLE.sub(lambda match: self._fill(match, where), text)
        if filled != text:
            mark = self.file._marks[where]
            self.file._marks[where] = _Mark(
                mark.line, mark.column, mark.key_line, mark.key_column, shift=None, scalar=True
            )
            return filled if quoted else _resolve(filled)
        match kind:
            case "str" | "timestamp":  # times stay text: the model that wants one knows how to read it
                return text
            case "null":
                return None
            case "bool" | "int" | "float":
                return _resolve(text)
            case _:
                self._problem(where, "yaml-syntax", f"the tag {node.tag} is not supported", "write a plain value")
                return None

    def _fill(self, match: re.Match[str], where: Where) -> str:
        name, default = match["name"], match["default"]
        if not _VARIABLE_NAME.fullmatch(name):
            self._problem(where, "bad-variable", f"'{match[0]}' does not name an environment variable")
            return ""
        value = self.environment.get(name)
        if value is None and default is None:
            self._problem(
                where,
                "variable-missing",
                f"the environment variable {name} is not set",
                f"set it, or write ${{{name}:-default}}",
            )
        return value or default or ""


def _resolve(text: str) -> Any:
    """Give an unquoted scalar its type, as YAML 1.2's core schema would."""
    if text in ("true", "True", "TRUE"):
        return True
    if text in ("false", "False", "FALSE"):
        return False
    if _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
