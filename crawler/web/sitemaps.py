"""Sitemaps (sitemaps.org): the URLs in a file, and a random sample of a site's URLs that no one can influence.

Uses patterns, no XML parser, so there are no entities, DTDs or depth to attack.

| a file, or robots.txt, lists | accepted |
|---|---|
| a URL of the file's own host and port | yes |
| the same host with http for https, or the reverse | yes: owners mix them, though the protocol wants one scheme |
| the same name with `www.`, or without it | no: it is another host |
| any other host or port, or no http(s) URL | no |
| an index that lists itself | no |
| a relative URL | in robots.txt only; the protocol wants absolute ones |
"""

from __future__ import annotations

import heapq
import html
import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import xxhash

from crawler.errors import UnusableUrl
from crawler.web.content_encoding import BadEncoding, Inflater
from crawler.web.urls import host_of, is_at, normalise, port_of

URLS_CAP = 50_000  # the protocol's own limit per file
_LOC = re.compile(
    r"<(?!image:|video:|news:)(?:[\w.-]{1,20}:)?loc\s*>\s*(?:<!\[CDATA\[([^\]<]{0,4000}+)\]\]>|([^<]{0,4000}+))",
    re.IGNORECASE,
)
_LINE = re.compile(r"[^\r\n]+")
_INDEX = re.compile(r"<(?:[\w.-]{1,20}:)?sitemapindex\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SitemapFile:
    """The entries of a file: pages, or files if it is an index. Normalised, of the same host and port."""

    pages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()


def read_sitemap(body: bytes, url: str, cap: int) -> SitemapFile:
    """Read the file at `url` (XML or a plain list, or one of them in gzip of up to `cap` bytes). Never raises."""
    if body.startswith(b"\x1f\x8b"):
        inflater = Inflater("gzip", cap)
        try:
            inflater.feed(body)
            body = inflater.body()
        except BadEncoding:
            return SitemapFile()
    wide = body.startswith((b"\xff\xfe", b"\xfe\xff"))  # the protocol requires UTF-8; some send UTF-16 with its mark
    text = body.decode("utf-16" if wide else "utf-8", "replace").lstrip("\ufeff \t\r\n")
    if not text.startswith("<"):
        return SitemapFile(pages=_same_host((line[0] for line in _LINE.finditer(text)), url))
    found = _same_host((match[1] or match[2] or "" for match in _LOC.finditer(text)), url)
    if not _INDEX.search(text, 0, 4096):
        return SitemapFile(pages=found)
    return SitemapFile(files=tuple(file for file in found if file != url))


def sample(site: str, urls: Iterable[str], size: int) -> list[str]:
    """The `size` URLs with the smallest hashes under the site's name, in that order.

    A uniform sample without replacement (bottom-k sampling, Cohen and Kaplan 2007), whatever the order and parts of the
    URLs: the sample of samples is the sample of all.
    """
    seed = xxhash.xxh3_64_intdigest(site.encode())
    ranked = ((xxhash.xxh3_64_intdigest(url.encode(), seed), url) for url in dict.fromkeys(urls))
    return [url for _, url in heapq.nsmallest(size, ranked)]


def _same_host(urls: Iterable[str], url: str) -> tuple[str, ...]:
    host, port = host_of(url), port_of(url)
    found: dict[str, None] = {}
    for text in itertools.islice(urls, URLS_CAP):  # of all, because a file of a million foreign URLs would take seconds
        try:
            normal = normalise(html.unescape(text.strip()))
        except UnusableUrl:
            continue
        if host_of(normal) == host and port_of(normal) == port:
            found[normal] = None
    return tuple(found)


def first_sitemaps(named: Sequence[str], origin: str, limit: int) -> list[str]:
    """At most `limit` sitemaps of robots.txt on its own host and port, or the default location."""
    found: dict[str, None] = {}
    for text in named[: 10 * limit]:
        try:
            url = normalise(text, origin)
        except UnusableUrl:
            continue
        if is_at(url, origin):
            found[url] = None
    return list(found)[:limit] or [f"{origin}/sitemap.xml"]
