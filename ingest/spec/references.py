"""Secret references: `env:NAME` and `file:/path`, parsed anywhere, resolved in executors only (B1)."""

_OURS = ("INGEST_", "PG")


def belongs_to_installation(reference: str) -> bool:
    """Say whether the reference names what the installation itself runs on: never a source's credential."""
    scheme, _, name = reference.partition(":")
    return scheme == "env" and name.upper().startswith(_OURS)
