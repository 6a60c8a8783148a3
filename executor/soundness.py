"""Soundness: what the pages of a trial prove of a source file, and what they do not show (pure).

Each check says ok, fails, or was not seen; one that was not seen is no failure, only something nobody knows yet.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from executor.trial import Span, TriedPage
from ingest.spec.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at."""

    name: str
    verdict: Literal["ok", "fail", "unseen"]
    text: str


def check_pages(snapshot: Snapshot, pages: Sequence[TriedPage], span: Span | None) -> list[Check]:
    """Return every check of a trial, in the order a page meets them."""
    return [
        _check_answers(pages),
        _check_items(pages),
        _check_ids(snapshot, pages),
        *_check_times(snapshot, pages, span),
        _check_types(snapshot, pages),
        _check_advance(pages),
        _check_end(pages),
    ]


def _verdict(name: str, wrong: str, right: str) -> Check:
    return Check(name, "fail", wrong) if wrong else Check(name, "ok", right)


def _check_answers(pages: Sequence[TriedPage]) -> Check:
    failed = next((page for page in pages if page.error is not None), None)
    wrong = f"page {failed.number}: {failed.error}" if failed else ""
    return _verdict("answers are readable", wrong, f"{len(pages)} of {len(pages)}")


def _check_items(pages: Sequence[TriedPage]) -> Check:
    count = sum(page.decoded.seen.items for page in pages if page.decoded is not None)
    return _verdict(
        "records are found", "" if count else "no page held a record: wrong items path or window?", f"{count}"
    )


def _rejects(pages: Sequence[TriedPage]) -> Iterator[tuple[int, str, str]]:
    for page in pages:
        for reject in page.mapped.rejects if page.mapped else ():
            yield page.number, reject.path or "", f"page {page.number} record {reject.item_no + 1}: {reject.reason}"


def _check_ids(snapshot: Snapshot, pages: Sequence[TriedPage]) -> Check:
    paths = {part.path for part in snapshot.mapping.identity}
    missing = [text for _, path, text in _rejects(pages) if path in paths]
    if missing:
        return Check("ids are there and differ", "fail", missing[0])
    seen: dict[object, int] = {}
    twice = sum(page.mapped.duplicate for page in pages if page.mapped is not None)
    if twice:
        return Check("ids are there and differ", "fail", f"{twice} records share an id with another of their page")
    for page in pages:
        for record in page.mapped.records if page.mapped else ():
            first = seen.setdefault(record.key, page.number)
            if first != page.number:
                text = f"{record.key[0]!r} stands on page {first} and on page {page.number}"
                return Check("ids are there and differ", "fail", text)
    return Check("ids are there and differ", "ok" if seen else "unseen", f"{len(seen)} ids")


def _check_times(snapshot: Snapshot, pages: Sequence[TriedPage], span: Span | None) -> Iterator[Check]:
    moment = snapshot.mapping.updated_at
    if moment is None:
        return
    unread = [text for _, path, text in _rejects(pages) if path == moment.path]
    times = [r.updated_at for page in pages if page.mapped for r in page.mapped.records if r.updated_at is not None]
    if unread or times:
        yield _verdict("update times are readable", unread[0] if unread else "", f"{len(times)} times")
    else:
        yield Check("update times are readable", "unseen", "no record")
    if span is None or snapshot.window.filter != "server":
        return
    outside = [time for time in times if not span[0] <= time < span[1]]
    if not times:
        yield Check("the window is respected", "unseen", "no record")
    elif outside:
        # the window may be over another time than updated_at, so one outside proves nothing; all outside do
        verdict: Literal["fail", "unseen"] = "fail" if len(outside) == len(times) else "unseen"
        text = f"{len(outside)} of {len(times)} update times lie outside, such as {outside[0].isoformat()}"
        yield Check("the window is respected", verdict, text)
    else:
        yield Check("the window is respected", "ok", f"{len(times)} of {len(times)} update times inside")


def _check_types(snapshot: Snapshot, pages: Sequence[TriedPage]) -> Check:
    named = {part.path for part in snapshot.mapping.identity}
    named |= {snapshot.mapping.updated_at.path} if snapshot.mapping.updated_at else set()
    wrong = [f"{path} of {text}" for _, path, text in _rejects(pages) if path not in named]
    return _verdict("columns fit their types", wrong[0] if wrong else "", f"{len(snapshot.mapping.columns)} columns")


def _check_advance(pages: Sequence[TriedPage]) -> Check:
    name, prints = "paging advances", [p.decoded.seen.fingerprint for p in pages if p.decoded and p.decoded.seen.items]
    if len(prints) < 2:
        return Check(name, "unseen", "one page with records: try more with --pages, or a wider window")
    wrong = "two pages hold the same records" if len(set(prints)) < len(prints) else ""
    return _verdict(name, wrong, f"{len(prints)} different pages")


def _check_end(pages: Sequence[TriedPage]) -> Check:
    name, step = "the walk ends", pages[-1].step if pages else None
    if step is None or step.following is not None:
        return Check(name, "unseen", "the last page was not reached: try more with --pages, or a smaller window")
    return _verdict(name, "" if step.declared else f"not covered: {step.reason}", f"by {step.reason}")
