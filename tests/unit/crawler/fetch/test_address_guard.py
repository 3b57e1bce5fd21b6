"""The address guard: which addresses are public, and no socket to any other address."""

from __future__ import annotations

import asyncio
import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.errors import BadCrawlSettings, PrivateAddress
from crawler.fetch.address_guard import FixedResolver, guarded_sockets, is_guard_error, is_public

NOT_PUBLIC = [
    *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1"),
    *("255.255.255.255", "240.0.0.1", "198.18.0.1", "192.0.2.1", "198.51.100.1", "203.0.113.1", "192.88.99.1"),
    *("192.0.0.1", "192.0.0.8", "192.0.0.171"),
    *("::1", "::", "fe80::1", "fe80::1%eth0", "febf::1", "fc00::1", "fd12::1", "fec0::1", "ff02::1", "ff0e::1"),
    *("100::1", "100:0:0:1::1", "2001:db8::1", "2001:2::1", "2001:20::1", "2001:1ff::1", "2001:0:7f00:1::"),
    *("3fff::1", "3fff:fff::1", "4000::1", "5f00::1", "64:ff9b:1::1"),
    # IPv4 in IPv6: mapped, compatible, NAT64, 6to4
    *("::ffff:127.0.0.1", "::ffff:a9fe:a9fe", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::a00:1", "::127.0.0.1"),
    *("64:ff9b::a00:1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe"),
    *("2002:a00:1::", "2002:c0a8:101::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "2002:c058:6301::1"),
    *("not an address", ""),
]


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_private_addresses_in_every_wrapping(address: str) -> None:
    """Private, loopback, link-local, multicast, reserved and unparsable addresses are not public, however wrapped."""
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "93.184.216.34", "2606:4700::1111", "2001:4860:4860::8888", "::ffff:8.8.8.8", "64:ff9b::808:808"],
)
def test_public_addresses(address: str) -> None:
    """Addresses of the public Internet pass."""
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_wrapping_does_not_change_the_verdict(address: object) -> None:
    """An IPv4 address is judged the same mapped into IPv6 or with a NAT64 prefix."""
    assert is_public(f"::ffff:{address}") == is_public(str(address)) == is_public(f"64:ff9b::{address}")


def info(address: str) -> tuple[int, int, int, str, tuple[str, int]]:
    """The argument of a socket factory of aiohttp."""
    return (socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, 80))


def test_no_socket_for_a_private_address() -> None:
    """The factory raises for a private address and makes a socket for a public one. Without the guard it makes both."""
    with pytest.raises(PrivateAddress) as raised:
        guarded_sockets()(info("127.0.0.1"))
    assert is_guard_error(raised.value) and not is_guard_error(OSError("refused")) and not is_guard_error(None)
    guarded_sockets()(info("8.8.8.8")).close()
    guarded_sockets(None)(info("127.0.0.1")).close()


def test_a_table_of_addresses_is_all_there_is() -> None:
    """With a table of addresses, only those are reached; all others, private or public, are refused."""
    make = guarded_sockets(frozenset({"127.0.0.1"}))
    make(info("127.0.0.1")).close()
    for other in ("127.0.0.2", "8.8.8.8"):
        with pytest.raises(PrivateAddress):
            make(info(other))


def test_fixed_resolver() -> None:
    """Hosts are looked up in the table, and `*` matches the rest. Without `*`, an unknown host has no address."""
    found = asyncio.run(FixedResolver({"a.example": "127.0.0.1:81", "*": "[::1]:82"}).resolve("a.example", 443))
    assert (found[0]["host"], found[0]["port"]) == ("127.0.0.1", 81)
    found = asyncio.run(FixedResolver({"*": "[::1]:82"}).resolve("b.example", 443))
    assert (found[0]["host"], found[0]["port"]) == ("::1", 82)
    with pytest.raises(OSError, match=r"b\.example"):
        asyncio.run(FixedResolver({"a.example": "127.0.0.1:81"}).resolve("b.example", 80))


@pytest.mark.parametrize("target", ["localhost:80", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:x", ""])
def test_fixed_resolver_names_a_bad_target(target: str) -> None:
    """A target without an IP address and a port is refused, and the message names the setting."""
    with pytest.raises(BadCrawlSettings, match="resolve_to"):
        FixedResolver({"a.example": target})
