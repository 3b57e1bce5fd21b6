"""The DNS cache, against a DNS server on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
import struct
from collections.abc import Coroutine, Mapping
from typing import Any, TypeVar

import pytest

from crawler.errors import BadCrawlSettings, UnresolvedHost
from crawler.fetch.dns_cache import FAILURE_S, HOSTS, DnsCache
from crawler.settings import CrawlSettings
from tests.support.web.crawl_driver import crawl_settings
from tests.support.web.loopback_dns import SERVFAIL, A, LoopbackDns, Spoil, Zone

_ADDRESS = ("192.0.2.9",)
_FLAGS = 0x8180
_TRUNCATED = 0x8380
_FORMERR, _SERVFAIL, _NOTIMP, _REFUSED = 1, 2, 4, 5


def _question(answer: bytes) -> bytes:
    return answer[12 : answer.index(b"\0", 12) + 5]


def _head(answer: bytes, flags: int = _FLAGS, questions: int = 1, answers: int = 0) -> bytes:
    return answer[:2] + struct.pack("!HHHHH", flags, questions, answers, 0, 0)


def truncated(answer: bytes) -> bytes:
    """An answer that asks for a retry over TCP."""
    return _head(answer, _TRUNCATED) + _question(answer)


def _cut(answer: bytes) -> bytes:
    """An answer that ends in the middle of a record."""
    return _head(answer, answers=1) + _question(answer) + b"\xc0\x0c\x00\x01\x00\x01"


def _rdata(answer: bytes) -> bytes:
    """An address record whose length is beyond the end of the packet."""
    return (
        _head(answer, answers=1) + _question(answer) + b"\xc0\x0c" + struct.pack("!HHIH", A, 1, 60, 4000) + b"\xff" * 9
    )


def _loop(answer: bytes) -> bytes:
    """A record whose owner is a compression pointer to itself."""
    at = 12 + len(_question(answer))
    return _head(answer, answers=1) + _question(answer) + struct.pack("!HHHIH", 0xC000 | at, A, 1, 60, 4) + b"\1\1\1\1"


def _other_id(answer: bytes) -> bytes:
    return bytes((answer[0] ^ 0xFF, answer[1] ^ 0xFF)) + answer[2:]


def _other_question(answer: bytes) -> bytes:
    return _head(answer) + b"\x05other\x04test\0" + struct.pack("!HH", A, 1)


def _promised(answer: bytes) -> bytes:
    """A header that announces a thousand records, without any of them."""
    return _head(answer, answers=1000) + _question(answer)


def _huge(answer: bytes) -> bytes:
    """As many bytes of records as fit in a datagram; the header counts none."""
    return _head(answer) + _question(answer) + b"\xff" * 60_000


def _spoilt(udp: Spoil, tcp: Spoil | None = None) -> Zone:
    return Zone(_ADDRESS, udp=udp, tcp=tcp)


FAULTS: Mapping[str, Zone] = {
    "silent": Zone(silent=True),
    "servfail": Zone(rcode=_SERVFAIL),
    "refused": Zone(rcode=_REFUSED),
    "formerr": Zone(rcode=_FORMERR),
    "notimp": Zone(rcode=_NOTIMP),
    "unknown rcode": Zone(rcode=15),
    "no answers": Zone(),
    "alias to itself": Zone(cname="bad.test"),
    "short header": _spoilt(lambda answer: answer[:7]),
    "header only": _spoilt(lambda answer: _head(answer, questions=0)),
    "header without its question": _spoilt(lambda answer: _head(answer)),
    "one byte": _spoilt(lambda answer: b"\0"),
    "noise": _spoilt(lambda answer: answer[:2] + b"\xa5" * 60),
    "a question": _spoilt(lambda answer: _head(answer, 0x0100) + _question(answer)),
    "cut": _spoilt(_cut),
    "bad rdata": _spoilt(_rdata),
    "compression loop": _spoilt(_loop),
    "other id": _spoilt(_other_id),
    "other question": _spoilt(_other_question),
    "promises": _spoilt(_promised),
    "huge": _spoilt(_huge),
    "truncated, no tcp": _spoilt(truncated),
    "truncated, tcp hangs": _spoilt(truncated, lambda _: None),
    "truncated, tcp closes": _spoilt(truncated, lambda _: b""),
    "truncated, tcp noise": _spoilt(truncated, lambda _: b"\0\x40" + b"\xa5" * 64),
    "truncated, tcp cut": _spoilt(truncated, lambda sent: sent[:-3]),
    "truncated, tcp truncated": _spoilt(truncated, lambda sent: sent[:2] + truncated(sent[2:])),
}


pytestmark = pytest.mark.slow
T = TypeVar("T")


def settings(*nameservers: str, **changes: Any) -> CrawlSettings:
    return crawl_settings(nameservers=list(nameservers), **changes)


class Cache:
    """A cache over nameservers, on a clock that only the test moves."""

    def __init__(self, *servers: LoopbackDns, hosts: int = HOSTS, **changes: Any) -> None:
        self.now = 1000.0
        nameservers = (server.nameserver for server in servers)
        self.cache = DnsCache(settings(*nameservers, **changes), lambda: self.now, hosts)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Cache:
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.cache.close())
        self._runner.close()

    def run(self, steps: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(steps)

    def addresses(self, host: str) -> tuple[str, ...]:
        return self.run(self.cache.addresses(host))

    def reason(self, host: str) -> str:
        """Why a host has no addresses."""
        with pytest.raises(UnresolvedHost) as raised:
            self.addresses(host)
        assert host in str(raised.value) and isinstance(raised.value, OSError)
        return raised.value.reason


def test_both_families_are_asked_for(dns: LoopbackDns) -> None:
    """A host's IPv4 and IPv6 addresses are found together, each with the port and its family."""
    dns.put("a.test", "192.0.2.1", "192.0.2.2", "2001:db8::1")
    with Cache(dns) as cache:
        found = cache.addresses("a.test")
        assert sorted(found) == ["192.0.2.1", "192.0.2.2", "2001:db8::1"]
        results = cache.run(cache.cache.resolve("a.test", 443))
    assert {(r["host"], r["port"]) for r in results} == {(address, 443) for address in found}
    assert {r["family"] for r in results if ":" in r["host"]} == {socket.AF_INET6}
    assert dns.count("a.test") == 2  # A and AAAA, once


@pytest.mark.parametrize(("ttl", "kept_s"), [(0, 60), (1, 60), (300, 300), (86_400, 3600), (2**31 - 1, 3600)])
def test_the_time_to_live_is_kept_within_bounds(dns: LoopbackDns, ttl: int, kept_s: int) -> None:
    """An answer is cached for its time to live, within a minimum and a maximum.

    Then the nameserver is asked again, even if c-ares would keep the old answer for longer.
    """
    with Cache(dns) as cache:
        for number in range(1, 4):
            dns.put("a.test", f"192.0.2.{number}", ttl=ttl)
            assert cache.addresses("a.test") == (f"192.0.2.{number}",)
            cache.now += kept_s - 1
            assert cache.addresses("a.test") == (f"192.0.2.{number}",)
            assert dns.asked.count(("a.test", A)) == number
            cache.now += 1


def test_an_alias_counts_with_its_own_time(dns: LoopbackDns) -> None:
    """A CNAME resolves to the addresses of its target, cached for the shorter time to live of the two."""
    dns.names["www.test"] = [Zone(cname="cdn.test", ttl=100)]
    dns.put("cdn.test", "192.0.2.7", ttl=3000)
    with Cache(dns) as cache:
        for passed_s, asked in ((0, 1), (99, 1), (1, 2)):
            cache.now += passed_s
            assert cache.addresses("www.test") == ("192.0.2.7",)
            assert dns.asked.count(("www.test", A)) == asked


def test_why_there_is_no_address(dns: LoopbackDns) -> None:
    """An unknown name, a name without addresses, a failing nameserver and a silent one have different reasons."""
    dns.names |= {"empty.test": [Zone()], "failing.test": [Zone(rcode=SERVFAIL)], "silent.test": [Zone(silent=True)]}
    with Cache(dns, connect_timeout_s=0.4) as cache:
        names = ("nobody.test", "x..test", "empty.test", "failing.test", "silent.test")
        assert [cache.reason(name) for name in names] == ["dns_no_name"] * 2 + ["dns_no_address", "dns", "dns"]


@pytest.mark.parametrize(("retry_s", "kept_s"), [(8.0, 4.0), (1000.0, FAILURE_S)])
def test_failures_are_kept_briefly(dns: LoopbackDns, retry_s: float, kept_s: float) -> None:
    """A failed look-up is repeated after half of the retry wait, and after 15 seconds at most."""
    with Cache(dns, retry_s=retry_s) as cache:
        cache.reason("late.test")
        dns.put("late.test", "192.0.2.1")
        cache.now += kept_s - 1
        cache.reason("late.test")
        cache.now += 1
        assert cache.addresses("late.test") == ("192.0.2.1",)


def test_one_question_for_many_askers(dns: LoopbackDns) -> None:
    """Concurrent look-ups of a host share one query; if one is cancelled, the others still get the answer."""
    dns.put("a.test", "192.0.2.1")

    async def together(cache: DnsCache) -> list[Any]:
        tasks = [asyncio.ensure_future(cache.addresses("a.test")) for _ in range(20)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        return await asyncio.gather(*tasks, return_exceptions=True)

    with Cache(dns) as cache:
        assert cache.run(together(cache.cache))[1:] == [("192.0.2.1",)] * 19
    assert dns.count("a.test") == 2


def test_the_cache_is_bounded(dns: LoopbackDns) -> None:
    """A full cache drops the host that was used longest ago."""
    dns.names["*"] = [Zone(("192.0.2.1",))]
    with Cache(dns, hosts=2) as cache:
        for name in ("a", "b", "a", "c", "a", "c", "b"):
            cache.addresses(f"{name}.test")
    assert [dns.asked.count((f"{name}.test", A)) for name in "abc"] == [1, 2, 1]


def test_the_hosts_file_counts_and_search_domains_do_not(dns: LoopbackDns) -> None:
    """localhost is resolved without a nameserver; search domains are not applied to unknown names."""
    with Cache(dns) as cache:
        assert set(cache.addresses("localhost")) <= {"127.0.0.1", "::1"}
        assert {cache.reason(name) for name in ("nobody", "nobody.test")} == {"dns_no_name"}
    assert {name for name, _ in dns.asked} <= {"nobody", "nobody.test"}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_name_with_bad_answers_fails_alone(kind: str) -> None:
    """Bad answers end a look-up with a reason, after a bounded number of queries.

    While twenty names get bad answers, fifty others are resolved, over UDP and over TCP.
    """
    with LoopbackDns(tcp=kind != "truncated, no tcp") as dns:
        dns.names["bad.test"] = [FAULTS[kind]]
        with Cache(dns, connect_timeout_s=0.4) as cache:
            assert cache.reason("bad.test") in {"dns", "dns_no_address", "dns_no_name"}
        assert dns.count("bad.test") <= 12  # both families, three tries, UDP and TCP

        bad = [f"bad{number}.test" for number in range(20)]
        good = [f"good{number}.test" for number in range(50)]
        dns.names |= {name: [FAULTS[kind]] for name in bad}
        over_tcp = Zone(("192.0.2.1",), udp=truncated if kind != "truncated, no tcp" else None)
        dns.names |= {name: [over_tcp if n % 2 else Zone(("192.0.2.1",))] for n, name in enumerate(good)}

        async def thrice(cache: DnsCache, name: str) -> None:
            for _ in range(3):
                with contextlib.suppress(UnresolvedHost):
                    await cache.addresses(name)

        async def all_at_once(cache: DnsCache) -> list[Any]:
            tasks = [asyncio.ensure_future(thrice(cache, name)) for name in bad]
            await asyncio.sleep(0)  # the look-ups with bad answers start first
            found = await asyncio.gather(*map(cache.addresses, good), return_exceptions=True)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return found

        with Cache(dns, connect_timeout_s=30, retry_s=0) as cache:
            assert cache.run(all_at_once(cache.cache)) == [("192.0.2.1",)] * 50


def test_a_silent_nameserver_comes_last(dns: LoopbackDns) -> None:
    """A nameserver that timed out is asked after the others from then on."""
    dns.names["*"] = [Zone(("192.0.2.1",))]
    with LoopbackDns() as silent:
        silent.names["*"] = [Zone(silent=True)]
        with Cache(silent, dns, connect_timeout_s=2) as cache:
            cache.addresses("first.test")
            assert silent.count("first.test") > 0
            for number in range(5):
                assert cache.addresses(f"later{number}.test") == ("192.0.2.1",)
        assert {name for name, _ in silent.asked} == {"first.test"}


def test_no_socket_left_is_no_answer_of_dns(dns: LoopbackDns) -> None:
    """If this machine has no free socket for the query, the error says so, and the name does not count as failed."""
    dns.put("a.test", "192.0.2.1")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with Cache(dns) as cache:
        cache.addresses("localhost")  # a first look-up opens its files before the limit is set
        os.close(lowest_free := os.dup(0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
        try:
            with pytest.raises(OSError, match="open files") as raised:
                cache.addresses("a.test")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert not isinstance(raised.value, UnresolvedHost)
        assert cache.addresses("a.test") == ("192.0.2.1",)


@pytest.mark.parametrize("text", ["127.0.0.1", "127.0.0.1:5353", "::1", "[::1]", "[2620:fe::fe]:53"])
def test_nameservers(text: str) -> None:
    """A nameserver is an address with an optional port."""
    DnsCache(settings(text))


@pytest.mark.parametrize("text", ["", "dns.example", "127.0.0.1:0", "127.0.0.1:x", "[::1]:99999", "1.2.3.4,5.6.7.8"])
def test_bad_nameservers_are_refused(text: str) -> None:
    """Anything but an address is refused; the message names the setting and shows the form."""
    with pytest.raises(BadCrawlSettings, match=r"crawl\.nameservers.*address:port"):
        DnsCache(settings(text))
