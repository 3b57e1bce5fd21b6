"""Sitemaps: the listed URLs, hostile files, and the sample."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.web.links import internal_links
from crawler.web.sitemaps import URLS_CAP, SitemapFile, first_sitemaps, read_sitemap, sample


def test_only_as_many_entries_as_a_file_may_have_are_looked_at() -> None:
    """Entries beyond 50,000 of a sitemap, valid or not, do not count; nor do links beyond 10,000 of a page."""
    foreign = b"<loc>https://b.example/</loc>"
    own = b"<loc>https://a.example/own</loc>"
    url = "https://a.example/sitemap.xml"
    assert read_sitemap(b"<urlset>" + foreign * 49_999 + own, url, 10**6).pages == ("https://a.example/own",)
    assert read_sitemap(b"<urlset>" + foreign * 50_000 + own, url, 10**6).pages == ()
    tags = b"<a href=https://b.example/>" * 9_999 + b"<a href=/1><a href=/2>"
    assert list(internal_links(tags, "utf-8", "https://a.example/")) == ["https://a.example/1"]


@given(st.lists(st.integers(0, 500), max_size=60), st.integers(0, 60), st.integers(0, 20))
def test_a_sample_of_samples_is_the_sample_of_all(numbers: list[int], cut: int, size: int) -> None:
    """The sample does not depend on the order or the parts of the URLs, and has no duplicates."""
    urls = [f"https://a.example/{n}" for n in numbers]
    whole = sample("a.example", urls, size)
    parts = sample("a.example", [*sample("a.example", urls[cut:], size), *urls[:cut]], size)
    assert parts == whole == sample("a.example", reversed(urls), size)
    assert len(whole) == len(set(whole)) == min(size, len(set(urls)))


_URL = "https://a.example/maps/sitemap.xml"


@pytest.mark.parametrize(
    ("entry", "listed"),
    [
        ("https://a.example/1", "https://a.example/1"),
        ("http://a.example/1", "http://a.example/1"),
        ("HTTPS://A.example:443/1#x", "https://a.example/1"),
        ("https://a.example./1", "https://a.example/1"),
        ("\n  https://a.example/1\t", "https://a.example/1"),
        ("https://a.example/1?a=1&amp;b=2", "https://a.example/1?a=1&b=2"),
        ("https://a.example/&#x62;", "https://a.example/b"),
        ("<![CDATA[https://a.example/1?a&b]]>", "https://a.example/1?a&b"),
        (" <![CDATA[ https://a.example/1 ]]> ", "https://a.example/1"),
        ("https://a.example/ä", "https://a.example/%C3%A4"),
        ("https://www.a.example/1", ""),
        ("https://b.example/1", ""),
        ("https://a.example.b.example/1", ""),
        ("https://a.example@b.example/1", ""),
        ("http://a.1../", ""),
        ("https://a.example:8443/1", ""),
        ("https://a.example/1</loc><image:image><image:loc>https://a.example/i.png", "https://a.example/1"),
        ("//a.example/1", ""),
        ("/1", ""),
        ("ftp://a.example/1", ""),
        ("javascript:alert(1)", ""),
        ("&x;", ""),
        ("https://a.example/" + "a" * 3000, ""),
        ("", ""),
    ],
)
def test_which_entries_count(entry: str, listed: str) -> None:
    """Only absolute URLs of the file's host and port count, under either scheme."""
    body = f'<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY x "https://a.example/x">]><urlset><url><loc>{entry}</loc>'
    assert read_sitemap(body.encode(), _URL, 10**6).pages == ((listed,) if listed else ())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("eol", ["\n", "\r", "\r\n\r\n"])
def test_encodings_and_line_ends(encoding: str, eol: str) -> None:
    """A list and XML are read in UTF-8 with or without a byte order mark, in UTF-16 with it, and in gzip."""
    urls = ("https://a.example/1", "https://a.example/2")
    xml = eol.join(f"<x:url><x:loc>{url}</x:loc></x:url>" for url in urls)
    for text in (f"{eol.join(urls)}{eol}nothing", f"<x:urlset>{eol}{xml}"):
        body = text.encode(encoding)
        assert read_sitemap(body, _URL, 10**6) == read_sitemap(gzip.compress(body), _URL, 10**6) == SitemapFile(urls)


def test_bombs_stay_small() -> None:
    """40 MB in gzip, nested gzip and a million entries stay within the caps; entries below the caps are listed."""
    pack = zlib.compressobj(1, zlib.DEFLATED, 31)
    entry = b"<url><loc>https://a.example/1</loc></url>" * 25_000
    bomb = pack.compress(b"<urlset>") + b"".join(pack.compress(entry) for _ in range(40)) + pack.flush()
    tracemalloc.start()
    assert read_sitemap(bomb, _URL, 200_000).pages == ("https://a.example/1",)
    assert read_sitemap(gzip.compress(bomb), _URL, 200_000).pages == ()
    assert read_sitemap(gzip.compress(gzip.compress(entry)), _URL, 200_000).pages == ()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 32_000_000
    many = b"\n".join(b"https://a.example/%d" % n for n in range(URLS_CAP + 100))
    assert len(read_sitemap(many, _URL, 10**7).pages) == URLS_CAP


@pytest.mark.parametrize(
    "piece",
    [b"<loc>", b"<loc ", b"<a.b-c:loc", b"<loc>   ", b"<loc><![CDATA[", b"<![CDATA[", b"<loc>&amp;", b"\r", b"x\r"],
)
def test_hostile_sitemaps_cost_no_more_than_their_length(piece: bytes) -> None:
    """Half a megabyte of unclosed tags lists nothing, in linear time (a quadratic pattern would take many minutes)."""
    body = piece * (500_000 // len(piece))
    assert read_sitemap(b"<urlset>" + body, _URL, 10**7).pages == ()
    assert read_sitemap(body, _URL, 10**7).pages == ()


@given(
    st.binary(max_size=300)
    | st.lists(
        st.sampled_from(["<loc>", "</loc>", "<![CDATA[", "]]>", "https://a.example/x", "&", "<", " ", "b:"])
    ).map(lambda pieces: "".join(pieces).encode())
)
def test_any_file_lists_only_its_own_host(body: bytes) -> None:
    """Any bytes, even shuffled pieces of a sitemap, raise no error and list URLs of its host only, each once."""
    for start in (b"<urlset>", b"<urlset><loc>", b"<sitemapindex>", b"\x1f\x8b", b""):
        found = read_sitemap(start + body, _URL, 1000)
        listed = found.pages + found.files
        assert len(set(listed)) == len(listed)
        assert all(page.startswith(("https://a.example/", "http://a.example/")) for page in listed)


def test_which_sitemaps_are_asked_for_first() -> None:
    """The sitemaps that robots.txt names on the site's host come first, up to the limit; without any, /sitemap.xml."""
    origin = "https://a.example"
    named = [
        "https://a.example/1.xml",
        "/2.xml",
        "http://a.example/1.xml",
        "https://b.example/x",
        "nonsense:",
        "/2.xml#a",
    ]
    assert first_sitemaps(named, origin, 10) == [
        "https://a.example/1.xml", "https://a.example/2.xml", "http://a.example/1.xml"
    ]  # fmt: skip
    assert first_sitemaps(named, origin, 2) == ["https://a.example/1.xml", "https://a.example/2.xml"]
    assert first_sitemaps(["https://b.example/x"] * 50, origin, 3) == ["https://a.example/sitemap.xml"]
    assert first_sitemaps([], origin, 3) == ["https://a.example/sitemap.xml"]
    assert first_sitemaps(["x" * 5000], origin, 3) == ["https://a.example/sitemap.xml"]


def test_an_index_that_lists_itself_leads_nowhere() -> None:
    """An index lists each other file once, and never itself."""
    entries = "".join(f"<sitemap><loc>https://a.example/maps/{n % 3}.xml</loc></sitemap>" for n in range(9))
    index = f"<sitemapindex><sitemap><loc>{_URL}</loc></sitemap>{entries}</sitemapindex>"
    found = read_sitemap(index.encode(), _URL, 10**6)
    assert found.files == tuple(f"https://a.example/maps/{n}.xml" for n in range(3)) and found.pages == ()
