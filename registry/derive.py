"""What follows from the merged values: codes for words, a page size, stop rules, a rate (B3, B4, C8).

Pure. Invariant: a declared value is never changed; what is derived says so in its origin.
"""

from dataclasses import replace
from typing import Any

from registry.dictionary import Dictionary
from registry.fields import FIELDS
from registry.merge import Merged, Value

_SIZE_SHARE = 0.8  # B3: the vendor's largest page is where servers time out
_STOPS = {"NONE": "single", "OFFSET": "short_page", "PAGE": "short_page", "TOKEN": "no_next", "URL": "no_next"}


def derive(merged: Merged, dictionary: Dictionary) -> Merged:
    """Return the merged values with words resolved and what nobody declared filled in."""
    derived = {section: dict(values) for section, values in merged.items()}
    for field in FIELDS:
        value = derived.get(field.section, {}).get(field.column)
        if field.dictionary and value is not None:
            resolved = _resolve(dictionary, field.dictionary, value.value)
            derived[field.section][field.column] = replace(value, value=resolved)
    _derive_pages(derived.setdefault("pagination", {}))
    _derive_rate(derived.setdefault("rate", {}))
    return derived


def _resolve(dictionary: Dictionary, kind: str, value: Any) -> Any:
    if isinstance(value, list):
        return [_resolve(dictionary, kind, item) for item in value]
    return dictionary.find_code(kind, value) or value if isinstance(value, str) else value


def _derive_pages(pages: dict[str, Value]) -> None:
    kind = pages["pagination_type_code"].value if "pagination_type_code" in pages else "NONE"
    most = pages.get("max_page_size")
    if kind != "NONE" and "page_size" not in pages and most is not None and isinstance(most.value, int):
        size = max(1, int(most.value * _SIZE_SHARE))
        pages["page_size"] = Value("page_size", size, "derived: 80 % of max_size", None)
    if "stop_rules" not in pages:
        rule = "has_more_false" if "has_more_path" in pages else _STOPS.get(kind)
        rules = [rule] if rule else []
        pages["stop_rules"] = Value("stop_rules", rules, f"derived: kind {str(kind).lower()}", None)


def _derive_rate(rate: dict[str, Value]) -> None:
    """Windows alone say how fast: the platform's 1/s would throttle them."""
    windows, steady = rate.get("windows"), rate.get("rate_per_s")
    if windows is not None and windows.value and (steady is None or steady.prefix is None):
        rate["rate_per_s"] = Value("rate_per_s", None, "derived: windows are declared", None)
