"""The extractor `trafilatura`: recall first, precision where links and code prevail.

A. Barbaresi, "Trafilatura: a web scraping library and command-line tool for text discovery and extraction", ACL 2021.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import trafilatura.core
import trafilatura.external
from lxml import etree
from lxml import html as lxml_html
from trafilatura.settings import Extractor

from filters import main_text
from filters.blocks import link_code_share, pack
from filters.extraction import ExtractError, Extraction
from filters.settings import MeasureSettings

MAX_DEPTH = 256  # deepest nesting that libxml2's HTML parser takes without its `huge` option
_TRAFILATURA = threading.Lock()
# The names by which Trafilatura's own code calls its flat fallbacks, see `_flat_results`.
_core: Any = trafilatura.core
_external: Any = trafilatura.external


def by_trafilatura(html: str, settings: MeasureSettings) -> Extraction:
    """Main text for recall; where more than the allowed share of it is link or code, for precision."""
    recall = _trafilatura(html, "recall")
    if recall.error:
        too_deep = recall.error == ExtractError.NO_TEXT and _depth(html) > MAX_DEPTH
        return Extraction(error=ExtractError.TOO_DEEP, tried=recall.tried) if too_deep else recall
    if recall.link_code_share is None or recall.link_code_share <= settings.retry_link_code_share:
        return recall
    precise = _trafilatura(html, "precision")
    kept = recall if precise.error else precise  # nothing found for precision: the recall text says what the page is
    return Extraction(kept.text, kept.blocks, kept.path, "", kept.link_code_share, ("recall", "precision"))


def _trafilatura(html: str, mode: str) -> Extraction:
    with _TRAFILATURA, _flat_results() as flat:
        document = _core.bare_extraction(html, options=_options(mode))
    if document is None or document.body is None:
        return Extraction(error=ExtractError.NO_TEXT, tried=(mode,))
    is_flat = any(document.body is body for body in flat)
    text, rows = main_text.read_flat(document.body) if is_flat else main_text.read(document.body)
    if not rows:
        return Extraction(error=ExtractError.NO_TEXT, tried=(mode,))
    if is_flat:
        return Extraction(text, pack(rows), "fallback", "", None, (mode,))
    return Extraction(text, pack(rows), mode, "", link_code_share(rows), (mode,))


@lru_cache
def _options(mode: str) -> Extractor:
    """What `bare_extraction` makes of the keywords of the same names; built once, as it formats dates each time."""
    return Extractor(
        output_format="xml",
        recall=mode == "recall",
        precision=mode == "precision",
        comments=False,
        links=True,  # without it links are dissolved, and their share reads 0
        formatting=True,
    )


@contextmanager
def _flat_results() -> Iterator[list[Any]]:
    """Bodies that Trafilatura's flat fallbacks make while this is open.

    Its result does not say which algorithm won. The two functions whose bodies are bare paragraphs are therefore
    watched: jusText, and the baseline that reads embedded data or the page's raw text. The body that is returned is
    one of theirs by identity, or it is none of theirs. One page at a time in a process, by `_TRAFILATURA`.
    """
    seen: list[Any] = []
    justext, baseline = _external.justext_rescue, _core.baseline

    def watched_justext(*args: Any) -> Any:
        result = justext(*args)
        seen.append(result[0])
        return result

    def watched_baseline(*args: Any) -> Any:
        result = baseline(*args)
        seen.append(result[0])
        return result

    _external.justext_rescue, _core.baseline = watched_justext, watched_baseline
    try:
        yield seen
    finally:
        _external.justext_rescue, _core.baseline = justext, baseline


def _depth(html: str) -> int:
    """Deepest nesting of elements, by a parser without the usual limit; only asked where no text was found."""
    parser = lxml_html.HTMLParser(huge_tree=True, encoding="utf-8")
    try:
        root = lxml_html.document_fromstring(html.encode("utf-8", "replace"), parser=parser)
    except (etree.LxmlError, ValueError, AssertionError):
        return 0
    depth = deepest = 0
    for event, _ in etree.iterwalk(root, events=("start", "end")):
        depth += 1 if event == "start" else -1
        deepest = max(deepest, depth)
    return deepest
