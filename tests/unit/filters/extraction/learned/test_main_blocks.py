"""The extractor `blocks`: its text and block table, pages on which Trafilatura runs as well, models, hostile pages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import msgspec
import numpy as np
import pytest
import zstandard

from filters.errors import BadModel
from filters.extraction.blocks import BlockKind, unpack
from filters.extraction.html_tree import parse
from filters.extraction.interface import ExtractError
from filters.extraction.learned.main_blocks import by_blocks
from filters.extraction.learned.model import load_model
from filters.extraction.learned.page_blocks import page_blocks
from filters.measure.extractors import extract
from filters.measure.page_measures import RawPage
from filters.measure.workers import ExtractionPool
from filters.model_file import digest_of
from filters.settings import MeasureSettings
from tests.support.pages.extraction_peer import f1, gold_pages
from tests.support.sizes import LONG

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


def test_trafilatura_runs_for_next_to_no_words() -> None:
    """So embedded data is found. What was tried and the expected F1 are told, also of a text that is doubtful."""
    data = f'{{"@type": "Article", "articleBody": "{SENTENCE * 8}"}}'
    html = f"<html><body><script type='application/ld+json'>{data}</script><div id='app'></div></body></html>"
    found = extract(html, "", SETTINGS)
    assert (found.error, found.path, found.tried) == ("", "fallback", ("blocks", "recall", "precision"))
    assert found.expected_f1 == 0 and extract("<html><body></body></html>", "", SETTINGS).error == ExtractError.NO_TEXT
    model: Any = Mock(probabilities=lambda page: np.full(len(page.lines), 300))
    for words, tried in ((9, ("blocks", "recall")), (10, ("blocks",))):
        html = f"<html><body><p>{'word ' * words}</p></body></html>"
        short = by_blocks(model, html, parse(html))
        assert short.tried == tried and short.expected_f1 == pytest.approx(6 / 13) and short.path == tried[-1]


HOSTILE = {
    "one block": "<p>x",
    "many blocks": f"<p>{SENTENCE}" * 3_000,
    "many lines": f"{SENTENCE}<br>" * 3_000,
    "characters": f"<p>{SENTENCE * 9}\0\ud800</p>",
    "nested": "<div class='a b c'>" * 200 + SENTENCE * 9,
    "nested inline": "<b>" * 400 + SENTENCE * 9,
    "long name": "<p class='" + "ab-Cd" * 100_000 + f"'>{SENTENCE * 9}",
    "one long word": "<p>" + "a&shy;" * 100_000,
    "astral": "<p>" + "𝔸 " * 100_000,
    "cells": "<table>" + f"<tr><td>{SENTENCE}" * 1_500,
    "links": "<p>" + "<a href=x>y</a> " * 2_000,
    "long title": "<title>" + "w " * 100_000 + f"</title><p>{SENTENCE * 9}",
    "headings": "<h1>" * 200 + "x",
    "hidden": "<p hidden style='display:none'>x" * 2_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_pages_have_a_text(name: str) -> None:
    """Whatever their characters, names and nesting; Trafilatura does not run for sentences in one block."""
    found = extract(HOSTILE[name], "", SETTINGS)
    assert found.error == "" and found.text
    if SENTENCE * 9 in HOSTILE[name]:
        assert (found.path, found.text.count(SENTENCE.strip())) == ("blocks", 9)


def test_another_processor_finds_the_same_text(article: str) -> None:
    """With BLAS set to code for a processor of 2004, which sums in another order, probabilities are equal."""
    code = (
        "import sys; from filters.extraction.html_tree import parse; from filters.extraction.learned.model import *;"
        "print(load_model('').probabilities(page_blocks(parse(sys.argv[1]))).tolist())"
    )
    command, env = [sys.executable, "-c", code, page(article)], {**os.environ, "OPENBLAS_CORETYPE": "Prescott"}
    other = subprocess.run(command, check=True, capture_output=True, text=True, env=env)
    blocks = page_blocks(parse(page(article)))
    assert blocks is not None and other.stdout.strip() == str(load_model("").probabilities(blocks).tolist())


@pytest.fixture
def other_model(tmp_path: Path) -> Path:
    """A file with the numbers of the shipped model and another card."""
    data = msgspec.json.encode(msgspec.structs.replace(load_model(""), card="other"))
    file = tmp_path / f"{digest_of(data)}.json"
    file.write_bytes(data)
    return file


def raw(html: str) -> RawPage:
    return RawPage("https://a.example/x", "utf-8", zstandard.ZstdCompressor().compress(html.encode()))


@pytest.mark.slow
def test_a_page_of_many_blocks_fits_into_the_memory_of_a_worker() -> None:
    """98,000 blocks, as many as the guards accept, have a text (else a quarter of them, in the least memory)."""
    settings = msgspec.structs.replace(SETTINGS, workers=1, time_limit_s=300.0)
    if not LONG:
        settings = msgspec.structs.replace(settings, memory_bytes=512 * 1024**2)
    with closing(ExtractionPool(settings)) as pool:
        (found,) = pool.map([raw("<html><body>" + "<p>x</p>y" * (49_000 if LONG else 12_250))])
    assert found.error == ""


@pytest.mark.slow
def test_workers_keep_the_model_of_the_start(article: str, other_model: Path) -> None:
    """A worker that replaces another one has the same model, also if the file is damaged by then."""
    settings = msgspec.structs.replace(SETTINGS, workers=1, extractor_model=str(other_model))
    with closing(ExtractionPool(settings)) as pool:
        (first,) = pool.map([raw(article)])
        other_model.write_bytes(b"{}")
        os.kill(pool.pids[0], signal.SIGKILL)
        (second,) = pool.map([raw(article)])
    assert first == second and (first.path, first.text) == ("blocks", extract(article, "", SETTINGS).text)


def test_a_bad_model_is_refused_at_the_start_and_fails_no_page(article: str, tmp_path: Path) -> None:
    """A file that is missing, damaged or of another version: in words, before a page is measured."""
    old = msgspec.json.encode(msgspec.structs.replace(load_model(""), version=1))
    for data, said in (
        (None, "cannot be read"),
        (b"{}", "is not the model of that name"),
        (old, "version 1 of a model"),
    ):
        file = tmp_path / f"{digest_of(old)}.json"
        if data is not None:
            file.write_bytes(data)
        settings = msgspec.structs.replace(SETTINGS, extractor_model=str(file))
        for refuse in (ExtractionPool, lambda settings: extract(article, "", settings)):
            with pytest.raises(BadModel, match=said):
                refuse(settings)


@pytest.mark.data
@pytest.mark.slow
def test_main_texts_are_better_than_those_of_trafilatura(shared: Path) -> None:
    """On a sample of the pages that the shipped model learned from: a check that the model fits the code."""
    ours: list[float] = []
    theirs: list[float] = []
    for source in ("cleaneval", "trafilatura_eval", "wcxb"):
        pages = list(gold_pages(shared / "data" / "pages" / source, every=24 if LONG else 192))
        for settings, scores in ((SETTINGS, ours), (MeasureSettings(), theirs)):
            scores.append(f1([extract(one.html, "", settings).text for one in pages], [one.truth for one in pages]))
    print(f"\nblocks {ours}, trafilatura {theirs}")
    assert sum(ours) / 3 > sum(theirs) / 3 + (0.02 if LONG else 0.01)
