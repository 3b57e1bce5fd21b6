"""Study: training pages with what few labels leave out: comments, related posts, newsletter boxes, sidebars.

Each labelled article has another copy with threads and boxes in the structure of blog and forum software
(`frames.toml`) and with the texts of other labelled pages. Its main text is that of before.
Models that also learn from them are better on blogs, whose labels they have not seen (F1 beside Trafilatura -.023 to
-.032 on four folds; -.040 without), and on `trafilatura_eval`, and worse on `cleaneval` and `wcxb`: none ships.
"""

from __future__ import annotations

import random
import tomllib
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from lxml.html import fragment_fromstring

from farmwatch.labels.labelled_pages import LabelledPages
from filters.extraction.learned.inputs import block_inputs
from filters.extraction.learned.page_blocks import PageBlocks, page_blocks
from filters.settings import MeasureSettings
from filters.structure.page_lines import INLINE
from lab.extractor.training import LabelledBlocks, MainTextPage, tree_of
from stream.schema.vocabulary import PageClass

Frame = Mapping[str, str]
FRAMES: Mapping[str, Sequence[Frame]] = tomllib.loads(Path(__file__).with_name("frames.toml").read_text("utf-8"))
MOST_COMMENTS = 150
"""Comments of the longest thread; half of the threads have a twelfth of it at most."""
THREADS, BOXES, NAMED, LIKE_THE_ARTICLE = 0.9, 0.4, 0.67, 0.25
"""Shares of copies: with a thread; with a box, or a sidebar, beside the article. Shares of what is spliced: with ids
and classes; with texts in an element of the article's class."""

_MARK = "\ue000"  # in each spliced text, to find its blocks
_MAIN, _MOST_OF_MAIN, _LEAST_MAIN_BLOCKS = 0.5, 0.8, 3
_WORDS = range(4, 120)  # of a line that may be said in a comment
_PERSONAL, _PERSONAL_SHARE = frozenset(("i", "i'm", "my", "you", "your", "me", "thanks")), 0.7
_ANSWERED, _MOST_ANSWERS, _DEEPEST = 0.3, 3, 3
_NO_PLACE = ("p", "tr", "tbody", "table", "ul", "ol")  # elements that hold no thread
_NAMES = (
    *("Anna", "Ben", "carol77", "Dmitri K.", "Elena", "Frank Moss", "gardener", "Hugo", "ines_p", "J. Wall", "Karim"),
    *("Lea", "Mark T", "nightowl", "Olga", "Pete", "Anonymous", "Ruth", "sam", "Tom Hill", "Uwe", "vera.b", "Guest"),
)
_TIMES = ("March {}, 2011 at 4:{} pm", "{} May 2009 {}:07", "2014-06-{} 10:{}", "{} hours {} minutes ago", "{}.{}.2018")


def spliced_pages(
    folder: LabelledPages, pages: Sequence[MainTextPage], settings: MeasureSettings, seed: int = 0
) -> list[MainTextPage]:
    """Another copy of the articles among `pages`, all of the folder, in its order; the same for the same pages."""
    page_of = {
        page.label: page
        for page in pages
        if page.blocks is not None and page.label.page_type in ("", PageClass.ARTICLE)
    }
    texts, articles, found = Texts(pages), copy(folder), []
    articles.narrow(page_of.__contains__)
    for label, html in articles.htmls():
        page = page_of[label]
        if page.blocks and (blocks := _spliced(page.blocks, html, settings, texts, f"{seed} {label.id}")):
            found.append(replace(page, blocks=blocks))
    return found


class Texts:
    """What is said in threads and boxes: lines of the main texts of pages, and their titles."""

    def __init__(self, pages: Sequence[MainTextPage]) -> None:
        personal, others = dict[str, None](), dict[str, None]()
        for page in pages:
            if page.blocks is not None:
                for line, share in zip(page.blocks.page.lines, page.blocks.shares.tolist(), strict=True):
                    words = line.lower().split()
                    if share > _MAIN and len(words) in _WORDS:
                        (others if _PERSONAL.isdisjoint(words) else personal)[escape(line)] = None
        self._personal, self._others = list(personal) or ["…"], list(others) or ["…"]
        titles = (page.blocks.page.title.strip() for page in pages if page.blocks is not None)
        self._titles = [escape(title) for title in titles if title] or ["…"]

    def thread(self, rng: random.Random, frame: Frame, like: str, comments: int) -> str:
        """A thread; some have their texts in an element of the class `like`."""
        item = frame["item"]
        if rng.random() < LIKE_THE_ARTICLE:
            item = item.replace("{text}", f"<div class='{escape(like)}'>{{text}}</div>")
        fields = self._fields(rng, comments)
        items = self._items(rng, {**frame, "item": item}, comments, 0)
        return f"{frame['head'].format_map(fields)}{items}{frame['foot'].format_map(fields)}"

    def box(self, rng: random.Random, frame: Frame) -> str:
        """A box of some links with titles, teasers of others, and a text."""
        about = [f" <p>{rng.choice(self._others)}</p>" if rng.random() < 0.1 else "" for _ in range(60)]
        links = [
            f"<li><a href='/{place}'>{rng.choice(self._titles)}</a>{more}</li>" for place, more in enumerate(about)
        ]
        teasers = [
            f"<div class=card><h4><a href='/{place}'>{rng.choice(self._titles)}</a></h4>"
            f"<p>{rng.choice(self._others)}</p></div>"
            for place in range(4)
        ]
        lists = {"links": "".join(links[:5]), "many": "".join(links[: rng.randrange(5, 60)]), "cards": "".join(teasers)}
        return frame["html"].format_map({**self._fields(rng, 9), **lists})

    def _items(self, rng: random.Random, frame: Frame, comments: int, depth: int) -> str:
        items = []
        while comments > 0:
            comments -= 1
            is_answered = "replies" in frame and depth < _DEEPEST and rng.random() < _ANSWERED
            answers = min(rng.randint(1, _MOST_ANSWERS), comments) if is_answered else 0
            comments -= answers
            below = frame["replies"].format(items=self._items(rng, frame, answers, depth + 1)) if answers else ""
            items.append(frame["item"].format_map({**self._fields(rng, comments + 1), "replies": below}))
        return "".join(items)

    def _fields(self, rng: random.Random, number: int) -> dict[str, str]:
        lines = [
            rng.choice(self._personal if rng.random() < _PERSONAL_SHARE else self._others)
            for _ in range(rng.choice((1, 1, 2, 3)))
        ]
        around = rng.choice(("<p>{}</p>", "{}<br><br>" if len(lines) > 1 else "{}"))
        return {
            "number": str(number),
            "id": str(rng.randrange(10**6)),
            "who": rng.choice(_NAMES),
            "when": rng.choice(_TIMES).format(rng.randrange(1, 28), rng.randrange(10, 59)),
            "title": rng.choice(self._titles),
            "text": "".join(around.format(line) for line in lines),
        }


def _spliced(
    old: LabelledBlocks, html: str, settings: MeasureSettings, texts: Texts, seed: str
) -> LabelledBlocks | None:
    """The blocks of the page with a thread and boxes; None if its main text has no place of its own."""
    copies: list[PageBlocks | None] = []
    for mark in (_MARK, ""):  # the same twice: a mark would be a part of the words
        tree = tree_of(html, settings)
        if tree is None or not _splice(tree, old, texts, random.Random(seed), mark):
            return None
        copies.append(page_blocks(tree))
    marked, page = copies
    if marked is None or page is None or len(marked.lines) != len(page.lines):
        return None
    is_old = np.array([_MARK not in line for line in marked.lines])
    if is_old.sum() != len(old.shares):  # a block of the page was split
        return None
    shares = np.zeros(len(page.lines), np.float32)
    shares[is_old] = old.shares
    return LabelledBlocks(page, block_inputs(page).matrix().copy(), shares)


def _splice(tree: Any, old: LabelledBlocks, texts: Texts, rng: random.Random, mark: str) -> bool:
    """Splice into the tree; False if the main text has no place."""
    page, is_main = old.page, old.shares > _MAIN
    elements = [element for place, element in enumerate(tree.iter()) if not place or element.tag not in INLINE]
    main = list(dict.fromkeys(page.holder[is_main].tolist()))
    if len(main) < _LEAST_MAIN_BLOCKS or len(elements) != len(page.tags):
        return False
    inside, around = page.in_subtrees(page.words * is_main), main[-1]
    while inside[around] < _MOST_OF_MAIN * inside[0] or page.tags[around] in _NO_PLACE:
        around = int(page.parent[around])
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        _put(elements[rng.choice(main)], texts.box(rng, rng.choice(FRAMES["boxes"])), mark, rng, after=True)
    after = rng.random() < 0.5 and page.tags[around] not in ("html", "body", "td")
    if rng.random() < THREADS:
        like = elements[around].get("class") or ""
        thread = texts.thread(rng, rng.choice(FRAMES["comments"]), like, round(MOST_COMMENTS ** rng.random()))
        _put(elements[around], thread, mark, rng, after=after)
    for kind in ("boxes", "sidebars"):
        if rng.random() < BOXES:
            _put(elements[around], texts.box(rng, rng.choice(FRAMES[kind])), mark, rng, after=after)
    return True


def _put(place: Any, html: str, mark: str, rng: random.Random, *, after: bool) -> None:
    """Splice below an element or at its end."""
    part, is_named = fragment_fromstring(html, create_parent="div"), rng.random() < NAMED
    for element in part.iter():
        for name in () if is_named else ("id", "class"):
            element.attrib.pop(name, None)
        if element.text and not element.text.isspace():
            element.text = mark + element.text
        if element.tail and not element.tail.isspace():
            element.tail = mark + element.tail
    if after and place.getparent() is not None:
        part.tail, place.tail = place.tail, None
        place.addnext(part)
    else:
        place.append(part)
