"""Every part of a page reaches its tree, or the page has an error: parser limits, text after the root element."""

from __future__ import annotations

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from lxml.html import HtmlElement
from trafilatura.utils import load_html

from filters.extraction.html_tree import MAX_DEPTH, ParseFailed, new_parser, parse
from filters.extraction.interface import ExtractError

END = "<p>the end of the page</p>"


def page(body: str) -> str:
    return f"<html><head><title>t</title></head><body>{body}</body></html>"


def text_of(html: str) -> str:
    return " ".join("".join(parse(html).itertext()).split())


def nested(depth: int, tag: str = "div") -> str:
    """A page whose deepest element is at `depth`, counting from 1, with text in it and after it."""
    inner = depth - 2
    return page(f"<{tag}>" * inner + "deepest" + f"</{tag}>" * inner + END)


def test_tree_is_trafilaturas() -> None:
    """For an ordinary page the tree equals that of Trafilatura's own parser, except for the class of its forms."""
    html = page(
        "<!-- no --><form><input name=a><p>one &amp; <b>two</b></form><?pi?><script>if (a < b) c()</script>" + END
    )
    ours, theirs = parse(html), load_html(html)
    assert theirs is not None
    assert etree.tostring(ours) == etree.tostring(theirs)
    assert {type(element) for element in ours.iter()} == {HtmlElement}


@pytest.mark.parametrize(
    "html",
    [
        nested(257),
        nested(MAX_DEPTH),
        nested(300, "b").replace("</b>", ""),
        page("</x>" * 200 + nested(300)),
        page("<p>" + "a" * 10_000_100 + "</p>" + END),
        page(f"<p title='{'a' * 10_000_100}'>x</p>{END}"),
        page(f"<!--{'a' * 10_000_100}-->{END}"),
    ],
    ids=["deep", "deepest", "unclosed", "behind many errors", "huge text", "huge attribute", "huge comment"],
)
def test_page_that_stops_the_parser_is_read_to_its_end(html: str) -> None:
    """If libxml2's usual limits would cut the tree silently, our tree still has the end of the page."""
    theirs = load_html(html)
    assert theirs is None or "the end of the page" not in "".join(theirs.itertext())
    assert text_of(html).endswith("the end of the page")


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 2_000, 3_000, 40_000])
def test_page_nested_too_deeply_is_named(depth: int) -> None:
    """Beyond the limit a page is refused with this error, with any amount of text before it."""
    with pytest.raises(ParseFailed) as refused:
        parse(page(END + nested(depth)))
    assert refused.value.error == ExtractError.TOO_DEEP


def test_page_that_stops_the_parser_all_the_same_is_named() -> None:
    """If the parser stops even without its limits, the page has a named error, because a part of it is lost."""
    with pytest.raises(ParseFailed) as refused:
        parse(page("<p>" + "a" * 10_000_100 + "</p>" + END), lambda _: new_parser(huge=False))
    assert refused.value.error == ExtractError.PARSER_STOPPED


@pytest.mark.parametrize(
    ("html", "text"),
    [
        (page("one") + "two", "one two"),
        (page("one") + "<p>two</p> three", "one two three"),
        (page("one") + page("two") + page("three"), "one two three"),
        ("<html><body>one</html> two <p>three</html> four", "one two three four"),
        ("<html><head></head></html> one", "one"),
        (page("one") + "<title>two</title> three", "one two three"),
    ],
)
def test_what_stands_after_the_page_belongs_to_it(html: str, text: str) -> None:
    """Text, elements and whole documents after `</html>` are in the tree, in order, without their heads."""
    root = parse(html)
    body = root.find("body")
    assert root.getnext() is None
    assert [piece for piece in " ".join(body.itertext()).split() if piece != "t"] == text.split()


def test_page_without_html_at_its_beginning_is_a_page() -> None:
    """A page that begins with unknown markup has its text, although Trafilatura's own parser refuses it."""
    html = f"<text id='1'><div>{END}</div></text>"
    assert load_html(html) is None
    assert text_of(html) == "the end of the page"


@pytest.mark.parametrize("character", ["\0", "\x01", "\x1b", "\ufffe", "\uffff", "\ud800", "\udfff"])
def test_characters_that_xml_does_not_have_end_nothing(character: str) -> None:
    """Controls and non-characters are removed, and lone surrogates become question marks; the text after them stays."""
    kept = "?" if 0xD800 <= ord(character) < 0xE000 else ""
    assert text_of(page(f"<p>one{character}two</p>{END}")) == f"tone{kept}twothe end of the page"


@pytest.mark.parametrize("declared", ["utf-16", "no-such", "shift_jis"])
def test_charset_that_a_page_declares_is_not_believed(declared: str) -> None:
    """A charset declared inside a page, in HTML or XML, changes nothing, because the text is already decoded."""
    html = page("<p>Grüße</p>").replace("<title>", f"<meta charset={declared}><title>")
    assert text_of(html) == "tGrüße"
    assert text_of(f"<?xml version='1.0' encoding='{declared}'?>{html}") == "tGrüße"


TAGS = "<html> </html> <body> </body> <head> </head> <p> </p> <div> <b> <frameset> <table> <tr> <li> <a|href=' '> &lt;"
ODD = "<!-- --> <![CDATA[ ]]> <?php <!DOCTYPE|html> \0 \ud800"
PIECES = st.sampled_from([piece.replace("|", " ") for piece in f"{TAGS} {ODD}".split(" ")])


@given(st.lists(PIECES | st.text(string.ascii_letters + " <>&ü\ud800", max_size=5), max_size=40))
def test_any_text_is_one_tree_or_an_error(pieces: list[str]) -> None:
    """Any pieces of HTML in any order give one root or a named error."""
    try:
        root = parse("".join(pieces))
    except ParseFailed as refused:
        assert refused.error in list(ExtractError)
    else:
        assert root.tag == "html" and root.getnext() is None and root.getprevious() is None
