"""Places: where the benchmark's files are, and the environment its processes run in."""

import os
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "results"
README = HERE / "README.md"
DLT_PYTHON = HERE / ".venv-dlt" / "bin" / "python"


def child_environment(**more: str) -> dict[str, str]:
    """Return our environment without INGEST_* of the user's, importing this very checkout."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("INGEST_", "PG"))}
    return kept | {"PYTHONPATH": str(ROOT)} | more
