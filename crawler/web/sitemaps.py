"""Sitemaps (sitemaps.org): the URLs in a file, and a random sample of a site's URLs that no one can influence.

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
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import xxhash

from crawler.errors import UnusableUrl
from crawler.web.content_encoding import BadEncoding, Inflater
from crawler.web.content_type import charset_of
from crawler.web.sitemap_xml import Entry, sitemap_entries
from crawler.web.urls import host_of, is_at, normalise, port_of
from stream.text.charsets import text_in

URLS_CAP = 50_000  # the protocol's own limit per file
_LINE = re.compile(rb"[^\r\n]+")
_XML = re.compile(rb"(?:\xef\xbb\xbf|\s)*+<")


@dataclass(frozen=True, slots=True)
class SitemapFile:
    """The entries of a file: pages, or files if it is an index. Normalised, of the same host and port."""

    pages: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    months: Mapping[str, int] = field(default_factory=dict)  # "2024-05" -> pages that were changed in this month


def read_sitemap(body: bytes, url: str, cap: int) -> SitemapFile:
    """Read the file at `url` (XML or a plain list, or one of them in gzip of up to `cap` bytes). Never raises.

    The protocol allows feeds as sitemaps: RSS, Atom.
    """
    if body.startswith(b"\x1f\x8b"):
        inflater = Inflater("gzip", cap)
        try:
            inflater.feed(body)
            body = inflater.body()
        except BadEncoding:
            return SitemapFile()
    body = _as_utf8(body)
    is_xml = _XML.match(body) is not None
    lines = (line[0].decode().strip("\ufeff \t") for line in _LINE.finditer(body))
    entries = sitemap_entries(body) if is_xml else (Entry(line, False) for line in lines)
    host, port = host_of(url), port_of(url)
    by_kind: tuple[dict[str, Entry], dict[str, Entry]] = {}, {}
    # of all entries, because a file of a million foreign URLs would take seconds
    for entry in itertools.islice(entries, URLS_CAP):
        try:
            normal = normalise(entry.url)
        except UnusableUrl:
            continue
        if host_of(normal) == host and port_of(normal) == port:
            by_kind[entry.is_file][normal] = entry
    pages, files = by_kind
    months = Counter(entry.month for entry in pages.values() if entry.month)
    return SitemapFile(tuple(pages), tuple(file for file in files if file != url), months)


def _as_utf8(body: bytes) -> bytes:
    """The text of a body as UTF-8: the same bytes if they are, for texts of 8 MiB are read side by side."""
    charset = charset_of("", body)
    if charset == "utf-8":
        with suppress(UnicodeDecodeError):
            body.decode()
            return body
    return text_in(charset, body).encode()


def sample(site: str, urls: Iterable[str], size: int) -> list[str]:
    """The `size` URLs with the smallest hashes under the site's name, in that order.

    A uniform sample without replacement (bottom-k sampling, Cohen and Kaplan 2007), whatever the order and parts of the
    URLs: the sample of samples is the sample of all.
    """
    seed = xxhash.xxh3_64_intdigest(site.encode())
    ranked = ((xxhash.xxh3_64_intdigest(url.encode(), seed), url) for url in dict.fromkeys(urls))
    return [url for _, url in heapq.nsmallest(size, ranked)]


def first_sitemaps(named: Sequence[str], origin: str, limit: int) -> list[str]:
    """At most `limit` sitemaps of robots.txt on its own host and port, or the default location."""
    urls: dict[str, None] = {}
    for text in named[: 10 * limit]:
        try:
            url = normalise(text, origin)
        except UnusableUrl:
            continue
        if is_at(url, origin):
            urls[url] = None
    return list(urls)[:limit] or [f"{origin}/sitemap.xml"]
