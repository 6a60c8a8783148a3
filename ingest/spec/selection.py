"""The selection: what decides WHICH records a window returns (DESIGN rule 6).

Invariant: coverage belongs to a selection. A changed search term is another selection and starts empty; a changed
column, page size, rate or retry is the same selection and keeps its coverage.
"""

from ingest.spec.canonical import hash_of
from ingest.spec.snapshot import Snapshot


def selection_hash(snapshot: Snapshot, partition: str = "") -> str:
    """Return the hash of origin, method, request templates with the vars they use, window, items and identity."""
    return hash_of(
        {
            "origin": snapshot.http.origin,
            **snapshot.http.deciding(),
            "vars": snapshot.deciding_vars(),
            "window": snapshot.window.model_dump(include={"filter", "field"}, exclude_defaults=True),
            "items": snapshot.response.items,
            "identity": [part.model_dump(exclude_defaults=True) for part in snapshot.mapping.identity],
            "credential": snapshot.auth.credential_code if snapshot.auth.scope_data else None,
            "partition": partition,
        }
    )
