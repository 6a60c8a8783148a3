"""JSON text for jsonb parameters."""

import json
from typing import Any


def dump(value: Any) -> str:
    """Return the value as JSON text; times and the like as their `str`."""
    return json.dumps(value, default=str, ensure_ascii=False)
