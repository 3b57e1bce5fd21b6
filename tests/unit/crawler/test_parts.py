"""The small parts: robots.txt, inflating, the gate, links, sitemaps, Retry-After."""

from __future__ import annotations

import asyncio
import gzip
import tracemalloc
import zlib

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.gate import HostGate
from crawler.inflating import BadEncoding, Inflater
from crawler.links import internal_links
from crawler.retry_after import retry_after_s
from crawler.robots import RobotsAnswer, RobotsRules, RobotsShelf, meaning_of
from crawler.sitemaps import read_sitemap, sample


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        (200, RobotsAnswer.RULES),
        (204, RobotsAnswer.RULES),
        (302, RobotsAnswer.UNAVAILABLE),
        (401, RobotsAnswer.UNAVAILABLE),
        (404, RobotsAnswer.UNAVAILABLE),
        (429, RobotsAnswer.UNREACHABLE),
        (500, RobotsAnswer.UNREACHABLE),
        (503, RobotsAnswer.UNREACHABLE),
        (0, RobotsAnswer.UNREACHABLE),
    ],
)
def test_what_an_answer_to_robots_txt_means(status: int, meaning: RobotsAnswer) -> None:
    """The table of RFC 9309: 4xx allows, 429, 5xx and silence do not."""
    assert meaning_of(status) is meaning
    assert meaning_of(status, complete=False) is not RobotsAnswer.RULES


def test_rules_are_those_of_our_group() -> None:
    """Our own group counts before the star; the longest match decides; delay and sitemaps are read."""
    rules = RobotsRules(
        b"\xef\xbb\xbfUser-agent: *\nDisallow: /\n\nUser-agent: FarmWatch\nDisallow: /no\nAllow: /no/but\n"
        b"Crawl-delay: 7\nSitemap: https://a.example/s.xml\n",
        "farmwatch",
    )
    assert rules.allows("https://a.example/x") and rules.allows("https://a.example/no/but")
    assert not rules.allows("https://a.example/no")
    assert rules.crawl_delay_s == 7 and rules.sitemaps == ["https://a.example/s.xml"]
    assert RobotsRules(b"", "farmwatch").allows("https://a.example/x")


@given(st.binary(max_size=300))
def test_no_robots_txt_breaks_the_parser(text: bytes) -> None:
    """Any bytes give rules that answer."""
    rules = RobotsRules(b"User-agent: *\n" + text, "farmwatch")
    assert rules.allows("https://a.example/x") in (True, False)
    assert rules.crawl_delay_s >= 0


def test_the_shelf_parses_once_and_forgets_the_oldest() -> None:
    """A text is asked for once per version while it is on the shelf."""
    asked: list[str] = []

    def text(name: str) -> bytes:
        asked.append(name)
        return b""

    shelf = RobotsShelf("farmwatch", size=2)
    for site, version in [("a", 1), ("a", 1), ("b", 1), ("a", 1), ("c", 1), ("a", 1), ("b", 1), ("a", 2)]:
        shelf.rules(site, version, lambda name=f"{site}{version}": text(name))  # type: ignore[misc]
    assert asked == ["a1", "b1", "c1", "b1", "a2"]


def test_the_shelf_is_capped_by_bytes() -> None:
    """Large texts push each other out, a replaced one does not count twice, and the newest is always held."""
    shelf = RobotsShelf("farmwatch", cap_bytes=100)
    shelf.hold("a", 1, b"#" * 60)
    shelf.hold("a", 2, b"#" * 60)
    shelf.hold("b", 1, b"#" * 40)
    assert shelf.held("a") and shelf.held("b")
    shelf.hold("c", 1, b"#" * 50)
    assert not shelf.held("a") and shelf.held("b") and shelf.held("c")
    shelf.hold("d", 1, b"#" * 500)
    assert not shelf.held("b") and not shelf.held("c") and shelf.held("d")


def test_no_more_than_500_kib_of_robots_txt_are_parsed() -> None:
    """Rules beyond the 500 KiB that RFC 9309 asks for do not count."""
    rules = RobotsRules(b"User-agent: *\nDisallow: /a\n" + b"#" * 500 * 1024 + b"\nDisallow: /b\n", "farmwatch")
    assert not rules.allows("https://a.example/a") and rules.allows("https://a.example/b")


ENCODERS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "": bytes,
    "raw deflate": lambda data: zlib.compress(data)[2:-4],
}


@given(st.binary(max_size=3000), st.sampled_from(sorted(ENCODERS)), st.integers(1, 50), st.integers(0, 3000))
def test_inflating_in_pieces_up_to_a_cap(data: bytes, encoding: str, size: int, cap: int) -> None:
    """In whatever pieces a body comes, the kept part is its beginning, and `full` says whether there was more."""
    sent = ENCODERS[encoding](data)
    if encoding == "raw deflate" and (not data or sent[0] & 0x0F == 8):
        return
    inflater = Inflater("deflate" if encoding == "raw deflate" else encoding, cap)
    for start in range(0, len(sent), size):
        inflater.feed(sent[start : start + size])
    assert inflater.body() == data[:cap]
    assert inflater.full == (len(data) > cap)


@pytest.mark.parametrize("encoding", ["gzip", "br"])
def test_a_bomb_does_not_inflate(encoding: str) -> None:
    """300 MiB in a small body cost a little more than the cap in memory."""
    pack = zlib.compressobj(1, zlib.DEFLATED, 31)
    bomb = b"".join(pack.compress(bytes(1024 * 1024)) for _ in range(300)) + pack.flush()
    if encoding == "br":
        bomb = brotli.compress(bytes(100 * 1024 * 1024), quality=1)
    inflater = Inflater(encoding, 2 * 1024 * 1024)
    tracemalloc.start()
    inflater.feed(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert inflater.full and len(inflater.body()) == 2 * 1024 * 1024
    assert peak < 16 * 1024 * 1024


def test_gzip_members_and_padding() -> None:
    """A body of several gzip members is one body; zeros after the last are padding."""
    inflater = Inflater("gzip", 100)
    inflater.feed(gzip.compress(b"one ") + gzip.compress(b"two") + bytes(8))
    assert inflater.body() == b"one two"


def test_bad_encodings_are_named() -> None:
    """Unknown and stacked encodings, and bodies that are not what they say, raise BadEncoding."""
    for encoding in ("zstd", "gzip, br", "compress"):
        with pytest.raises(BadEncoding):
            Inflater(encoding, 10)
    for encoding in ("gzip", "deflate", "br"):
        with pytest.raises(BadEncoding):
            Inflater(encoding, 10).feed(b"\xffplain text that is not compressed at all")


def test_the_gate_spaces_starts_and_never_overlaps() -> None:
    """Requests to one host start a delay apart and one at a time; other hosts do not wait."""
    now = 100.0
    log: list[tuple[str, str, float]] = []

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        await asyncio.sleep(0)

    async def visit(gate: HostGate, host: str) -> None:
        async with gate.turn(host, 5.0):
            log.append((host, "in", now))
            await asyncio.sleep(0)
            log.append((host, "out", now))

    async def main() -> None:
        gate = HostGate(lambda: now, sleep)
        await asyncio.gather(visit(gate, "a"), visit(gate, "a"), visit(gate, "a"), visit(gate, "b"))

    asyncio.run(main())
    of_a = [(what, when) for host, what, when in log if host == "a"]
    assert [what for what, _ in of_a] == ["in", "out"] * 3
    assert [when for what, when in of_a if what == "in"] == [100.0, 105.0, 110.0]
    assert next(when for host, _, when in log if host == "b") == 100.0


def test_the_gate_keeps_the_larger_delay() -> None:
    """A request that asks for a longer delay than the one before it waits that long since the other began."""
    now = 100.0
    starts: list[float] = []

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds

    async def main() -> None:
        gate = HostGate(lambda: now, sleep)
        for delay_s in (1.0, 30.0, 1.0):
            async with gate.turn("a", delay_s):
                starts.append(now)

    asyncio.run(main())
    assert starts == [100.0, 130.0, 160.0]


def test_internal_links_in_page_order() -> None:
    """Links of the same host, normalised, once each; none of comments, scripts, nofollow, or URLs to skip."""
    body = b"""<base href="https://a.example/dir/"><a href=one>1</a> <a class=x href='/two?a=1&amp;b=2'>2</a>
    <a href="https://b.example/">off</a> <a href="#top">t</a> <a href="one#x">again</a><!-- <a href="/hidden">h</a> -->
    <script>"<a href='/script'>"</script><a rel="noopener nofollow" href="/nofollow">n</a><a href="/tag/x">t</a>
    <a href="mailto:a@a.example">m</a><a href="https://a.example:8080/port">p</a><a href="http://a.example/three">3</a>
    <a data-href="/data">d</a><a rel=NOFOLLOW href=/no1>x</a>
    <a href=/four rel=nofollower data-x="rel='nofollow'">4</a><a href="http://[bad">b</a>"""
    assert list(internal_links(body, "utf-8", "https://a.example/page")) == [
        "https://a.example/dir/one",
        "https://a.example/two?a=1&b=2",
        "http://a.example/three",
        "https://a.example/four",
    ]


@pytest.mark.parametrize(
    "piece", [b"<a ", b"<a href=", b'<a href="', b"<!--", b"<script", b"<a rel=nofollow rel=", b"<a href='/x"]
)
def test_hostile_markup_costs_no_more_than_its_length(piece: bytes) -> None:
    """Two megabytes of openings that never close give no links, at once (a quadratic pattern would take hours)."""
    body = piece * (2_000_000 // len(piece))
    assert len(list(internal_links(body, "utf-8", "https://a.example/"))) <= 1


def test_sitemaps_of_each_form() -> None:
    """XML, an index, gzip, CDATA and a plain list are read; other hosts, images and entities are not."""
    url = "https://a.example/sitemap.xml"
    pages = b"""<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY x "https://a.example/entity">]>
    <urlset xmlns:image="i"><url><loc> https://a.example/1?a=1&amp;b=2 </loc><image:image><image:loc>https://a.example/i.png
    </image:loc></image:image></url><url><loc><![CDATA[https://a.example/2]]></loc></url><url><loc>https://b.example/3</loc>
    </url><url><loc>&x;</loc></url><url><loc>/relative</loc></url>"""
    found = read_sitemap(pages, url, 10**6)
    assert found.pages == ("https://a.example/1?a=1&b=2", "https://a.example/2") and found.files == ()
    assert read_sitemap(gzip.compress(pages), url, 10**6) == found
    index = b"<sitemapindex><sitemap><loc>https://a.example/s1.xml.gz</loc></sitemap></sitemapindex>"
    assert read_sitemap(index, url, 10**6).files == ("https://a.example/s1.xml.gz",)
    assert read_sitemap(b"\xef\xbb\xbfhttps://a.example/x\r\n\r\nnothing\n", url, 10**6).pages == (
        "https://a.example/x",
    )


def test_only_as_many_entries_as_a_file_may_have_are_looked_at() -> None:
    """Entries beyond 50,000 do not count, whatever those before them are; nor do the links of a page beyond 10,000."""
    foreign = b"<loc>https://b.example/</loc>"
    own = b"<loc>https://a.example/own</loc>"
    url = "https://a.example/sitemap.xml"
    assert read_sitemap(b"<urlset>" + foreign * 49_999 + own, url, 10**6).pages == ("https://a.example/own",)
    assert read_sitemap(b"<urlset>" + foreign * 50_000 + own, url, 10**6).pages == ()
    tags = b"<a href=https://b.example/>" * 9_999 + b"<a href=/1><a href=/2>"
    assert list(internal_links(tags, "utf-8", "https://a.example/")) == ["https://a.example/1"]


@given(st.binary(max_size=300))
def test_no_sitemap_raises(body: bytes) -> None:
    """Any bytes are a sitemap, mostly an empty one; what it lists is of its host."""
    for prefix in (b"", b"<urlset><loc>", b"\x1f\x8b"):
        found = read_sitemap(prefix + body, "https://a.example/s.xml", 1000)
        assert all(page.startswith(("https://a.example/", "http://a.example/")) for page in found.pages)


@given(st.lists(st.integers(0, 500), max_size=60), st.integers(0, 60), st.integers(0, 20))
def test_a_sample_of_samples_is_the_sample_of_all(numbers: list[int], cut: int, size: int) -> None:
    """In whatever order and parts the URLs come, the sample is the same, without doubles."""
    urls = [f"https://a.example/{n}" for n in numbers]
    whole = sample("a.example", urls, size)
    parts = sample("a.example", [*sample("a.example", urls[cut:], size), *urls[:cut]], size)
    assert parts == whole == sample("a.example", reversed(urls), size)
    assert len(whole) == len(set(whole)) == min(size, len(set(urls)))


def test_samples_differ_by_site() -> None:
    """The seed is the site's name, so no site can know what is sampled of another."""
    urls = [f"https://a.example/{n}" for n in range(100)]
    assert sample("a.example", urls, 10) != sample("b.example", urls, 10)


def test_retry_after() -> None:
    """Seconds and dates are read, the past is now, and nonsense says nothing."""
    assert retry_after_s("120", 0) == 120.0
    assert retry_after_s("Thu, 01 Jan 1970 00:01:00 GMT", 10) == 50.0
    assert retry_after_s("Thu, 01 Jan 1970 00:01:00 GMT", 100) == 0.0
    assert retry_after_s("9" * 400, 0) is not None
    for nonsense in ("", "soon", "-5", "1.5", "٣"):
        assert retry_after_s(nonsense, 0) is None
