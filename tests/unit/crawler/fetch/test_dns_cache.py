"""The DNS cache, against a DNS server on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import os
import resource
import socket
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from crawler.errors import BadCrawlSettings, UnresolvedHost
from crawler.fetch.dns_cache import FAILURE_S, HOSTS, DnsCache
from crawler.settings import CrawlSettings
from tests.support.dns_faults import FAULTS, truncated
from tests.support.loopback_dns import SERVFAIL, A, LoopbackDns, Zone

pytestmark = pytest.mark.slow


class Clock:
    """Seconds that pass when told."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def dns() -> Iterator[LoopbackDns]:
    """A nameserver."""
    with LoopbackDns() as served:
        yield served


def settings(*nameservers: str, **changes: Any) -> CrawlSettings:
    return CrawlSettings(nameservers=list(nameservers), **changes)


def ask(
    dns: LoopbackDns, steps: Callable[[DnsCache, Clock], Awaitable[None]], hosts: int = HOSTS, **changes: float
) -> None:
    """Run steps with a cache over the nameserver."""

    async def main() -> None:
        clock = Clock()
        cache = DnsCache(settings(dns.nameserver, **changes), clock, hosts)
        try:
            await steps(cache, clock)
        finally:
            await cache.close()

    asyncio.run(main())


def held(cache: DnsCache, host: str) -> bool:
    """Whether the cache can tell of a host without asking."""
    known = cache._known.get(host)
    return known is not None and known.until > cache._clock()


async def reason_of(cache: DnsCache, host: str) -> str:
    """Why a host has no addresses."""
    with pytest.raises(UnresolvedHost) as raised:
        await cache.addresses(host)
    assert host in str(raised.value) and isinstance(raised.value, OSError)
    return raised.value.reason


def test_both_families_are_asked_for(dns: LoopbackDns) -> None:
    """A host's IPv4 and IPv6 addresses are found together, each with the port and its family."""
    dns.put("a.test", "192.0.2.1", "192.0.2.2", "2001:db8::1")

    async def steps(cache: DnsCache, _: Clock) -> None:
        found = await cache.addresses("a.test")
        assert sorted(found) == ["192.0.2.1", "192.0.2.2", "2001:db8::1"]
        results = await cache.resolve("a.test", 443)
        assert {(r["host"], r["port"]) for r in results} == {(address, 443) for address in found}
        assert {r["family"] for r in results if ":" in r["host"]} == {socket.AF_INET6}

    ask(dns, steps)
    assert dns.count("a.test") == 2  # A and AAAA, once


@pytest.mark.parametrize(("ttl", "kept_s"), [(0, 60), (1, 60), (300, 300), (86_400, 3600), (2**31 - 1, 3600)])
def test_the_time_to_live_is_kept_within_bounds(dns: LoopbackDns, ttl: int, kept_s: int) -> None:
    """An answer is kept for its time to live, no shorter than the least and no longer than the most."""
    dns.put("a.test", "192.0.2.1", ttl=ttl)

    async def steps(cache: DnsCache, clock: Clock) -> None:
        await cache.addresses("a.test")
        clock.now += kept_s - 1
        assert held(cache, "a.test") and await cache.addresses("a.test") == ("192.0.2.1",)
        clock.now += 1
        assert not held(cache, "a.test")

    ask(dns, steps)


@pytest.mark.parametrize("ttl", [0, 86_400])
def test_what_is_no_longer_kept_is_asked_anew(dns: LoopbackDns, ttl: int) -> None:
    """After its time the nameserver is asked again, also where c-ares would hold the old answer for longer."""
    dns.put("a.test", "192.0.2.1", ttl=ttl)

    async def steps(cache: DnsCache, clock: Clock) -> None:
        for address in ("192.0.2.1", "192.0.2.2", "192.0.2.3"):
            dns.put("a.test", address, ttl=ttl)
            assert await cache.addresses("a.test") == (address,)
            clock.now += 3600

    ask(dns, steps)
    assert dns.asked.count(("a.test", A)) == 3


def test_an_alias_counts_with_its_own_time(dns: LoopbackDns) -> None:
    """Behind a CNAME the addresses are those of its target, kept for the shorter of both times to live."""
    dns.names["www.test"] = [Zone(cname="cdn.test", ttl=100)]
    dns.put("cdn.test", "192.0.2.7", ttl=3000)

    async def steps(cache: DnsCache, clock: Clock) -> None:
        assert await cache.addresses("www.test") == ("192.0.2.7",)
        asked = dns.count("www.test")
        clock.now += 99
        await cache.addresses("www.test")
        assert held(cache, "www.test")
        clock.now += 1
        assert not held(cache, "www.test") and dns.count("www.test") == asked

    ask(dns, steps)


def test_why_there_is_no_address(dns: LoopbackDns) -> None:
    """A name that does not exist, one without addresses, a failing nameserver and a silent one are told apart."""
    dns.names |= {
        "empty.test": [Zone()],
        "failing.test": [Zone(rcode=SERVFAIL)],
        "silent.test": [Zone(silent=True)],
    }

    async def steps(cache: DnsCache, _: Clock) -> None:
        assert await reason_of(cache, "nobody.test") == "dns_no_name"
        assert await reason_of(cache, "x..test") == "dns_no_name"
        assert await reason_of(cache, "empty.test") == "dns_no_address"
        assert await reason_of(cache, "failing.test") == "dns"
        assert await reason_of(cache, "silent.test") == "dns"

    ask(dns, steps, connect_timeout_s=0.4)


@pytest.mark.parametrize(("retry_s", "kept_s"), [(8.0, 4.0), (1000.0, FAILURE_S)])
def test_failures_are_kept_briefly(dns: LoopbackDns, retry_s: float, kept_s: float) -> None:
    """A failed look-up is repeated after half of the wait before a retry, at most after a quarter of a minute."""

    async def steps(cache: DnsCache, clock: Clock) -> None:
        await reason_of(cache, "late.test")
        dns.put("late.test", "192.0.2.1")
        asked = dns.count("late.test")
        clock.now += kept_s - 1
        await reason_of(cache, "late.test")
        assert dns.count("late.test") == asked
        clock.now += 1
        assert await cache.addresses("late.test") == ("192.0.2.1",)

    ask(dns, steps, retry_s=retry_s)


def test_one_question_for_many_askers(dns: LoopbackDns) -> None:
    """Many who ask at once share one look-up, and one of them who gives up does not spoil it for the others."""
    dns.put("a.test", "192.0.2.1")

    async def steps(cache: DnsCache, _: Clock) -> None:
        tasks = [asyncio.ensure_future(cache.addresses("a.test")) for _ in range(20)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert found[1:] == [("192.0.2.1",)] * 19

    ask(dns, steps)
    assert dns.count("a.test") == 2


def test_the_cache_is_bounded(dns: LoopbackDns) -> None:
    """Beyond its room the host used longest ago is forgotten."""
    dns.names["*"] = [Zone(("192.0.2.1",))]

    async def steps(cache: DnsCache, _: Clock) -> None:
        for name in ("a", "b", "a", "c"):
            await cache.addresses(f"{name}.test")
        assert [held(cache, f"{name}.test") for name in "abc"] == [True, False, True]

    ask(dns, steps, hosts=2)


def test_the_hosts_file_counts_and_search_domains_do_not(dns: LoopbackDns) -> None:
    """localhost is answered without a nameserver; a name that does not exist is not sought in local domains."""

    async def steps(cache: DnsCache, _: Clock) -> None:
        assert set(await cache.addresses("localhost")) <= {"127.0.0.1", "::1"}
        await reason_of(cache, "nobody")
        await reason_of(cache, "nobody.test")

    ask(dns, steps)
    assert {name for name, _ in dns.asked} <= {"nobody", "nobody.test"}


@pytest.mark.parametrize("kind", FAULTS)
def test_one_names_trouble_stays_its_own(kind: str) -> None:
    """While twenty names get bad answers, whatever their kind, fifty others are found, over UDP and over TCP."""
    with LoopbackDns(tcp=kind != "truncated, no tcp") as dns:
        dns.names |= {f"bad{number}.test": [FAULTS[kind]] for number in range(20)}
        good = [f"good{number}.test" for number in range(50)]
        over_tcp = Zone(("192.0.2.1",), udp=truncated if kind != "truncated, no tcp" else None)
        for number, name in enumerate(good):
            dns.names[name] = [over_tcp if number % 2 else Zone(("192.0.2.1",))]

        async def steps(cache: DnsCache, _: Clock) -> None:
            async def again_and_again(name: str) -> None:
                for _ in range(3):
                    with contextlib.suppress(UnresolvedHost):
                        await cache.addresses(name)

            bad = [asyncio.ensure_future(again_and_again(name)) for name in dns.names if name.startswith("bad")]
            await asyncio.sleep(0)  # they ask first
            found = await asyncio.gather(*map(cache.addresses, good), return_exceptions=True)
            for task in bad:
                task.cancel()
            await asyncio.gather(*bad, return_exceptions=True)
            assert found == [("192.0.2.1",)] * 50

        ask(dns, steps, connect_timeout_s=30, retry_s=0)


@pytest.mark.parametrize("kind", FAULTS)
def test_bad_answers_end_a_look_up(kind: str) -> None:
    """Whatever a nameserver sends, the look-up ends with a reason, after a bounded number of questions."""
    with LoopbackDns(tcp=kind != "truncated, no tcp") as dns:
        dns.names["bad.test"] = [FAULTS[kind]]

        async def steps(cache: DnsCache, _: Clock) -> None:
            assert await reason_of(cache, "bad.test") in {"dns", "dns_no_address", "dns_no_name"}

        ask(dns, steps, connect_timeout_s=0.4)
        assert dns.count("bad.test") <= 12  # both families, three tries, UDP and TCP


def test_a_silent_nameserver_comes_last(dns: LoopbackDns) -> None:
    """One that did not answer in time is asked after the others from then on."""
    dns.names["*"] = [Zone(("192.0.2.1",))]
    with LoopbackDns() as silent:
        silent.names["*"] = [Zone(silent=True)]

        async def main() -> None:
            cache = DnsCache(settings(silent.nameserver, dns.nameserver, connect_timeout_s=2))
            try:
                await cache.addresses("first.test")
                assert silent.count("first.test") > 0
                for number in range(5):
                    assert await cache.addresses(f"later{number}.test") == ("192.0.2.1",)
            finally:
                await cache.close()

        asyncio.run(main())
        assert {name for name, _ in silent.asked} == {"first.test"}


def test_no_socket_left_is_no_answer_of_dns(dns: LoopbackDns) -> None:
    """Where this machine has no socket for the question the error says so, and the name has not failed."""
    dns.put("a.test", "192.0.2.1")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def steps(cache: DnsCache, _: Clock) -> None:
        await cache.addresses("localhost")  # what a first look-up opens is open
        os.close(lowest_free := os.dup(0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, hard))
        try:
            with pytest.raises(OSError, match="open files") as raised:
                await cache.addresses("a.test")
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert not isinstance(raised.value, UnresolvedHost)
        assert await cache.addresses("a.test") == ("192.0.2.1",)

    ask(dns, steps)


@pytest.mark.parametrize("text", ["127.0.0.1", "127.0.0.1:5353", "::1", "[::1]", "[2620:fe::fe]:53"])
def test_nameservers(text: str) -> None:
    """A nameserver is an address, with a port or without."""
    DnsCache(settings(text))


@pytest.mark.parametrize("text", ["", "dns.example", "127.0.0.1:0", "127.0.0.1:x", "[::1]:99999", "1.2.3.4,5.6.7.8"])
def test_bad_nameservers_are_refused(text: str) -> None:
    """What is no address is refused with the setting's name and how to write it."""
    with pytest.raises(BadCrawlSettings, match=r"crawl\.nameservers.*address:port"):
        DnsCache(settings(text))
