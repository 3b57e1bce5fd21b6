"""The extractor `blocks`: its text and block table, the pages of which Trafilatura is asked, and hostile pages."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import msgspec
import pytest
import zstandard

from filters.errors import BadModel
from filters.extraction.blocks import BlockKind, unpack
from filters.extraction.extractor import extract
from filters.extraction.interface import ExtractError
from filters.extraction.learned.main_blocks import is_sure
from filters.measure.epoch import feature_epoch
from filters.measure.page_measures import RawPage
from filters.measure.workers import ExtractionPool
from filters.settings import MeasureSettings
from tests.support.extraction_peer import f1, gold_pages

SETTINGS = MeasureSettings(extractor="blocks")
SENTENCE = "The river rose slowly during the night, and the people of the village moved their boats to higher ground. "
MENU = "<nav class='menu'><ul>" + "<li><a href='/x'>Another section</a></li>" * 20 + "</ul></nav>"
FOOT = "<footer><p>Copyright 2024 <a href='/p'>Privacy</a> <a href='/t'>Terms</a></p></footer>"


def page(body: str) -> str:
    """An article with a menu before and a footer after it."""
    return f"<html><head><title>A river</title></head><body>{MENU}<article>{body}</article>{FOOT}</body></html>"


def test_an_article_is_found_among_menus() -> None:
    """The text has a line for each block of the article; the table has its kinds, links and code."""
    paragraph = f"<p>{SENTENCE * 3}<a href='/y'>linked</a>, <code>code</code>.</p>"
    items = f"<ul><li>{SENTENCE}</li><li>{SENTENCE}</li></ul>"
    found = extract(page(f"<h1>A river</h1>{paragraph * 4}{items}{paragraph}"), "", SETTINGS)
    assert (found.error, found.path, found.tried) == ("", "blocks", ("blocks",))
    rows = unpack(found.blocks)
    assert found.text.split("\n")[0] == "A river" and "Another section" not in found.text
    assert [row.kind for row in rows[:6]] == [BlockKind.HEADING, *[BlockKind.PARAGRAPH] * 4, BlockKind.ITEM]
    assert [len(line) for line in found.text.split("\n")] == [row.chars for row in rows]
    assert {(row.link_chars, row.code_chars) for row in rows[1:5]} == {(6, 4)}
    assert found.link_code_share == pytest.approx(50 / sum(row.chars for row in rows), abs=1e-9)


def test_trafilatura_is_asked_in_doubt() -> None:
    """Embedded data of a page with next to no text is found; what was tried is told."""
    data = f'{{"@type": "Article", "articleBody": "{SENTENCE * 8}"}}'
    html = f"<html><body><script type='application/ld+json'>{data}</script><div id='app'></div></body></html>"
    found = extract(html, "", SETTINGS)
    assert (found.error, found.path, found.tried) == ("", "fallback", ("blocks", "recall"))
    assert extract("<html><body></body></html>", "", SETTINGS).error == ExtractError.NO_TEXT
    assert not is_sure(0.2, 1000) and not is_sure(0.95, 3) and is_sure(0.95, 300)


HOSTILE = {
    "empty": ("", ExtractError.EMPTY),
    "one block": ("<p>x", ""),
    "large": ("<p>" + SENTENCE * 25_000, ExtractError.TOO_LARGE),
    "elements": ("<p>x</p>" * 50_001, ExtractError.TOO_MANY_ELEMENTS),
    "many blocks": (f"<p>{SENTENCE}" * 9_000, ""),
    "many lines": (f"{SENTENCE}<br>" * 9_000, ""),
    "characters": (f"<p>{SENTENCE * 9}\0\ud800</p>", ""),
    "deep": ("<div>" * 20_000 + SENTENCE * 9, ExtractError.TOO_DEEP),
    "nested": ("<div class='a b c'>" * 500 + SENTENCE * 9, ""),
    "nested inline": ("<b>" * 400 + SENTENCE * 9, ""),
    "long name": ("<p class='" + "ab-Cd" * 100_000 + f"'>{SENTENCE * 9}", ""),
    "one long word": ("<p>" + "a&shy;" * 100_000, ""),
    "astral": ("<p>" + "𝔸 " * 100_000, ""),
    "cells": ("<table>" + f"<tr><td>{SENTENCE}" * 4_000, ""),
    "links": ("<p>" + "<a href=x>y</a> " * 4_000, ""),
    "long title": ("<title>" + "w " * 100_000 + f"</title><p>{SENTENCE * 9}", ""),
    "headings": ("<h1>" * 300 + "x", ""),
    "hidden": ("<p hidden style='display:none'>x" * 4_000, ""),
}


@pytest.mark.parametrize(("html", "error"), HOSTILE.values(), ids=HOSTILE)
def test_hostile_pages_end_in_a_text_or_a_named_error(html: str, error: str) -> None:
    """The guards are those of each extractor; what they accept has a text, or none."""
    found = extract(html, "", SETTINGS)
    assert found.error == error or (error == "" and found.error in (ExtractError.NO_TEXT, ExtractError.TOO_DEEP))


def test_it_runs_in_the_workers_and_a_bad_model_does_not(article: str, tmp_path: Path) -> None:
    """A worker process has the model; a file that is none is refused before a page is sent, in words."""
    body = zstandard.ZstdCompressor().compress(article.encode())
    with closing(ExtractionPool(msgspec.structs.replace(SETTINGS, workers=1))) as pool:
        (found,) = pool.map([RawPage("https://a.example/x", "utf-8", body)])
    assert found.path == "blocks" and found.text == extract(article, "", SETTINGS).text
    file = tmp_path / "mine.json"
    file.write_text("{}")
    other = msgspec.structs.replace(SETTINGS, extractor_model=str(file))
    for refuse in (ExtractionPool, feature_epoch):
        with pytest.raises(BadModel, match=r"mine\.json: no model"):
            refuse(other)


@pytest.mark.data
@pytest.mark.slow
def test_main_texts_are_better_than_those_of_trafilatura(shared: Path) -> None:
    """On a sample of the pages that the shipped model learned from: a check that the model fits the code."""
    ours: list[float] = []
    theirs: list[float] = []
    for source in ("cleaneval", "dragnet", "wcxb"):
        pages = list(gold_pages(shared / "data" / "pages" / source, every=24))
        for settings, scores in ((SETTINGS, ours), (MeasureSettings(), theirs)):
            scores.append(f1([extract(one.html, "", settings).text for one in pages], pages))
    print(f"\nblocks {ours}, trafilatura {theirs}")
    assert sum(ours) / 3 > sum(theirs) / 3 + 0.02
