"""The test data as webs on loopback: each site with its host name and its hits."""

from __future__ import annotations

import html
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zstandard

from crawler.errors import UnusableUrl
from crawler.web.urls import host_of, normalise, origin_of
from farmwatch.demo.server import Response

Hosts = dict[str, dict[str, Response]]
HTML_HEADERS = {"Content-Type": "text/html; charset=utf-8"}


@dataclass
class Web:
    """Hosts and their pages, the lines of a hits file, and the truth of the sites."""

    hosts: Hosts = field(default_factory=lambda: defaultdict(dict))
    hits: list[str] = field(default_factory=list)
    truth: dict[str, str] = field(default_factory=dict)
    pages: int = 0
    bad_lines: int = 0  # hits without a page

    def add(self, other: Web) -> None:
        """Serve the other web too, whose hosts are others."""
        assert not self.hosts.keys() & other.hosts.keys()
        self.hosts.update(other.hosts)
        self.hits += other.hits
        self.truth |= other.truth
        self.pages += other.pages
        self.bad_lines += other.bad_lines


def labelled_pages(shared: Path, *, every: int = 1) -> Web:
    """Every labelled page with a URL, served under its host."""
    web = Web()
    inflate = zstandard.ZstdDecompressor()
    for number, (source, gold) in enumerate(_gold(shared / "data" / "pages")):
        url = gold.get("url")
        if not url or number % every:
            continue
        web.hits.append(json.dumps({"url": url, "query": source, "rank": number % 10 + 1}))
        try:
            normal = normalise(url)
        except UnusableUrl:  # a few labels have an unusable URL; the hits file keeps them as lines to skip
            web.bad_lines += 1
            continue
        body = (shared / "data" / "pages" / source / "html" / f"{gold['id']}.html.zst").read_bytes()
        path = normal.removeprefix(origin_of(normal))
        web.hosts[host_of(normal)][path] = Response(headers=HTML_HEADERS, body=inflate.decompress(body))
        web.pages += 1
    return web


def sample_web(shared: Path, count: int = 60, lengths: Mapping[str, int] | None = None) -> Web:
    """Up to 60 sites of 15 texts, each with sitemap and robots.txt, three hits per site. `lengths`: texts per site."""
    web = Web()
    raw = (shared / "data" / "sampleweb" / "pages.jsonl.zst").read_bytes()
    sites: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in zstandard.ZstdDecompressor().stream_reader(raw).read().splitlines():
        page = json.loads(line)
        sites[page["site"]].append(page)
    for name, texts in list(sites.items())[:: max(1, len(sites) // count)]:
        pages = texts if lengths is None else texts[: lengths.get(name, 0)]
        if not pages:
            continue
        host = f"{name}.example"  # its own registrable domain
        web.truth[host] = pages[0]["label"]
        urls = [f"http://{host}/articles/{n}" for n in range(len(pages))]
        for number, page in enumerate(pages):
            web.hosts[host][f"/articles/{number}"] = Response(headers=HTML_HEADERS, body=_article(page, urls))
        web.pages += len(pages)
        locations = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
        web.hosts[host]["/sitemap.xml"] = Response(
            headers={"Content-Type": "application/xml"},
            body=f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{locations}</urlset>'.encode(),
        )
        web.hosts[host]["/robots.txt"] = Response(
            headers={"Content-Type": "text/plain"},
            body=f"User-agent: *\nDisallow: /private\nSitemap: http://{host}/sitemap.xml\n".encode(),
        )
        web.hits += [json.dumps({"url": url, "query": name, "rank": n + 1}) for n, url in enumerate(urls[:3])]
    return web


def _gold(root: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for folder in sorted(p for p in root.iterdir() if p.is_dir()):
        with (folder / "gold.jsonl").open("rb") as lines:  # bytes: str.splitlines() also cuts at U+2028 inside a text
            for line in lines:
                yield folder.name, json.loads(line)


def _article(page: dict[str, Any], urls: list[str]) -> bytes:
    paragraphs = "".join(f"<p>{html.escape(p)}</p>" for p in page["text"].split("\n\n") if p.strip())
    links = "".join(f'<li><a href="{url}">Article {n}</a></li>' for n, url in enumerate(urls[:5]))
    title = html.escape(page["title"] or "Article")
    return (
        f"<!doctype html><html lang=en><head><meta charset=utf-8><title>{title}</title>"
        f"<meta property='og:type' content='article'></head><body>"
        f"<nav><ul>{links}</ul></nav><main><article><h1>{title}</h1>{paragraphs}</article></main>"
        f"<footer><p>Imprint and contact</p></footer></body></html>"
    ).encode()
