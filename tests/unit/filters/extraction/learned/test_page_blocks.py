"""The text blocks of a page: their order, their edges, their characters in links and code, and pages of any shape."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.extraction.blocks import JOINED, BlockKind
from filters.extraction.html_tree import ParseFailed, parse
from filters.extraction.learned.page_blocks import UNREAD, PageBlocks, page_blocks
from filters.extraction.main_text import read
from filters.structure.page_lines import characters_of, page_lines, visible_text
from tests.support.pages.extraction_peer import gold_pages


def blocks(body: str) -> PageBlocks:
    found = page_blocks(parse(f"<html><head><title>t</title></head><body>{body}</body></html>"))
    assert found is not None
    return found


def words(found: PageBlocks) -> list[str]:
    return [found.vocabulary[place] for place in found.word]


def test_a_block_ends_where_a_block_element_begins_or_ends() -> None:
    """Inline elements stay in the line; text after an element, and a line break, is a line of its own."""
    found = blocks(
        "one<p>two <b>three</b><i>four</i> five<br>six</p>seven <span><div>eight</div>nine</span> ten<hr>end"
    )
    assert found.lines == ["one", "two threefour five", "six", "seven", "eight", "nine ten", "end"]
    assert [found.tags[place] for place in found.holder] == ["body", "p", "p", "body", "div", "body", "body"]
    assert words(found) == " ".join(found.lines).split() and found.first_word.tolist() == [0, 1, 4, 5, 6, 7, 9, 10]


def test_kinds_and_characters_are_those_of_the_block_table() -> None:
    """The nearest heading, item, cell, quote or preformatted text is the kind; links and code have their characters."""
    found = blocks(
        "<h2>a <a href=x>head</a></h2><ul><li>item<p>more</p></li></ul><table><tr><td>cell</td></tr></table>"
        "<blockquote><p>said</p></blockquote><pre>for i:\n  go</pre>"
        "<p>call <code>f( x )</code> or <a href=y>it </a>.</p>"
    )
    kinds = ["HEADING", "ITEM", "ITEM", "CELL", "QUOTE", "CODE", "PARAGRAPH"]
    assert [BlockKind(kind).name for kind in found.kind] == kinds
    assert found.link_chars.tolist() == [4, 0, 0, 0, 0, 0, 2]
    assert found.code_chars.tolist() == [0, 0, 0, 0, 0, 9, 6]
    assert found.links.tolist() == [1, 0, 0, 0, 0, 0, 1]


_MARKED = st.lists(
    st.tuples(
        st.sampled_from(["", "a", "code", "a><code", "code><a", "span"]), st.sampled_from(["one", "two three", "4"])
    ),
    min_size=1,
    max_size=5,
)


@given(st.lists(_MARKED, min_size=1, max_size=4))
def test_links_and_code_are_counted_as_in_the_text_of_trafilatura(paragraphs: list[list[tuple[str, str]]]) -> None:
    """Code in a link, and a link in code, is code; so the block tables of both extractors mean the same."""
    html = ""
    for pieces in paragraphs:
        html += "<p>"
        for tags, text in pieces:
            names = tags.split("><") if tags else []
            html += "".join(f"<{name}>" for name in names) + text + "".join(f"</{name}>" for name in reversed(names))
        html += "</p>"
    found = blocks(html)
    body = parse(f"<html><body>{html}</body></html>").find("body")
    for link in body.iter("a"):
        link.tag = "ref"
    _, rows = read(body)
    lines: list[list[int]] = []
    for row in rows:
        if not row.kind & JOINED:
            lines.append([0, 0])
        lines[-1] = [lines[-1][0] + row.link_chars, lines[-1][1] + row.code_chars]
    assert [list(pair) for pair in zip(found.link_chars.tolist(), found.code_chars.tolist(), strict=True)] == lines


def test_what_a_reader_does_not_see_is_no_text() -> None:
    """Scripts, options and drawings are left out, and the text after them stays."""
    unseen = "<script>s</script>a<style>s</style>b<select><option>s</option></select>c<svg><text>s</text></svg>d"
    assert blocks(f"<p>{unseen}").lines == ["a", "b", "c", "d"]
    assert page_blocks(parse("<html><head><title>t</title></head><body> <p> </p></body></html>")) is None


def test_hidden_elements_and_names_are_known_by_place() -> None:
    """Class, id, role and itemprop of an element are its names; style and the attribute `hidden` hide."""
    found = blocks("<div class='a b' id=c role=main>x<p style='display: none'>y<p hidden>z<p style='color:red'>w</div>")
    assert found.names == [(found.tags.index("div"), "a b c main")]
    assert sorted(found.lines[i] for i, place in enumerate(found.holder) if place in found.hidden) == ["y", "z"]


_INNER = st.recursive(
    st.sampled_from(["", " ", "one", " two ", "three&amp;four"]),
    lambda inner: st.builds(
        lambda tag, parts: f"<{tag}>{''.join(parts)}</{tag}>",
        st.sampled_from(["div", "b", "a", "section", "span", "em"]),
        st.lists(inner, max_size=4),
    ),
    max_leaves=30,
)


@given(st.lists(_INNER, max_size=5))
def test_the_lines_are_those_that_the_page_has(parts: list[str]) -> None:
    """Another way to cut a page, by a stylesheet, gives the same lines; subtrees are ranges of places."""
    tree = parse(f"<html><body><div>{''.join(parts)}</div></body></html>")
    found = page_blocks(tree)
    assert (set(found.lines) if found else set()) == page_lines(characters_of(visible_text(tree)))
    if found:
        for place, last in enumerate(found.last):
            inside = {place}
            for other in range(place + 1, len(found.tags)):
                inside |= {other} if found.parent[other] in inside else set()
            assert inside == set(range(place, last + 1))


def test_a_deep_page_and_one_of_many_blocks_are_read() -> None:
    """400 nested elements, and 100,000 blocks; text between them is in order."""
    deep = blocks("".join(f"<div>{number}" for number in range(400)) + "</div>" * 400)
    assert words(deep) == [str(number) for number in range(400)]
    many = blocks("".join(f"<p>{number}" for number in range(100_000)))
    assert words(many) == [str(number) for number in range(100_000)] and len(many.lines) == 100_000


@pytest.mark.data
def test_real_pages_keep_their_visible_text(shared: Path) -> None:
    """The lines are lines of the stylesheet, which lacks none but those in elements that are not read."""
    for page in gold_pages(shared / "data" / "pages" / "readability", every=6):
        try:
            tree = parse(page.html)
        except ParseFailed:
            continue
        found = page_blocks(tree)
        assert found is not None
        for element in list(tree.iter(*UNREAD)):
            element.drop_tree()
        assert (
            page_lines(characters_of(visible_text(tree)))
            <= set(found.lines)
            <= page_lines(characters_of(visible_text(parse(page.html))))
        )
