"""Stored Spec Snapshots: content-addressed, written once, never changed (DESIGN rule 5)."""

from sqlalchemy import text

from ingest.db import Connection
from ingest.errors import BrokenInvariant
from ingest.spec.canonical import canonical_json
from ingest.spec.selection import selection_hash
from ingest.spec.snapshot import Snapshot

_SAVE = text("""
    INSERT INTO ing_spec (spec_fingerprint, provenance_code, endpoint_name, expr_proto_hash, selection_hash, snapshot)
    VALUES (:fingerprint, :source, :endpoint, :proto, :selection, CAST(:snapshot AS jsonb))
    ON CONFLICT (spec_fingerprint) DO NOTHING
""")

_GET = text("SELECT snapshot FROM ing_spec WHERE spec_fingerprint = :fingerprint")


def save_spec(conn: Connection, snapshot: Snapshot) -> str:
    """Store the snapshot if it is new; return its fingerprint."""
    fingerprint = snapshot.spec_fingerprint
    conn.execute(
        _SAVE,
        {
            "fingerprint": fingerprint,
            "source": snapshot.provenance_code,
            "endpoint": snapshot.endpoint_name,
            "proto": snapshot.expr_proto_hash,
            "selection": selection_hash(snapshot),
            "snapshot": canonical_json(snapshot.as_data()).decode(),
        },
    )
    return fingerprint


def get_spec(conn: Connection, fingerprint: str) -> Snapshot:
    """Load a snapshot and prove that it is what its fingerprint says."""
    stored = conn.execute(_GET, {"fingerprint": fingerprint}).scalar_one_or_none()
    if stored is None:
        raise BrokenInvariant(f"ing_spec has no {fingerprint}")
    snapshot = Snapshot.model_validate(stored)
    if snapshot.spec_fingerprint != fingerprint:
        raise BrokenInvariant(f"the snapshot stored as {fingerprint} hashes to {snapshot.spec_fingerprint}")
    return snapshot
