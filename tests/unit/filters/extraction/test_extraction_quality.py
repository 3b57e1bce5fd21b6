"""Main texts beside the labels of people: as good as those of bare Trafilatura with the same options."""

from __future__ import annotations

from pathlib import Path

import pytest

from filters.extraction.extractor import extract
from filters.settings import MeasureSettings
from tests.support.extraction_peer import bare_text, f1, gold_pages

pytestmark = pytest.mark.slow

EVERY = 8
BOUND = 0.005


@pytest.mark.data
@pytest.mark.parametrize(
    "source", ["aeb", "cleaneval", "cleanportaleval", "dragnet", "readability", "trafilatura_eval", "wcxb"]
)
def test_main_texts_are_as_good_as_those_of_bare_trafilatura(shared: Path, source: str) -> None:
    """Per source, F1 by the labels is at most .005 below that of the same calls of Trafilatura alone, its own text.

    Every eighth page; the bench prints all. Printed beside it: Trafilatura without the second call for precision.
    """
    pages = list(gold_pages(shared / "data" / "pages" / source, EVERY))
    found = [extract(page.html, "", MeasureSettings()) for page in pages]
    ours = f1([extraction.text for extraction in found], pages)
    retried = [len(extraction.tried) > 1 for extraction in found]
    theirs = f1([bare_text(page.html, retried=again) for page, again in zip(pages, retried, strict=True)], pages)
    once = f1([bare_text(page.html, retried=False) for page in pages], pages)
    print(f"\n{source}: {len(pages)} pages, ours {ours:.4f}, Trafilatura {theirs:.4f}, its first call alone {once:.4f}")
    assert len(pages) >= 7
    assert ours >= theirs - BOUND
