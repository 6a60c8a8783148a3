"""Canonical JSON and hashes: equal data, equal text, equal hash, on every machine and in every year.

`h1:` names this canonical form (msgspec, keys sorted, UTC times with six decimals and Z); a later form gets h2.
rfc8785 was measured 30x slower and refuses integers above 2^53.
"""

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

_PREFIX = "h1:"
SHORT = len(_PREFIX) + 16  # what a dataset row keeps: 64 bits tell any two mappings of one endpoint apart


def format_instant(moment: datetime) -> str:
    """Return the moment as hashed text: UTC, six decimals, Z."""
    if moment.tzinfo is None:
        raise ValueError("a time without a zone cannot be hashed")
    if moment.tzinfo is not UTC:
        moment = moment.astimezone(UTC)
    # strftime would write the year 1 (how .NET says "never") as `1`; without a zone isoformat is 5x quicker
    return moment.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


_encode_times = msgspec.json.Encoder().encode
_decode_texts = msgspec.json.Decoder(list[str]).decode


def format_instants(moments: Sequence[datetime]) -> list[str]:
    """Return every moment as `format_instant` does, in one go: 0.1 us each against 2.5 (measured)."""
    texts = _decode_texts(_encode_times([m if m.tzinfo is UTC else m.astimezone(UTC) for m in moments]))
    # msgspec writes the decimals only where there are any
    return [text if len(text) == 27 else text[:19] + ".000000Z" for text in texts]


def _encode_other(value: Any) -> Any:
    if isinstance(value, datetime):
        return format_instant(value)
    raise TypeError(f"{type(value).__name__} has no canonical form")


def _plain(value: Any) -> Any:
    """Replace times by their text; msgspec would write them in its own form."""
    if isinstance(value, datetime):
        return format_instant(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def canonical_json(value: Any) -> bytes:
    """Return the canonical text of plain data (dicts, lists, strings, numbers, booleans, None, aware times)."""
    return msgspec.json.encode(_plain(value), order="sorted", enc_hook=_encode_other)


def hash_text(text: bytes) -> str:
    """Return the tagged SHA-256 of bytes."""
    return _PREFIX + hashlib.sha256(text).hexdigest()


def hash_of(value: Any) -> str:
    """Return the tagged SHA-256 of the value's canonical text."""
    return hash_text(canonical_json(value))


def hash_of_json(value: Any) -> str:
    """Return `hash_of` for what a JSON decoder returned: no times in it, so no walk through it in Python."""
    return hash_text(msgspec.json.encode(value, order="sorted"))
