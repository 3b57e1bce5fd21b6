"""Real pages: features or a named error, rulesets against labels, texts as good as bare Trafilatura's."""

from __future__ import annotations

from pathlib import Path

import pytest

from filters.extraction.blocks import JOINED, unpack
from filters.extraction.interface import ExtractError
from filters.measure.extractors import extract
from filters.measure.page_measures import RawPage
from filters.measure.workers import ExtractionPool
from filters.settings import MeasureSettings
from tests.support.pages.extraction_peer import bare_text, f1, gold_pages
from tests.support.sizes import LONG

PAGES_PER_SOURCE = 9 if LONG else 4
SOURCES = {
    "aeb": 28,
    "cleaneval": 120,
    "cleanportaleval": 8,
    "dragnet": 200,
    "readability": 22,
    "trafilatura_eval": 120,
    "wcxb": 240,
}
"""Sources, and the step between their pages that are compared with labels."""

BOUND = 0.005  # of F1


@pytest.mark.data
def test_every_real_page_has_features_or_a_named_error(pool: ExtractionPool, shared: Path) -> None:
    """A sample of every source goes through the workers; text, blocks and chunks of each page agree."""
    sources = sorted(path for path in (shared / "data" / "pages").iterdir() if path.is_dir())
    files = [
        file
        for source in sources
        for file in sorted((source / "html").iterdir())[
            :: max(1, len(list((source / "html").iterdir())) // PAGES_PER_SOURCE)
        ]
    ]
    assert len(files) >= 7 * PAGES_PER_SOURCE
    results = pool.map(
        [RawPage(f"https://{file.parts[-3]}.example/{file.stem}", "utf-8", file.read_bytes()) for file in files]
    )
    assert sum(not found.error for found in results) > 0.9 * len(files)
    for found in results:
        if found.error:
            assert found.error in list(ExtractError)
            continue
        rows = unpack(found.blocks)
        assert found.path in ("recall", "precision", "fallback")
        line_breaks = found.text.count("\n")
        assert line_breaks + 1 == sum(not row.kind & JOINED for row in rows)
        assert len(found.text) - len(rows) < sum(row.chars for row in rows) <= len(found.text) - line_breaks
        assert int(found.chunks().lengths.sum()) == len(found.text.encode())


def nearest(texts: list[str], text: str) -> str:
    """The text, of the calls that were made, whose words differ the least from the one that was kept."""
    return min(texts, key=lambda other: len({*other.split()} ^ {*text.split()}))


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES)
def test_main_texts_are_as_good_as_those_of_bare_trafilatura(shared: Path, source: str) -> None:
    """Per source, F1 of some pages is at most .005 below that of Trafilatura alone with the same calls."""
    pages = list(gold_pages(shared / "data" / "pages" / source, SOURCES[source]))
    truths = [page.truth for page in pages]
    found = [extract(page.html, "", MeasureSettings()) for page in pages]
    ours = f1([extraction.text for extraction in found], truths)
    bare = [[bare_text(page.html, mode) for mode in one.tried] for page, one in zip(pages, found, strict=True)]
    theirs = f1([nearest(texts, one.text) for texts, one in zip(bare, found, strict=True)], truths)
    print(f"\n{source}: {len(pages)} pages, ours {ours:.4f}, Trafilatura {theirs:.4f}")
    assert len(pages) >= 4
    assert ours >= theirs - BOUND
