"""Sitemaps: what a file lists, what no file can do, and the sample."""

from __future__ import annotations

import gzip

from hypothesis import given
from hypothesis import strategies as st

from crawler.links import internal_links
from crawler.sitemaps import read_sitemap, sample


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
