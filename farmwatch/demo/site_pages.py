"""One site of the demo: its articles, and everything else that a crawler meets on real sites.

Besides home page, robots.txt, sitemap and articles each site has: a list of links, a login page, a tag index, a page
with hardly any text, a page that robots.txt disallows, an article repeated under a second URL, an old URL that
redirects, an article that is sent gzip-encoded, and a calendar whose months go on for ever.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape

from farmwatch.demo.server import HTML, Response
from farmwatch.demo.templates import Family, Link, PageContent, PageStyle, article_path, links_html, render, text_html

_MONTH = re.compile(r"/calendar/([1-9]\d{3})/(0[1-9]|1[0-2])")

DISALLOWED = "/private/drafts"
LOGIN = "/login"
LINK_LIST = "/links"
TAG_INDEX = "/tag/all/"
NEARLY_EMPTY = "/contact"
FIRST_MONTH = "/calendar/2026/01"
OLD_PATH = "/old/first"
REPEATED = "/syndicated/copy"


@dataclass(frozen=True, slots=True)
class SiteText:
    """An article of a site: last part of its path, title, and text with `## ` headings between blank lines."""

    slug: str
    title: str
    text: str


class DemoSite(dict[str, Response]):
    """Path → response of one site. The calendar's months are made when asked: there are thousands."""

    def __init__(
        self, host: str, name: str, family: Family, texts: Sequence[SiteText], *, author: str, delay_s: float = 0.0
    ) -> None:
        """Build all pages, each of which takes `delay_s` to answer; `texts` needs at least one article."""
        super().__init__()
        self.host = host
        self._delay_s = delay_s
        self.articles = {article_path(family, text.slug): text for text in texts}
        menu = [("/", "Home"), (LINK_LIST, "Resources"), (TAG_INDEX, "Topics"), (FIRST_MONTH, "Calendar")]
        menu += [(NEARLY_EMPTY, "Contact"), (LOGIN, "Log in"), (DISALLOWED, "Drafts")]
        self._look = PageStyle(host, name, family, author, menu)
        self._add_articles()
        self._add_indexes()
        self._add_oddities()
        self._add_for_crawlers()
        self.update({path: replace(response, delay_s=delay_s) for path, response in self.items()})

    def __missing__(self, path: str) -> Response:
        """A month of the calendar, each linking to the next; KeyError for anything else."""
        month = _MONTH.fullmatch(path)
        if not month:
            raise KeyError(path)
        at = int(month[1]) * 12 + int(month[2]) - 1
        neighbours: list[Link] = [(_month_path(at + 1), "Next month"), (_month_path(at - 1), "Previous month")]
        days = "".join(f"<td>{day}</td>" for day in range(1, 29))
        main = f"<table><tr>{days}</tr></table><p>No events this month.</p>{links_html(neighbours)}"
        return replace(self._page(path, f"Calendar {month[1]}-{month[2]}", main), delay_s=self._delay_s)

    def _page(self, path: str, title: str, main: str) -> Response:
        return Response(body=render(self._look, PageContent(path, title, main)))

    def _links(self) -> list[Link]:
        return [(path, text.title) for path, text in self.articles.items()]

    def _add_articles(self) -> None:
        links = self._links()
        for number, (path, text) in enumerate(self.articles.items()):
            related = [links[(number + step) % len(links)] for step in (1, 2, 3)]
            self[path] = self._article(path, text, number, related)
        last = next(reversed(self.articles))
        self[last] = Response(
            headers={**HTML, "Content-Encoding": "gzip"}, body=gzip.compress(self[last].body, mtime=0)
        )
        self[REPEATED] = self._article(REPEATED, self.articles[last], 0, links[:3])

    def _article(self, path: str, text: SiteText, number: int, related: Sequence[Link]) -> Response:
        published = f"2026-04-{1 + number % 28:02}"
        page = PageContent(path, text.title, text_html(text.text), published=published, related=related)
        return Response(body=render(self._look, page))

    def _add_indexes(self) -> None:
        teasers = "".join(
            f'<div class="card"><h3><a href="{path}">{escape(text.title)}</a></h3>'
            f"<p>{escape(_teaser(text.text))}</p></div>"
            for path, text in self.articles.items()
        )
        self["/"] = self._page("/", self._look.name, teasers)
        self[TAG_INDEX] = self._page(TAG_INDEX, "All topics", links_html(self._links()))
        extra: list[Link] = [(REPEATED, "From our partners"), (OLD_PATH, "Where we began"), ("/gone", "Archive")]
        self[LINK_LIST] = self._page(LINK_LIST, "Useful resources", links_html([*extra, *self._links()]))

    def _add_oddities(self) -> None:
        fields = '<p>User <input name="user"></p><p>Password <input type="password" name="password"></p>'
        form = f'<form method="post">{fields}<button>Log in</button></form>'
        self[LOGIN] = self._page(LOGIN, "Log in", form)
        self[NEARLY_EMPTY] = self._page(NEARLY_EMPTY, "Contact", "<p>Write to us any time.</p>")
        draft = "<p>This page is disallowed by robots.txt: a crawler that shows it has not asked.</p>"
        self[DISALLOWED] = self._page(DISALLOWED, "Drafts", draft)
        self[OLD_PATH] = Response(301, {"Location": next(iter(self.articles))})

    def _add_for_crawlers(self) -> None:
        """robots.txt, and a sitemap of everything but the last two articles, which only links lead to."""
        sitemap = f"http://{self.host}/sitemap.xml"
        robots = f"User-agent: *\nDisallow: /private/\n\nSitemap: {sitemap}\n"
        self["/robots.txt"] = Response(headers={"Content-Type": "text/plain; charset=utf-8"}, body=robots.encode())
        paths = list(self.articles)
        listed = ["/", LINK_LIST, NEARLY_EMPTY, *(paths[:-2] if len(paths) > 2 else paths)]
        entries = "".join(
            f"<url><loc>http://{self.host}{path}</loc><lastmod>2026-05-02</lastmod></url>\n" for path in listed
        )
        xml = f"""<?xml version="1.0" encoding="UTF-8"?>
<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">
{entries}</urlset>
"""
        self["/sitemap.xml"] = Response(headers={"Content-Type": "application/xml"}, body=xml.encode())


def _month_path(months: int) -> str:
    return f"/calendar/{months // 12}/{months % 12 + 1:02}"


def _teaser(text: str) -> str:
    """The first sentence, as a home page shows it."""
    return re.split(r"(?<=[.!?])\s", text, maxsplit=1)[0]
