"""Compile what the registry holds now: what the planner, `registry show` and the console ask for."""

from collections.abc import Collection, Mapping
from typing import Any

from pydantic import ValidationError

from ingest.db import Connection
from ingest.errors import SpecInvalid
from registry.compile import Compiled, compile_rows
from registry.document import Overrides
from registry.expand import Sections, read_overrides
from registry.shape import describe_errors
from registry.store.dictionary import load_platform
from registry.store.rows import list_endpoints, read_endpoint_rows

__all__ = ["compile_endpoint", "list_endpoints"]


def compile_endpoint(
    conn: Connection,
    provenance_code: str,
    endpoint_name: str,
    *,
    overrides: Mapping[str, Any] | None = None,
    open_origins: Collection[str] | None = None,
) -> Compiled:
    """Compile a declared endpoint in one statement, two when the platform's minute is over (A8).

    `overrides` is a trigger's, written as in a file: {"pagination": {"size": 50}, "vars": {"term": "x"}}. Raises
    `SpecInvalid` with every problem, also when the endpoint is not declared any more. `open_origins` None leaves the
    origin to the executor, which asks before every request anyway.
    """
    platform = load_platform(conn)
    rows = read_endpoint_rows(conn, provenance_code, endpoint_name)
    if not rows["reg_prov_endpoint_def"] or not rows["reg_provenance"]:
        raise SpecInvalid([f"{provenance_code}.{endpoint_name} is not declared: apply a file that declares it"])
    sections: Sections | None = None
    if overrides:
        try:
            sections = read_overrides(Overrides.model_validate(dict(overrides)), platform.dictionary)
        except ValidationError as error:
            findings = describe_errors(error, Overrides, ("overrides",))
            raise SpecInvalid([str(finding) for finding in findings]) from error
    return compile_rows(rows, platform, endpoint_name, overrides=sections, open_origins=open_origins)
