"""Addresses: which ones of the network may be dialled (pure; DESIGN rule 9).

Private addresses and plain HTTP are closed unless the installation opened the origin; a source file cannot.
"""

import ipaddress
from collections.abc import Iterable

from ingest.spec.snapshot import origin_of

# Not public, whatever `is_global` says: IPv4 in disguise, local NAT64, site-local.
_CLOSED = [ipaddress.ip_network(text) for text in ("::/96", "64:ff9b:1::/48", "fec0::/10")]
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def is_public(address: str) -> bool:
    """Say whether the address is one of the public internet; one that wraps an IPv4 address is what it wraps."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address):
        wrapped = ip.ipv4_mapped or ip.sixtofour
        if ip in _NAT64:
            wrapped = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
        if wrapped is not None:
            return is_public(str(wrapped))
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _CLOSED)


def is_open_origin(origin: str, opened: Iterable[str]) -> bool:
    """Say whether the installation opened this origin; `*` as the port opens every port of the host."""
    wanted = origin_of(origin)
    host = wanted.rpartition(":")[0]
    return any(host == entry[:-2] if entry.endswith(":*") else wanted == origin_of(entry) for entry in opened)
