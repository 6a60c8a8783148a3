"""Inflating: a compressed body in small pieces, so that a bomb never grows past the cap (E10).

httpx inflates all it has read at once: 64 KB of a bomb become 64 MB. It also takes a gzip body that ends in the middle
for a whole one.
"""

import zlib
from collections.abc import Iterable, Iterator

from ingest.errors import Retryable, Unreadable

ACCEPTED = "gzip, deflate"
_PIECE = 1 << 16
_BITS = {"gzip": zlib.MAX_WBITS | 16, "x-gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}


def inflate(chunks: Iterable[bytes], encoding: str) -> Iterator[bytes]:
    """Yield the body in pieces of 64 KB at the most.

    Raises `Unreadable` for a compression nobody asked for, `Retryable` for one that is broken or ends early.
    """
    name = encoding.strip().lower()
    if name in ("", "identity"):
        yield from chunks
        return
    if name not in _BITS:
        raise Unreadable(f"the body is compressed as {name}, which was not asked for")
    try:
        yield from _pieces(chunks, name)
    except zlib.error as error:
        raise Retryable(f"the body's compression is broken: {error}") from error


def _pieces(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    inflater, ended = None, False
    for chunk in chunks:
        rest = chunk.lstrip(b"\0") if ended else chunk
        while rest:
            inflater = inflater or _inflater(name, rest)
            piece = inflater.decompress(rest, _PIECE)
            while len(piece) == _PIECE:  # a full piece: there may be more behind it, with input left or not
                yield piece
                piece = inflater.decompress(inflater.unconsumed_tail, _PIECE)
            yield piece
            rest, ended = b"", inflater.eof
            if ended:  # gzip may have several members, and padding behind them
                rest, inflater = inflater.unused_data.lstrip(b"\0"), None
    if inflater is not None:
        raise Retryable("the compressed body ends in the middle")


def _inflater(name: str, beginning: bytes) -> "zlib._Decompress":
    raw = name == "deflate" and beginning[0] & 0x0F != 8  # some servers leave out deflate's own header
    return zlib.decompressobj(-zlib.MAX_WBITS if raw else _BITS[name])
