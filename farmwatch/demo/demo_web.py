"""The demo's web: its sites, their authors, and the searches that lead to them.

Eleven sites have articles by a language model, eleven have prose by people (one of them is slow), and the robots.txt of
one disallows everything. Of each kind some have too few for a verdict. All hosts end in `.example`, so none exists.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from importlib import resources
from itertools import cycle, islice
from typing import NamedTuple

from farmwatch.demo.human_pages import human_pages
from farmwatch.demo.server import Response
from farmwatch.demo.site_pages import Article, DemoSite, Family, llm_articles
from stream.schema.vocabulary import SiteClass, Truth

SLOW_HOST = "archive.patientpages.example"
CLOSED_HOST = "members.closedshelf.example"
FEW = 3  # articles of a small site, at most: too few for a verdict
MOST_HUMAN_PAGES = 12  # of a site; fewer if the running Python has less prose

_LLM_SITES: dict[str, tuple[str, Family, str]] = {
    "balcony.potandsoil.example": ("Pot and Soil", Family.MAGAZINE, "Jo Fern"),
    "blog.leafycorner.example": ("Leafy Corner", Family.JOURNAL, "Ivy Marsh"),
    "happytailguide.example": ("Happy Tail Guide", Family.MAGAZINE, "Robin Hale"),
    "homeofficehints.example": ("Home Office Hints", Family.JOURNAL, "Max Arden"),
    "morninghabits.example": ("Morning Habits", Family.MAGAZINE, "Dana Brook"),
    "pennywisepath.example": ("Pennywise Path", Family.JOURNAL, "Chris Lowell"),
    "strideandthrive.example": ("Stride and Thrive", Family.JOURNAL, "Sam Fields"),
    "thriftyhousehold.example": ("Thrifty Household", Family.MANUAL, "Lee Carver"),
    "tidynest.example": ("Tidy Nest", Family.MAGAZINE, "Jamie Quill"),
    "wanderlightly.example": ("Wander Lightly", Family.MANUAL, "Alex Rivers"),
    "www.gadgetgleam.example": ("Gadget Gleam", Family.MANUAL, "Morgan Vale"),
}
_HUMAN_SITES: dict[str, tuple[str, Family]] = {
    "docs.serpentmanual.example": ("Serpent Manual", Family.MANUAL),
    "reference.coilbook.example": ("Coil Book", Family.MANUAL),
    "learn.scaletrail.example": ("Scale Trail", Family.MAGAZINE),
    "notes.hissandtell.example": ("Hiss and Tell", Family.JOURNAL),
    "www.syntaxalmanac.example": ("Syntax Almanac", Family.JOURNAL),
    "guide.objectgarden.example": ("Object Garden", Family.MANUAL),
    "handbook.slitherandson.example": ("Slither and Son", Family.MAGAZINE),
    SLOW_HOST: ("Patient Pages", Family.JOURNAL),
}
_SMALL_HUMAN_SITES: dict[str, tuple[str, Family]] = {
    "basics.scalebook.example": ("Scale Book", Family.MAGAZINE),
    "snippets.coilandkeep.example": ("Coil and Keep", Family.JOURNAL),
    "www.smallserpent.example": ("Small Serpent", Family.MANUAL),
}
_TEXT = {"Content-Type": "text/plain; charset=utf-8"}
_CLOSED_SITE = {
    "/robots.txt": Response(headers=_TEXT, body=b"User-agent: *\nDisallow: /\n"),
    "/": Response(headers=_TEXT, body=b"robots.txt disallows this page: a crawler that shows it is wrong.\n"),
}
_HUMAN_AUTHOR = "the authors of the Python documentation"


class DemoWeb(NamedTuple):
    """The web, the hits, and the truth."""

    hosts: Mapping[str, Mapping[str, Response]]  # host → path → response, for `LoopbackWeb`
    hits: list[dict[str, object]]  # search results: `query`, `rank` (from 1) and `url`
    truth: dict[str, Truth]  # host → author of its articles; the closed site has none
    expected: dict[str, str]  # host → expected site verdict


def build_demo_web(*, slow_s: float = 0.3) -> DemoWeb:
    """Build the demo's web; each answer of the slow site takes `slow_s` seconds."""
    sites: dict[str, DemoSite] = {}
    truth: dict[str, Truth] = {}
    for host, articles in llm_articles().items():
        name, family, author = _LLM_SITES[host]
        sites[host] = DemoSite(host, name, family, articles, author=author)
        truth[host] = Truth.LLM
    pages_of_people = human_pages()
    each = min((len(pages_of_people) - FEW * len(_SMALL_HUMAN_SITES)) // len(_HUMAN_SITES), MOST_HUMAN_PAGES)
    next_pages = iter(pages_of_people)
    for host, (name, family) in (_HUMAN_SITES | _SMALL_HUMAN_SITES).items():
        delay_s = slow_s if host == SLOW_HOST else 0.0
        pages = islice(next_pages, FEW if host in _SMALL_HUMAN_SITES else each)
        articles = [
            Article(host, f"section-{n}", page.title, "\n\n".join(page.paragraphs)) for n, page in enumerate(pages, 1)
        ]
        sites[host] = DemoSite(host, name, family, articles, author=_HUMAN_AUTHOR, delay_s=delay_s)
        truth[host] = Truth.HUMAN
    small = {CLOSED_HOST, *(host for host, site in sites.items() if len(site.articles) <= FEW)}
    expected: dict[str, str] = truth | dict.fromkeys(small, SiteClass.UNCLASSIFIABLE)
    next_articles = {host: cycle(site.articles) for host, site in sites.items()}  # for results without a path
    searches = resources.files("farmwatch.demo").joinpath("searches.toml").read_text(encoding="utf-8")
    hits: list[dict[str, object]] = []
    for query, results in tomllib.loads(searches).items():
        for rank, result in enumerate(results, 1):
            host, slash, path = result.partition("/")
            url = f"http://{host}{slash + path or next(next_articles[host])}"
            hits.append({"query": query, "rank": rank, "url": url})
    return DemoWeb({**sites, CLOSED_HOST: _CLOSED_SITE}, hits, truth, expected)
