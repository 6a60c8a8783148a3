"""Names: what people type for a stream or a run, found or refused with what was probably meant."""

from typing import TYPE_CHECKING

from ingest.cli.texts import did_you_mean
from ingest.errors import NotFound

if TYPE_CHECKING:
    from ingest.db import Connection
    from ingest.store.views import Endpoint
    from ingest.store.views_runs import RunView


def find_scope(conn: "Connection", written: str | None) -> tuple[str | None, str | None]:
    """Return (source, endpoint) of `SOURCE`, `SOURCE.ENDPOINT` or nothing; raises `NotFound` if there is none."""
    if written is None:
        return None, None
    known = _list_known(conn)
    source, dot, endpoint = written.partition(".")
    sources = {found.source for found in known}
    if source not in sources:
        candidates = {found.name for found in known} if dot else sources
        raise NotFound(f"no source '{source}'{did_you_mean(written if dot else source, candidates)}")
    if not dot:
        return source, None
    endpoints = {found.endpoint for found in known if found.source == source}
    if endpoint not in endpoints:
        raise NotFound(f"source '{source}' has no endpoint '{endpoint}'{did_you_mean(endpoint, endpoints)}")
    return source, endpoint


def get_endpoint(conn: "Connection", written: str) -> "Endpoint":
    """Return the one endpoint meant; a source with a single endpoint may be named alone."""
    source, endpoint = find_scope(conn, written)
    meant = [found for found in _list_known(conn) if found.source == source and endpoint in (None, found.endpoint)]
    if len(meant) > 1:
        raise NotFound(f"'{source}' has {len(meant)} endpoints, say which: {', '.join(found.name for found in meant)}")
    return meant[0]


def get_run(conn: "Connection", written: str) -> "RunView":
    """Return the run meant by its id, `last`, `last:SOURCE` or `last:SOURCE.ENDPOINT`."""
    from ingest.store.views_runs import find_run, list_runs

    word, colon, scope = written.partition(":")
    if word == "last":
        source, endpoint = find_scope(conn, scope if colon else None)
        found = list_runs(conn, source=source, endpoint=endpoint, limit=1)
        if not found:
            raise NotFound(f"nothing has run yet{f' for {scope}' if scope else ''}: see `ingest status`")
        return found[0]
    if not written.isascii() or not written.isdigit() or len(written) > 18:
        raise NotFound(f"'{written}' is not a run: give its number, `last` or `last:SOURCE`")
    run = find_run(conn, int(written))
    if run is None:
        raise NotFound(f"no run {written}: see `ingest runs list`")
    return run


def _list_known(conn: "Connection") -> "list[Endpoint]":
    from ingest.store.views import list_endpoints

    known = list_endpoints(conn)
    if not known:
        raise NotFound("no source is registered yet: write one in sources/ and run `ingest registry apply sources/`")
    return known
