"""`default` on whole pages, measured as MEASURE does."""

from __future__ import annotations

import pytest

from filters.rules.judgement import judge
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from stream.schema.records import Verdict

_NAVIGATION = "<nav><ul><li><a href='/'>Home</a></li><li><a href='/news'>News</a></li></ul></nav>"
_TEXT = (
    "The river rose in the night and by morning the lower meadow was a lake. My father had moved the sheep the day"
    " before, because the herons had left the island, and herons know. We rowed to the barn, where the hay was dry,"
    " and waited there until the water stood still. On the third day it went back, slowly, and left a line of straw on"
    " every fence post, which you can see today."
)
_WORDS = _TEXT.split()


def paragraph(number: int) -> str:
    """Sixty different words in sentences."""
    turned = _WORDS[number * 7 % len(_WORDS) :] + _WORDS[: number * 7 % len(_WORDS)]
    return f"<p>In the year {1900 + number} it was so. {' '.join(turned[:60])}.</p>"


def judged(
    body: str, url: str = "https://a.example/the-flood-of-that-spring", head: str = "", ruleset: str = "default"
) -> Verdict:
    html = f"<!doctype html><html><head><title>The flood</title>{head}</head><body>{_NAVIGATION}{body}</body></html>"
    features = Measurer(MeasureSettings()).measure(url, html, "a.example")
    return judge(features, load_ruleset(ruleset))


def test_an_article_is_kept() -> None:
    """A text of ten paragraphs is an article, with and without metadata."""
    text = "<article><h1>The flood</h1>" + "".join(map(paragraph, range(10))) + "</article>"
    assert judged(text).failed == []
    dated = "<meta property='og:type' content='article'><meta name='author' content='A. River'>"
    assert judged(text, head=dated).failed == []


LINKS = "".join(f"<li><a href='/topic/{n}'>{' '.join(_WORDS[n % 40 : n % 40 + 9])} {n}</a></li>" for n in range(90))
TEASERS = "".join(
    f"<div class='teaser'><h3><a href='/n{n}'>{' '.join(_WORDS[n : n + 6])}</a></h3><p>{' '.join(_WORDS[n : n + 25])}"
    f" <a href='/n{n}'>Read more</a></p></div>"
    for n in range(24)
)
CODE = "".join(
    f"<pre><code>{'x = gauge.read() or gauge.last  # one of them' * 3}\nreturn {n}</code></pre>" for n in range(60)
)


LISTING = "".join(f"level_{n} = {' | '.join(_WORDS[n : n + 5])}\n" for n in range(60))
SCORES = "".join(
    f"<tr><td>{_WORDS[n]} United</td><td>{n % 4} : {n % 3}</td><td>{_WORDS[n + 3]} Town</td><td>{n + 1} May</td></tr>"
    for n in range(50)
)
SPEC = "".join(f"<tr><th>Width of the {_WORDS[n]} with its cover</th><td>{n} mm or more</td></tr>" for n in range(50))
STEPS = "".join(f"<li>Turn {_WORDS[n]} to the left.<ul><li>Then wait</li><li>for it</li></ul></li>" for n in range(50))
NO_PROSE = {
    "code": (f"<pre><code>{LISTING}</code></pre>", "link_code_share"),
    "links": (f"<ul>{LINKS}</ul>", "link_code_share"),
    "scores": (f"<table>{SCORES}</table>", "list_table_share"),
    "specification": (f"<table>{SPEC}</table>", "list_table_share"),
    "steps": (f"<ol>{STEPS}</ol>", "list_table_share"),
}


@pytest.mark.parametrize("name", NO_PROSE)
@pytest.mark.parametrize("wrapper", ["", "article", "main", "div"])
@pytest.mark.parametrize("ruleset", ["default", "notes"])
def test_a_page_of_one_block_of_code_links_or_cells_is_no_article(name: str, wrapper: str, ruleset: str) -> None:
    """The rules on links, code, lists and tables drop it, whatever the article model thinks and wherever it stands."""
    body, rule = NO_PROSE[name]
    body = f"<h1>Overview</h1>{body}"
    verdict = judged(f"<{wrapper}>{body}</{wrapper}>" if wrapper else body, ruleset=ruleset)
    assert rule in verdict.failed
    assert verdict.extract_path != "none"


@pytest.mark.parametrize("wrapper", ["div", "p", "li", "article", "section", "h2", "h3", "td", "span"])
@pytest.mark.parametrize("around", ["", "main", "ul", "article"])
def test_link_teasers_are_no_article_of_the_notes(wrapper: str, around: str) -> None:
    """Thirty linked teasers are dropped for their links in every wrapper, also where the extractor loses the links."""
    teasers = "".join(f"<{wrapper}><a href='/{n}'>{' '.join(_WORDS[n : n + 20])}</a></{wrapper}>" for n in range(30))
    verdict = judged(f"<{around}>{teasers}</{around}>" if around else teasers, ruleset="notes")
    assert "link_code_share" in verdict.failed


@pytest.mark.parametrize("body", [f"<ul>{LINKS}</ul>", TEASERS, CODE], ids=["links", "teasers", "code"])
def test_pages_of_links_teasers_or_code_are_no_articles(body: str) -> None:
    """A list of links, whose link share flat text hides, a front page of teasers and a page that is all code."""
    assert "article_probability" in judged(f"<main>{body}</main>", "https://a.example/overview").failed


def test_a_challenge_is_no_article() -> None:
    """An answer that asks for a check of the browser fails `no_page`."""
    html = "<title>Just a moment...</title><p>Enable JavaScript and cookies to continue</p>"
    features = Measurer(MeasureSettings()).measure("https://a.example/story", html, "a.example")
    assert "no_page" in judge(features, load_ruleset("default")).failed
