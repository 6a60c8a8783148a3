"""Fixtures: the pages of a trial as files, without secrets, and the way to read them again in place of the source.

A folder holds `trial.json` (the window and partition asked for) and per page NNN.request.json, NNN.response.json and
NNN.body. An answer is found by its request's hash: a source file that asks for something else finds nothing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from executor.fetch import Tally, judge, retry_after_seconds
from executor.request import Request
from executor.rules import Rules
from executor.secrets import REDACTOR
from executor.transport import Answer, read_links
from executor.trial import Fetch, Span, TriedPage
from ingest.errors import NotFound, OperatorError
from ingest.spec.snapshot import Snapshot

# a session is a secret we never learnt; the lengths are those of bytes that are not kept
_DROPPED = {"set-cookie", "authorization", "content-encoding", "content-length", "transfer-encoding"}


@dataclass(frozen=True, slots=True)
class Recording:
    """What a folder of fixtures holds."""

    span: Span | None
    partition: dict[str, str]
    answers: dict[str, Answer]  # by the request's hash


def record_pages(
    folder: Path, pages: Sequence[TriedPage], *, span: Span | None, partition: Mapping[str, str]
) -> list[Path]:
    """Write the pages that were answered, in place of what the folder held; return the files."""
    answered = [(page.request, page.answer) for page in pages if page.request is not None and page.answer is not None]
    ends = None if span is None else [moment.isoformat() for moment in span]
    texts = {"trial.json": _dump({"format": 1, "window": ends, "partition": dict(partition)})}
    for number, (request, answer) in enumerate(answered, start=1):
        headers = {name: value for name, value in answer.headers.items() if name not in _DROPPED}
        response = {"status": answer.status, "url": answer.url, "headers": headers}
        body = None if request.body is None else request.body.decode("utf-8", "replace")
        texts[f"{number:03d}.request.json"] = _dump(request.digest() | {"body": body})
        texts[f"{number:03d}.response.json"] = _dump(response)
        texts[f"{number:03d}.body"] = answer.body.decode("utf-8", "surrogateescape")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("[0-9][0-9][0-9].*"):
            old.unlink()
        for name, text in texts.items():
            (folder / name).write_bytes(REDACTOR.clean(text).encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise OperatorError(f"cannot write {error.filename or folder}: {error.strerror}") from error
    return [folder / name for name in texts]


def load_recording(folder: Path) -> Recording:
    """Read a folder of fixtures; raises `NotFound` if it holds none, `OperatorError` if it is damaged."""
    if not (folder / "trial.json").exists():
        raise NotFound(f"no fixtures in {folder}/: record some with `ingest try SOURCE.ENDPOINT --record`")
    try:
        trial = _load(folder / "trial.json")
        answers = {}
        for file in sorted(folder.glob("*.request.json")):
            stem = file.name.removesuffix(".request.json")
            answers[str(_load(file)["hash"])] = _answer(folder, stem)
        window = trial["window"]
        span = None if window is None else (datetime.fromisoformat(window[0]), datetime.fromisoformat(window[1]))
        return Recording(span, dict(trial["partition"]), answers)
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        raise OperatorError(f"the fixtures in {folder}/ cannot be read ({error}): record them again") from error


def recorded_fetch(snapshot: Snapshot, recording: Recording) -> Fetch:
    """Return a way to ask the fixtures; answers are judged as the source's own are, but never asked for again."""
    rules = Rules(snapshot.response.rules)

    def fetch(request: Request, tally: Tally) -> Answer:
        answer = recording.answers.get(str(request.digest()["hash"]))
        if answer is None:
            raise NotFound("this request was not recorded: the file asks for something else now, so record again")
        tally.attempts += 1
        tally.statuses.append(answer.status)
        tally.verdict = rules.find(answer) if rules else None
        if tally.verdict is None:
            judge(answer, snapshot.retry, retry_after_seconds(answer.headers))
        else:
            tally.verdicts.append(tally.verdict)
            tally.verdict.raise_for(answer, REDACTOR.sample(answer.body))
        return answer

    return fetch


def _answer(folder: Path, stem: str) -> Answer:
    response, body = _load(folder / f"{stem}.response.json"), (folder / f"{stem}.body").read_bytes()
    headers = {str(name): str(value) for name, value in response["headers"].items()}
    links = read_links(headers.get("link", ""))
    return Answer(int(response["status"]), headers, body, links, len(body), 0.0, 0.0, str(response["url"]))


def _dump(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
