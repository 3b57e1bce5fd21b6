"""One site of the demo: its articles, and other pages as on real sites.

Besides the home page, robots.txt, a sitemap and articles, each site has: a list of links, a login page, a tag index, a
page with little text, a page that robots.txt disallows, a copy of an article, an old URL that redirects, an article in
gzip encoding, and an endless calendar.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import resources

import msgspec
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from farmwatch.demo.server import HTML, Response

_MONTH = re.compile(r"/calendar/([1-9]\d{3})/(0[1-9]|1[0-2])")

DISALLOWED = "/private/drafts"
LOGIN = "/login"
LINK_LIST = "/links"
TAG_INDEX = "/tag/all/"
NEARLY_EMPTY = "/contact"
FIRST_MONTH = "/calendar/2026/01"
OLD_PATH = "/old/first"
REPEATED = "/syndicated/copy"
_MENU = (
    ("/", "Home"),
    (LINK_LIST, "Resources"),
    (TAG_INDEX, "Topics"),
    (FIRST_MONTH, "Calendar"),
    (NEARLY_EMPTY, "Contact"),
    (LOGIN, "Log in"),
    (DISALLOWED, "Drafts"),
)
_LOGIN_FORM = Markup(
    '<form method="post"><p>User <input name="user"></p><p>Password <input type="password" name="password"></p>'
    "<button>Log in</button></form>"
)

Link = tuple[str, str]  # (href, text)


class Family(StrEnum):
    """The template of a site. Templates differ in the surroundings of the text, in element names and in URLs."""

    MAGAZINE = "magazine"
    JOURNAL = "journal"
    MANUAL = "manual"


_ARTICLE_PATHS = {Family.MAGAZINE: "/2026/04/{}/", Family.JOURNAL: "/posts/{}.html", Family.MANUAL: "/book/{}"}


class Article(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One article of a site: `slug` ends its path, `text` has paragraphs and `## ` headings between blank lines."""

    site: str
    slug: str
    title: str
    text: str


def llm_articles() -> dict[str, list[Article]]:
    """The articles by a language model (see their README), by site, in the order of the files."""
    sites: dict[str, list[Article]] = {}
    folder = resources.files("farmwatch.demo.articles")
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.name.endswith(".jsonl"):
            for line in entry.read_text(encoding="utf-8").splitlines():
                article = msgspec.json.decode(line, type=Article)
                sites.setdefault(article.site, []).append(article)
    return sites


@dataclass(frozen=True, slots=True)
class PageContent:
    """The content of a page; `published` is an ISO date, "" if the page is not an article."""

    path: str
    title: str
    main: Markup
    published: str = ""
    related: Sequence[Link] = ()


class DemoSite(dict[str, Response]):
    """Path → response of one site. The months of the calendar are built on demand."""

    def __init__(
        self, host: str, name: str, family: Family, texts: Sequence[Article], *, author: str, delay_s: float = 0.0
    ) -> None:
        """Build all pages; each answer takes `delay_s`. `texts` needs at least one article."""
        super().__init__()
        self.host, self.name, self.author, self.menu = host, name, author, _MENU
        self._family = family
        self._delay_s = delay_s
        self.articles = {_ARTICLE_PATHS[family].format(text.slug): text for text in texts}
        self._add_articles()
        self._add_indexes()
        self._add_page(LOGIN, "Log in", _LOGIN_FORM)
        self._add_page(NEARLY_EMPTY, "Contact", Markup("<p>Write to us any time.</p>"))
        draft = Markup("<p>This page is disallowed by robots.txt: a crawler that shows it is wrong.</p>")
        self._add_page(DISALLOWED, "Drafts", draft)
        self[OLD_PATH] = Response(301, {"Location": next(iter(self.articles))})
        self._add_for_crawlers()
        self.update({path: replace(response, delay_s=delay_s) for path, response in self.items()})

    def __missing__(self, path: str) -> Response:
        """A month of the calendar, with a link to the next; KeyError for any other path."""
        month = _MONTH.fullmatch(path)
        if not month:
            raise KeyError(path)
        at = int(month[1]) * 12 + int(month[2]) - 1
        others = ((at + 1, "Next month"), (at - 1, "Previous month"))
        neighbours = [(f"/calendar/{number // 12}/{number % 12 + 1:02}", text) for number, text in others]
        days = Markup("").join(Markup("<td>{}</td>").format(day) for day in range(1, 29))
        main = Markup("<table><tr>{}</tr></table><p>No events this month.</p>{}").format(days, _links_html(neighbours))
        return replace(self._page(PageContent(path, f"Calendar {month[1]}-{month[2]}", main)), delay_s=self._delay_s)

    def _page(self, page: PageContent) -> Response:
        return Response(body=_templates().get_template(f"{self._family}.html").render(site=self, page=page).encode())

    def _add_page(self, path: str, title: str, main: Markup) -> None:
        self[path] = self._page(PageContent(path, title, main))

    def _links(self) -> list[Link]:
        return [(path, text.title) for path, text in self.articles.items()]

    def _add_articles(self) -> None:
        links = self._links()
        for number, (path, text) in enumerate(self.articles.items()):
            related = [links[(number + step) % len(links)] for step in (1, 2, 3)]
            self[path] = self._article(path, text, number, related)
        last = next(reversed(self.articles))
        zipped = gzip.compress(self[last].body, mtime=0)
        self[last] = Response(headers={**HTML, "Content-Encoding": "gzip"}, body=zipped)
        self[REPEATED] = self._article(REPEATED, self.articles[last], 0, links[:3])

    def _article(self, path: str, text: Article, number: int, related: Sequence[Link]) -> Response:
        published = f"2026-04-{1 + number % 28:02}"
        blocks = [block.strip() for block in text.text.split("\n\n") if block.strip()]
        main = Markup("\n").join(
            Markup("<h2>{}</h2>").format(block[3:]) if block.startswith("## ") else Markup("<p>{}</p>").format(block)
            for block in blocks
        )
        return self._page(PageContent(path, text.title, main, published, related))

    def _add_indexes(self) -> None:
        card = Markup('<div class="card"><h3><a href="{}">{}</a></h3><p>{}</p></div>')
        teasers = []
        for path, text in self.articles.items():
            first_sentence = re.split(r"(?<=[.!?])\s", text.text, maxsplit=1)[0]
            teasers.append(card.format(path, text.title, first_sentence))
        self._add_page("/", self.name, Markup("").join(teasers))
        self._add_page(TAG_INDEX, "All topics", _links_html(self._links()))
        extra = [(REPEATED, "From our partners"), (OLD_PATH, "Where we began"), ("/gone", "Archive")]
        self._add_page(LINK_LIST, "Useful resources", _links_html([*extra, *self._links()]))

    def _add_for_crawlers(self) -> None:
        """robots.txt, and a sitemap without the last two articles, which only links lead to."""
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


@cache
def _templates() -> Environment:
    loader = PackageLoader("farmwatch.demo", "pages")
    templates = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    templates.globals["links"] = _links_html
    return templates


def _links_html(links: Sequence[Link]) -> Markup:
    items = Markup("").join(Markup('<li><a href="{}">{}</a></li>').format(href, text) for href, text in links)
    return Markup("<ul>{}</ul>").format(items)
