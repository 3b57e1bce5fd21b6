"""What is written of a page, hostile ones included."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from filters.extraction.html_tree import ParseFailed
from filters.settings import MeasureSettings
from lab.templates.classes import CUR, PREV, UP, Node, NodeClass, bits_of, class_of, nodes_of
from lab.templates.crosses import positional_tokens, tag_paths
from lab.templates.words import Words, page_tree, words_of
from lab.templates.writing import Written, written

LARGE = MeasureSettings(max_elements=200_000, max_html_bytes=100 * 1024 * 1024)


def page(html: str, settings: MeasureSettings = LARGE) -> Words:
    return words_of(page_tree(html.encode("utf-8", "surrogatepass"), "utf-8", settings))


def split(words: Words, other: Words) -> Written:
    """A page beside another of its site, without snapshots."""
    nodes = nodes_of(words, bits_of(words.words, {UP: other.words}))
    return written(words, nodes, [class_of(node.bits, CUR | UP) for node in nodes], "http://a.example/<b>")


MENU = "<ul><li>home page</li> <li>all the news</li></ul>"
ONE = page(f"<html><body>{MENU}<p>The river rose <b>slow</b>ly &lt; fast.</p><br>line two<br>line three</body></html>")
OTHER = page(f"<html><body>{MENU}<p>Nothing happened.</p></body></html>")


def test_the_text_is_the_content_by_block() -> None:
    """Content only, a line for each block, with the blanks between words that the page has."""
    assert split(ONE, OTHER).text == "The river rose slowly < fast.\nline two\nline three\n"


def test_the_html_marks_each_node_and_each_element_of_one_class() -> None:
    """A mark has the class and the bits of its node; elements around nodes of one class have it."""
    html = split(ONE, OTHER).html
    assert (
        '<ul data-class="boilerplate"><li data-class="boilerplate"><mark data-class="boilerplate" data-bits="11000">'
        in html
    )
    assert '<p data-class="content"><mark data-class="content" data-bits="10000">The river rose </mark><b ' in html
    assert "ly &lt; fast." in html
    assert "<title>http://a.example/&lt;b&gt;</title>" in html


class _Seen(HTMLParser):
    """Tags and attributes of the written page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes.update(name for name, _ in attrs)
        self.links += [value or "" for name, value in attrs if name == "href"]


HOSTILE = [
    "<script>alert(1)</script><p onclick=alert(1)>x</p>",
    "<img src=x onerror=alert(1)><svg onload=alert(1)><script>alert(1)</script></svg>",
    "<a href='javascript:alert(1)'>x</a><a href=' http://b.example/\"><script>'>y</a><a href='http://c.example'>z</a>",
    "<iframe srcdoc='<script>alert(1)</script>'></iframe><object data=x></object><embed src=x><base href=x>",
    "<noscript><p title='</noscript><img src=x onerror=alert(1)>'></noscript>",
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=alert(1)&gt;'>",
    "<textarea><img title='</textarea><img src=x onerror=alert(1)>'></textarea>",
    "<xmp><p title='</xmp><script>alert(1)</script>'>x</p></xmp><plaintext>y",
    "<p style='background:url(http://c.example)' class='\"><script>' title='<script>'>x</p>",
    "<meta http-equiv=refresh content='0;url=http://c.example'><link rel=stylesheet href=http://c.example>x",
    "<form action=http://c.example><input autofocus onfocus=alert(1)><button>x</button></form>",
    "<x:y onclick=alert(1)>x</x:y><p/onclick=alert(1)>y</p><body onload=alert(1)>",
    "&lt;script&gt;alert(1)&lt;/script&gt; <mark data-class=content>x</mark>",
    "\ud800 \x00 \x0c x &#0; &#xD800; &#x1F600;",
]


@pytest.mark.parametrize("body", HOSTILE, ids=range(len(HOSTILE)))
def test_no_script_of_a_page_is_written(body: str) -> None:
    """No script, frame, handler, load, form or style of the page is left; links are http(s); the policy is first."""
    html = split(page(f"<html><body>{body}<p>word</p></body></html>"), OTHER).html
    seen = _Seen(html)
    assert not seen.tags & {"script", "iframe", "object", "embed", "base", "link", "form", "input", "svg", "math"}
    assert not seen.tags & {"style", "textarea", "noscript", "xmp", "plaintext", "template"} - {"style"}
    assert html.count("<style>") == 1 and html.count("<meta") == 2
    allowed = {"class", "title", "href", "alt", "data-class", "data-bits", "charset", "http-equiv", "content"}
    assert seen.attributes <= allowed
    assert all(re.match("https?://", link) for link in seen.links)
    assert html.index("default-src 'none'") < html.index("<body>")


def test_a_deep_page_below_the_limit_is_split() -> None:
    """500 nested elements are no recursion."""
    words = page("<html><body>" + "<div>" * 500 + "the innermost words")
    assert split(words, OTHER).text == "the innermost words\n"
    assert (
        len(tag_paths(words.tree)) == len(positional_tokens(words.tree)) == 502 + (words.tree.find("head") is not None)
    )


def test_20_000_equal_nodes_are_split() -> None:
    """A page of 20,000 texts, all alike, is compared and written (in quadratic time it would take hours)."""
    words = page("<html><body>" + "<p>the same words</p>" * 20_000)
    found = split(words, page("<html><body>" + "<p>the same words</p>" * 19_999))
    assert found.html.count("data-bits") == 20_000


def test_100_000_nodes_of_one_text_are_written() -> None:
    """A text whose every word is a node of its own, and a line of as many elements, take linear time."""
    words = page("<html><body><p>" + "word " * 100_000 + "<b>x</b>" * 50_000)
    nodes = nodes_of(words, [CUR, CUR | UP] * 75_000)
    found = written(words, nodes, [NodeClass.CONTENT] * len(nodes), "t")
    assert len(nodes) == 150_000 == found.html.count("data-bits")
    assert len(found.text) == 5 * 100_000 + 50_000 + 1


def test_a_page_of_50_megabytes_is_refused() -> None:
    """A page above measure.max_html_bytes is refused before it is parsed; one long text below it has one node."""
    with pytest.raises(ParseFailed, match="too_large"):
        page("<html><body><p>" + "word " * 10_000_000, MeasureSettings())
    words = page("<html><body><p>" + "word " * 400_000, MeasureSettings())
    assert [node.end for node in nodes_of(words, [CUR | PREV] * 400_000)] == [400_000]


@pytest.mark.parametrize("html", ["<p>", "<html></html>", "<html><head><title>x</title></head></html>", "<frameset>"])
def test_a_page_without_words_has_no_nodes(html: str) -> None:
    """Such a page is written as an empty one."""
    words = page(html)
    assert nodes_of(words, []) == list[Node]()
    assert written(words, [], list[NodeClass](), "t").text == ""
