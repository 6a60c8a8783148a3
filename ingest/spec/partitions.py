"""Partition keys: the values that make a series of its own, and the one text that names them (pure; D9).

Invariant: decode(encode(values)) == values. Values are joined by '/', and read back from the LAST '/': the first may
hold slashes of its own (`BTC/USDT` with `1h` is `BTC/USDT/1h`), the others may not, so no two partitions share a key.
"""

from collections.abc import Mapping, Sequence

_SEPARATOR = "/"


def encode_partition(partition: Mapping[str, str]) -> str:
    """Return the partition's key: its values in the order of its dimensions; '' for no partition.

    Raises ValueError for a value that could not be read back.
    """
    for position, (name, value) in enumerate(partition.items()):
        if not value:
            raise ValueError(f"{name} is empty")
        if position and _SEPARATOR in value:
            raise ValueError(f"{name} {value!r} holds a '/': only the first dimension may")
    return _SEPARATOR.join(partition.values())


def decode_partition(key: str, dimensions: Sequence[str]) -> dict[str, str]:
    """Return the values that a key names, by dimension; raises ValueError if it has not one for each."""
    if not dimensions:
        if key:
            raise ValueError(f"{key!r} names a partition, and there is no dimension")
        return {}
    values = key.rsplit(_SEPARATOR, len(dimensions) - 1)
    if len(values) != len(dimensions) or not all(values):
        raise ValueError(f"{key!r} has not one value for each of {', '.join(dimensions)}")
    return dict(zip(dimensions, values, strict=True))
