"""Addresses: what is not of the public internet is known by every disguise it has."""

import pytest

from executor.addresses import is_open_origin, is_public


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.1.2.3", "224.0.0.1",
        "255.255.255.255", "192.0.2.1", "198.18.0.1", "240.0.0.1", "::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1",
        "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1",
        "2002:a9fe:a9fe::", "2002:7f00:1::1", "2001::1", "2001:db8::1", "fec0::1",
    ],
)  # fmt: skip
def test_an_address_that_is_not_of_the_public_internet_is_known(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_a_public_address_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    ("origin", "opened", "is_open"),
    [
        ("http://127.0.0.1:8080", ("http://127.0.0.1:*",), True),
        ("http://127.0.0.1:8080", ("http://127.0.0.1:8080",), True),
        ("http://127.0.0.1:8080", ("http://127.0.0.1:80",), False),
        ("https://127.0.0.1:8080", ("http://127.0.0.1:*",), False),
        ("http://127.0.0.10:80", ("http://127.0.0.1:*",), False),
        ("http://[::1]:9", ("http://[::1]:*",), True),
        ("http://a.test:80", ("http://a.test",), True),
        ("http://a.test:80", (), False),
    ],
)
def test_an_origin_is_open_if_the_installation_says_so(origin: str, opened: tuple[str, ...], is_open: bool) -> None:
    assert is_open_origin(origin, opened) is is_open
