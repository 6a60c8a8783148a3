"""Inflating: whole or not at all, and a piece at a time."""

import gzip
import zlib

import pytest

from executor.inflate import inflate
from ingest.errors import Retryable, Unreadable

BODY = b"body" * 50_000


def chunked(data: bytes, size: int) -> list[bytes]:
    return [data[start : start + size] for start in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 20])
@pytest.mark.parametrize(
    ("coded", "encoding"),
    [
        (gzip.compress(BODY), "gzip"),
        (gzip.compress(BODY[:10]) + gzip.compress(BODY[10:]) + b"\0" * 512, " X-GZIP "),
        (zlib.compress(BODY), "deflate"),
        (zlib.compress(BODY)[2:-4], "deflate"),
        (BODY, ""),
        (BODY, "identity"),
    ],
    ids=["gzip", "members and padding", "zlib", "raw deflate", "none", "identity"],
)
def test_every_compression_we_ask_for_is_read_however_it_arrives(coded: bytes, encoding: str, size: int) -> None:
    assert b"".join(inflate(chunked(coded, size), encoding)) == BODY


def test_a_bomb_comes_in_small_pieces() -> None:
    bomb = gzip.compress(bytes(16 << 20))
    pieces = inflate([bomb], "gzip")
    taken = [len(next(pieces)) for _ in range(20)]
    assert max(taken) <= 1 << 16


@pytest.mark.parametrize("cut", [1, 8, 20, 200])
def test_a_body_that_ends_in_the_middle_is_not_whole(cut: int) -> None:
    with pytest.raises(Retryable, match="ends in the middle"):
        list(inflate([gzip.compress(BODY)[:-cut]], "gzip"))


def test_a_body_that_is_not_what_it_calls_itself_is_asked_for_again() -> None:
    with pytest.raises(Retryable, match="broken"):
        list(inflate([b"plain text"], "gzip"))


def test_a_changed_byte_is_found() -> None:
    coded = bytearray(gzip.compress(BODY))
    coded[-6] ^= 1  # in the checksum
    with pytest.raises(Retryable, match="broken"):
        list(inflate([bytes(coded)], "gzip"))


@pytest.mark.parametrize("encoding", ["br", "zstd", "gzip, gzip", "compress", "?"])
def test_a_compression_nobody_asked_for_is_unreadable(encoding: str) -> None:
    with pytest.raises(Unreadable, match="not asked for"):
        list(inflate([b"??"], encoding))


def test_an_empty_body_is_empty_by_any_name() -> None:
    assert list(inflate([], "gzip")) == []
