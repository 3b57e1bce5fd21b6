"""Answers of the hostile web's hosts: rows of attacks, handlers, and bombs."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import brotli

from tests.hostile.internet import INTRANET
from tests.support.web.loopback_dns import Zone
from tests.support.web.raw_web import Handler, Visit, head, reply

DOMAIN = "hostile.test"
DRIP_S = 0.15
WAY_THERE = ("/robots.txt", "/.well-known/tdmrep.json", "/sitemap.xml")
TEXT = "<!doctype html><html><body><p>nothing but words</p>"

Ends = tuple[str, str]  # outcome and reason of a page
FETCHED: Ends = ("fetched", "")
TIMEOUT: Ends = ("failed", "timeout")
CONNECTION: Ends = ("failed", "connection")
BAD_ENCODING: Ends = ("failed", "bad_encoding")
BAD_REDIRECT: Ends = ("failed", "bad_redirect")
PRIVATE: Ends = ("refused", "private_address")
NOT_HTML: Ends = ("refused", "content_type")
BROKEN: Ends = ("failed", "bad_response")  # not HTTP
FORBIDDEN: Ends = ("refused", "robots")
UNAVAILABLE: Ends = ("refused", "robots_unavailable")
OFFSITE: Ends = ("refused", "redirect_offsite")
TOO_MANY: Ends = ("failed", "too_many_redirects")


@dataclass(frozen=True)
class Attack:
    """A row: `ends` is the outcome of its hit's page, with aiohttp's parser in C (llhttp, in its wheels).

    `python` is the outcome with aiohttp's parser in Python, if that differs: it is less strict.

    `serves` maps paths to handlers, "*" all other paths; `twin` does so for its www twin, which otherwise serves the
    same. In `hit`, its URL, {port} is the server's. `asks` are all requested paths besides robots.txt, tdmrep.json and
    the default sitemap; those of the twin are www/path.
    """

    name: str
    ends: Ends
    serves: Mapping[str, Handler] = field(default_factory=dict)
    hit: str = "http://{host}:{port}/x"
    dns: tuple[Zone, ...] = (Zone(("127.0.0.1",)),)  # one after the other
    truncated: bool = False  # expected in the page record
    at_most: int = 30  # requests to the host
    tls: str = ""  # good | expired | self-signed | other name | none; "" for a hit over plain HTTP
    python: Ends | None = None
    twin: Mapping[str, Handler] | None = None
    asks: frozenset[str] | None = None  # None: not checked
    more: tuple[str, ...] = ()  # paths of further hits

    @property
    def host(self) -> str:
        return f"{self.name}.{DOMAIN}"

    def urls(self, port: int, tls: int) -> list[str]:
        url = self.hit.replace("http://{host}:{port}", "https://{host}:{tls}") if self.tls else self.hit
        port_of_tls = port if self.tls == "none" else tls
        first = url.replace("{host}", self.host).replace("{port}", str(port)).replace("{tls}", str(port_of_tls))
        return [first, *(f"http://{self.host}:{port}{path}" for path in self.more)]

    def handler(self, host: str, path: str) -> Handler:
        serves = self.twin if self.twin is not None and host.startswith("www.") else self.serves
        found = serves.get(path) or serves.get("*" if path not in WAY_THERE[:2] else path)
        return found or reply("no such thing", "404 Not Found")


# Ways to answer


def raw(wire: bytes, *, keep: bool = False) -> Handler:
    """Bytes, then the end of the connection unless it is kept."""

    async def send(visit: Visit) -> None:
        visit.keep = keep
        await visit.send(wire)

    return send


def endless(start: bytes, more: bytes, every_s: float = 0.0) -> Handler:
    """A beginning, then the same bytes again as long as the client reads."""

    async def send(visit: Visit) -> None:
        await visit.send(start)
        for _ in range(10**9):
            await visit.send(more)
            await asyncio.sleep(every_s)  # even with 0: the other hosts have their turn

    return send


def silent(wire: bytes = b"") -> Handler:
    """Bytes, and then silence."""

    async def send(visit: Visit) -> None:
        await visit.send(wire)
        await visit.gone()

    return send


def reset(wire: bytes = b"") -> Handler:
    """Bytes, and then a TCP reset."""

    async def send(visit: Visit) -> None:
        await visit.send(wire)
        await asyncio.sleep(0.02)
        visit.reset()

    return send


def turns(*handlers: Handler) -> Handler:
    """One handler after the other; the last one repeats."""

    async def send(visit: Visit) -> None:
        await handlers[min(visit.number, len(handlers)) - 1](visit)

    return send


def to(location: str, status: str = "302 Found") -> Handler:
    """A redirect; {port} is the server's, {other} another port of it, {n} counts."""

    async def send(visit: Visit) -> None:
        visit.keep = True
        where = location.replace("{port}", str(visit.port)).replace("{n}", str(visit.number))
        where = where.replace("{other}", str(visit.other_port))
        await visit.send(head(status, location=where, content_length="0"))

    return send


def made(text: Callable[[Visit], str | bytes], **fields: str) -> Handler:
    async def send(visit: Visit) -> None:
        await reply(text(visit), **fields)(visit)

    return send


def html(*lines: str, body: str = TEXT, **fields: str) -> Handler:
    """A page with further header lines."""
    data = body.encode()
    fields = {"content_type": "text/html", "content_length": str(len(data)), **fields}
    return raw(head("200 OK", *lines, **fields) + data)


# Bombs: small on the wire, endless when inflated


@lru_cache
def gzip_bomb(blocks: int = 1024, text: bytes = b"<p>farm</p>", window: int = 31) -> bytes:
    """A flushed block of a MiB, which may be repeated `blocks` times."""
    packer = zlib.compressobj(9, zlib.DEFLATED, window)
    text = text * (2**20 // len(text))
    first = packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH)
    block = packer.compress(text) + packer.flush(zlib.Z_FULL_FLUSH)
    return first + block * blocks


@lru_cache
def brotli_bomb() -> bytes:
    return bytes(brotli.compress(b"<p>farm</p>" * (2**26 // 11), quality=1))


def packed(data: Callable[[], bytes], encoding: str, content_type: str = "text/html") -> Handler:
    """A body in a content encoding, created at the first request."""

    async def send(visit: Visit) -> None:
        body = data()
        await visit.send(
            head(content_type=content_type, content_encoding=encoding, content_length=str(len(body))) + body
        )

    return send


HTML_HEAD = head(content_type="text/html")
CHUNKED = head(content_type="text/html", transfer_encoding="chunked")
POISONED = head(content_type="text/html", content_length="8") + b"poisoned"
EMPTY_BLOCK = b"\0\0\0\xff\xff"  # a stored block of deflate without content


def page_of_links(visit: Visit, names: Iterator[str]) -> str:
    return TEXT + "".join(f'<a href="{name}">{name}</a>' for name in names)


def calendar_page(visit: Visit) -> str:
    day = int(visit.path.rpartition("/")[2]) if visit.path.rpartition("/")[2].isdigit() else 0
    return page_of_links(visit, (f"/day/{day + n}" for n in range(1, 10_001)))


def session_page(visit: Visit) -> str:
    return page_of_links(visit, (f"/sid{visit.number}{n}{visit.path[:40]}" for n in range(50)))


async def hops(visit: Visit) -> None:
    number = int(visit.path.rpartition("/")[2] or 0) if visit.path.startswith("/hop/") else 0
    await to(f"/hop/{number + 1}")(visit)


def many_links(visit: Visit) -> str:
    """10,000 links, just below the cap of a page."""
    return page_of_links(visit, (f"/{'ab' * 35}{n}" for n in range(10_000)))


def robots_txt(body: str | bytes) -> Handler:
    return reply(body, content_type="text/plain")


def robots_of(body: str, rest: Handler) -> dict[str, Handler]:
    return {"/robots.txt": robots_txt(body), "*": rest}


def paths(*names: str) -> frozenset[str]:
    return frozenset(names)


def hopping_robots(hops: int, end: Handler) -> dict[str, Handler]:
    paths = ["/robots.txt", *(f"/r{n}" for n in range(1, hops))]
    found = {path: to(f"/r{n}") for n, path in enumerate(paths, 1)}
    return {**found, f"/r{hops}": end, "*": reply(TEXT)}


def on_page(name: str, ends: Ends, handler: Handler, **more: Any) -> Attack:
    """An attack by the hit's page; there is no sitemap."""
    return Attack(name, ends, {"/x": handler, "/sitemap.xml": reply("", "404 Not Found")}, **more)


def on_sitemap(name: str, handler: Handler) -> Attack:
    """An attack by a sitemap, which costs no page."""
    return Attack(name, FETCHED, {"/x": reply(TEXT), "*": handler, "/robots.txt": reply("", "404 Not Found")})


def on_robots(name: str, ends: Ends, handler: Handler, **more: Any) -> Attack:
    """An attack by robots.txt."""
    return Attack(name, ends, {"/robots.txt": handler, "*": reply(TEXT)}, **more)


def on_tdmrep(name: str, handler: Handler) -> Attack:
    """An attack by tdmrep.json, which costs no page."""
    return Attack(name, FETCHED, {"/.well-known/tdmrep.json": handler, "*": reply(TEXT)})


def sitemap_index(visit: Visit, *names: str) -> str:
    places = "".join(f"<sitemap><loc>http://{visit.host}:{visit.port}{name}</loc></sitemap>" for name in names)
    return f"<sitemapindex>{places}</sitemapindex>"


FAR = f"http://{INTRANET}:{{port}}/secret"
DISALLOW = "User-agent: *\nDisallow: /"
LAUGHS = (
    '<!DOCTYPE x [<!ENTITY a "ha">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefghi", "bcdefghij", strict=True))
    + "]><urlset><url><loc>http://laughs.hostile.test/&j;</loc></url></urlset>"
)
