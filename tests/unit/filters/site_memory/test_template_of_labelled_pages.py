"""Template lines of labelled pages: how much of the labelled main text they would cost."""

from __future__ import annotations

import json
import re
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from crawler.errors import UnusableUrl
from crawler.web.urls import normalise, site_of
from filters.duplicates.lines import own_text
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from tests.support.pages.extraction_peer import html_of
from tests.support.sizes import LONG

pytestmark = [pytest.mark.data, pytest.mark.slow]

BOUND = 0.01
SITES_STEP = 1 if LONG else 6
_WORD = re.compile(r"\w+")


def words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text.lower()))


def test_less_than_a_hundredth_of_the_labelled_words_is_template(shared: Path) -> None:
    """Of the words that people labelled as main text, less than 1 % are lost with the template lines.

    The pages are those of sites with at least three in a source, of every sixth such site (FARMWATCH_LONG: of each), in
    file order; words count where template is known.
    """
    labelled = lost = marked = pages = 0
    for source in sorted((shared / "data" / "pages").iterdir()):
        rows = [json.loads(line) for line in (source / "gold.jsonl").read_text("utf-8").split("\n") if line]
        sites = Counter(map(_site, rows))
        measurer = Measurer(MeasureSettings())
        for row in rows:
            if not _site(row) or sites[_site(row)] < 3 or zlib.crc32(_site(row).encode()) % SITES_STEP:
                continue
            found = measurer.measure(row["url"], html_of(source, row["id"]), _site(row), encoding="utf-8")
            if found.measures["template_block_share"] is None:
                continue
            own = own_text(found.text, found.template_lines)
            pages += 1
            for passage in [row["articleBody"]] if row.get("articleBody") else row.get("with", []):
                labelled += words(passage).total()
                lost += ((words(passage) & words(found.text)) - words(own)).total()
            marked += words(found.text).total() - words(own).total()
    print(f"\n{pages} pages, {labelled:,} labelled words, {lost} of them template, as {marked} words of the main texts")
    assert pages > 80 / SITES_STEP
    assert marked > 2 * lost > 0
    assert lost < BOUND * labelled


def _site(row: dict[str, Any]) -> str:
    try:
        return site_of(normalise(row.get("url") or ""))
    except UnusableUrl:
        return ""
