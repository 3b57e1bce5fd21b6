"""Segments of pages under the templates of threads, listings and articles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.extraction.html_tree import parse
from filters.segments.names import SegmentKind
from filters.segments.records import RecordTexts, records_of
from filters.segments.segments import segment_text, segments_of
from filters.structure.page_lines import characters_of, lines_of_parts, marked_text, visible_text

URL = "https://site.example/here"
SENTENCE = "The {} of this text is a sentence of its own, and it is longer than any title."


def said(word: str) -> str:
    return SENTENCE.format(word)


def post(word: str) -> str:
    return f'<div class="message m{len(word)}"><b class="username">Ann</b><div class="body">{said(word)}</div></div>'


def card(word: str, href: str) -> str:
    return f'<li class="card"><h3><a href="{href}">About {word}</a></h3><p>{said(word)}</p></li>'


def page(body: str) -> str:
    return (
        f'<html><body><div class="nav"><a href="/a">A</a><a href="/b">B</a></div>{body}<div>© Site</div></body></html>'
    )


class Part(NamedTuple):
    kind: str
    text: str
    path: str


def records(html: str) -> list[RecordTexts]:
    tree = parse(html)
    return records_of(list(tree.iter()), characters_of(marked_text(tree)), URL)


def segments(html: str, text: str = "") -> list[Part]:
    return [
        Part(of_kind.kind, one, of_kind.path)
        for of_kind in segments_of(text, records(html))
        for one in of_kind.texts or [segment_text(text, of_kind)]
    ]


def page_counts(html: str) -> Counter[str]:
    """How often each line stands on a page."""
    characters = characters_of(visible_text(parse(html)))
    return Counter(lines_of_parts(characters, np.ones(len(characters), np.uint32), 1)[0])


def kinds(parts: Sequence[Part]) -> Counter[str]:
    return Counter(str(part.kind) for part in parts)


def test_of_a_thread_the_first_post_is_the_sites_and_the_rest_are_visitors() -> None:
    """The records of a page without another text are a thread: its first is a post, the others are comments."""
    words = ["first", "second", "third", "fourth"]
    found = segments(page(f"<div class=thread>{''.join(map(post, words))}</div>"))
    assert [(part.kind, part.text.split("\n")[-1]) for part in found] == [
        (SegmentKind.POST if word == "first" else SegmentKind.COMMENT, said(word)) for word in words
    ]
    assert {part.path for part in found} == {"div.thread > div.message"}


def test_posts_for_readers_without_scripts_are_all_read() -> None:
    """A page that shows its thread by a script has the posts in a noscript: all are records."""
    posts = "".join(post(f"post {number}") for number in range(40))
    assert len(segments(page(f"<noscript><div class=thread>{posts}</div></noscript>"))) == 40


@pytest.mark.parametrize(
    ("around", "of_one"),
    [
        ("<ol class=commentlist>{}</ol>", '<li class="comment depth-1"><p>{}</p></li>'),
        ("<div id=disqus_thread><ul>{}</ul></div>", "<li><p>{}</p></li>"),
        ("<section>{}</section>", '<div class="message"><i class=author>Bo</i><p>{}</p></div>'),
    ],
)
def test_records_below_an_article_are_comments(around: str, of_one: str) -> None:
    """Answers below a text are comments, by their names or by their authors, also where the extractor took them."""
    article = [said(f"part {number}") for number in range(8)]
    answers = [said(f"answer {number}") for number in range(3)]
    body = "".join(f"<p>{line}</p>" for line in article) + around.format("".join(map(of_one.format, answers)))
    found = segments(page(f"<main>{body}</main>"), "\n".join(article + answers))
    assert kinds(found) == {"article": 1, "comment": 3}
    assert found[0].text.split("\n") == article


def test_an_answer_to_a_comment_is_a_comment_of_its_own() -> None:
    """Nested answers are split, and no text is counted twice."""
    inner = f'<ul class=children><li class="comment"><p>{said("inner")}</p></li></ul>'
    outer = f'<li class="comment"><p>{said("outer")}</p>{inner}</li><li class="comment"><p>{said("next")}</p></li>'
    found = segments(page(f"<ol class=commentlist>{outer}</ol>"))
    assert [part.text for part in found] == [said("outer"), said("inner"), said("next")]


def test_records_that_lead_to_pages_of_their_own_are_teasers() -> None:
    """Teasers have titles that link to other pages; records whose links stay on the page are none."""
    words = ["one", "two", "three"]
    listing = page(f"<ul>{''.join(card(word, f'/{word}') for word in words)}</ul>")
    assert kinds(segments(listing)) == {"teaser": 3}
    anchors = page(f"<ul>{''.join(card(word, f'{URL}#{word}') for word in words)}</ul>")
    assert segments(anchors, said("one")) == [("article", said("one"), "")]


def test_a_list_of_links_is_a_list() -> None:
    """Short records that are most of a page are a list, and too short to be segments."""
    items = "".join(f"<li>{number} item of the list</li>" for number in range(50))
    (found,) = records(f"<html><body><ul>{items}</ul></body></html>")
    assert found.kind is SegmentKind.LIST and segments_of("", [found]) == []


@pytest.mark.parametrize("column", ["<h1>{}</h1><p>{}</p>", "<nav>{}</nav><p>{}</p>", "<main>{}<p>{}</p></main>"])
def test_columns_of_a_page_are_no_records(column: str) -> None:
    """Two large parts of a page, of which one has its heading or its navigation, leave its main text one segment."""
    columns = "".join(f"<div><i class=author>Al</i>{column.format(word, said(word) * 3)}</div>" for word in ("a", "b"))
    assert segments(page(columns), said("a")) == [("article", said("a"), "")]


def test_blocks_without_a_name_are_no_records() -> None:
    """A `div` without a class is a column of the page: one may hold the article, and another its comments."""
    columns = "".join(f"<div><i class=author>Al</i><p>{said(word) * 3}</p></div>" for word in ("a", "b", "c"))
    assert segments(page(columns), said("a")) == [("article", said("a"), "")]


def test_the_header_and_the_footer_are_no_records() -> None:
    """Siblings of one name of which one has nearly all text are no group: the rest is below a twentieth."""
    body = f"<div>top</div><div>{said('only') * 20}</div><div>bottom</div>"
    assert records(f"<html><body>{body}</body></html>") == []


@given(
    records=st.lists(st.text("abcdefgh ", min_size=45, max_size=80).map(str.strip), min_size=2, max_size=12),
    extracted=st.sets(st.integers(0, 11)),
    texts=st.lists(st.text("klmnop ", min_size=45, max_size=200).map(str.strip), max_size=4),
    kind=st.sampled_from(["comment", "message", "card"]),
)
def test_no_text_is_invented_and_none_counts_twice(
    records: list[str], extracted: set[int], texts: list[str], kind: str
) -> None:
    """Each line of a segment is a line of the page; each line of the main text is in exactly one segment."""
    body = "".join(f"<p>{text}</p>" for text in texts)
    body += "".join(f'<div class="{kind}"><i class=user>Al</i><p>{text}</p></div>' for text in records)
    html = page(f"<main>{body}</main>")
    seen = page_counts(html)
    of_text = [" ".join(line.split()) for line in texts] + [
        " ".join(text.split()) for place, text in enumerate(records) if place in extracted
    ]
    main = [line for line in of_text if line]
    found = segments(html, "\n".join(main))
    lines = Counter(line for part in found for line in part.text.split("\n"))
    assert not lines - seen
    if found:
        assert all(len(part.text) >= 40 for part in found if part.kind != SegmentKind.ARTICLE)
        counted = Counter(line for part in found for line in part.text.split("\n") if line in set(main))
        assert all(counted[line] <= seen[line] for line in main)


def test_an_unreadable_link_leads_nowhere() -> None:
    """A link that is no URL is none; the page is read on."""
    cards: Any = "".join(card(word, "http://[bad") for word in ("one", "two", "three"))
    assert segments(page(f"<ul>{cards}</ul>"), said("one")) == [("article", said("one"), "")]
