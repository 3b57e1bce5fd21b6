"""Copies of labelled articles with threads and boxes: what is main text stays so, and nothing else becomes it."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from farmwatch.labels.labelled_pages import LabelledPages
from filters.extraction.html_tree import parse
from filters.extraction.learned.page_blocks import page_blocks
from filters.settings import MeasureSettings
from lab.extractor.training import MainTextPage, main_text_pages
from tests.bench.studies.spliced.pages import FRAMES, Texts, spliced_pages
from tests.support.pages.labelled_folder import add_page

SETTINGS = MeasureSettings()
SENTENCE = "In part {} of story {} you and I moved two boats to higher ground before the bridge was closed at night."
Pages = tuple[LabelledPages, list[MainTextPage]]


@pytest.fixture(scope="module")
def labelled(tmp_path_factory: pytest.TempPathFactory) -> Pages:
    """Twelve articles, a forum page, and a page of two lines."""
    root: Path = tmp_path_factory.mktemp("pages")
    for number in range(14):
        lines = [SENTENCE.format(part, number) for part in range(2 if number == 13 else 12)]
        text = "".join(f"<p>{line}</p>" for line in lines)
        html = f"<html><head><title>Story {number}</title></head><body><ul><li>Home</ul><div class=post>{text}</div>"
        of = {"page_type": "forum" if number == 12 else "article", "url": f"http://a{number}.example/x"}
        add_page(root, "web", f"{html}<div class=foot>The end</div>", articleBody="\n".join(lines), **of)
    folder = LabelledPages(root)
    return folder, main_text_pages(folder, SETTINGS, lambda _: None)


def test_the_old_main_text_is_that_of_the_copy(labelled: Pages) -> None:
    """Its blocks are those of before, in order; the rest of the page is none, and what is new, also a long thread.

    Only articles with a place of their own have copies.
    """
    folder, pages = labelled
    old_of = {page.label: page for page in pages}
    copies = spliced_pages(folder, pages, SETTINGS)
    assert len(copies) == 12
    longest = 0
    for copy in copies:
        old = old_of[copy.label]
        assert old.blocks and copy.blocks and (copy.domain, copy.truth) == (old.domain, old.truth)
        lines, shares = copy.blocks.page.lines, copy.blocks.shares
        kept = [line for line, share in zip(lines, shares.tolist(), strict=True) if share]
        assert kept == (old.truth.text or "").split("\n") and lines[0] == "Home" and "The end" in lines
        assert copy.blocks.inputs.shape[1] == len(lines) >= len(old.blocks.page.lines)
        longest = max(longest, sum("In part" in line for line in lines) - len(kept))
    assert longest > 12


def test_copies_are_those_of_a_seed(labelled: Pages) -> None:
    """The same pages give the same copies, whichever are there beside a page's own; another seed gives others."""
    folder, pages = labelled

    def lines(seed: int) -> list[list[str]]:
        return [copy.blocks.page.lines for copy in spliced_pages(folder, pages, SETTINGS, seed) if copy.blocks]

    assert lines(0) == lines(0) != lines(1)


@pytest.mark.parametrize("kind", FRAMES)
def test_each_frame_is_html_with_known_fields(kind: str, labelled: Pages) -> None:
    """Each frame has blocks of text, and its elements are closed."""
    texts = Texts(labelled[1])
    for frame in FRAMES[kind]:
        for seed in range(5):
            rng = random.Random(seed)
            html = texts.thread(rng, frame, "post", 20) if kind == "comments" else texts.box(rng, frame)
            page = page_blocks(parse(f"<html><body><div>{html}</div><p>The end</p></body></html>"))
            assert page is not None and "{" not in html and page.lines[-1] == "The end"
            assert page.tags[int(page.parent[page.holder[-1]])] == "body" and np.diff(page.first_word).min() > 0
