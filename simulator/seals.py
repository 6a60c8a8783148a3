"""Seals: tokens that only the API that wrote them can read.

A token carries its place itself, so nothing is remembered and it survives a restart with the same seed; the
seal ties it to a context (the query it was given for) without which it does not open.
"""

import json
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from hashlib import blake2b
from typing import Any

from simulator.dataset import Mark, encode_json
from simulator.instants import BEGINNING

_SEAL_BYTES = 8


class Seal:
    def __init__(self, key: str, *, magic: bytes = b"") -> None:
        """Seal with `key`; `magic` begins every token."""
        self._key = key.encode()
        self._magic = magic

    def close(self, content: bytes, context: str = "") -> str:
        return b64encode(self._magic + self._digest(content, context) + content).decode()

    def open(self, token: str, context: str = "") -> bytes:
        """Return what was sealed; raises ValueError if the token is not one of ours for this context."""
        try:
            sealed = b64decode(token, validate=True)
        except (NotBase64, ValueError):
            sealed = b""
        content = sealed[len(self._magic) + _SEAL_BYTES :]
        if not content or sealed != self._magic + self._digest(content, context) + content:
            raise ValueError("not a token of ours")
        return content

    def close_mark(self, mark: Mark | None, context: str = "") -> str:
        at, id_ = mark or Mark(BEGINNING, "")
        return self.close(at.to_bytes(8, "big", signed=True) + id_.encode(), context)

    def open_mark(self, token: str, context: str = "") -> Mark:
        place = self.open(token, context)
        return Mark(int.from_bytes(place[:8], "big", signed=True), place[8:].decode())

    def close_json(self, value: object) -> str:
        return self.close(encode_json(value).encode())

    def open_json(self, token: str) -> Any:
        return json.loads(self.open(token))

    def _digest(self, content: bytes, context: str) -> bytes:
        return blake2b(context.encode() + b"\0" + content, key=self._key, digest_size=_SEAL_BYTES).digest()
