"""The extractor `trafilatura`: recall first, then precision for pages of links or code, and for flat text.

It works on the tree of `filters.extraction.html_tree`: complete, and a tenth faster than Trafilatura's own tree.

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
import trafilatura.main_extractor
from lxml.etree import XPath
from trafilatura.settings import Extractor

from filters.extraction import main_text
from filters.extraction.blocks import link_code_share, pack
from filters.extraction.html_tree import parse
from filters.extraction.interface import RETRY_LINK_CODE_SHARE, ExtractError, Extraction
from filters.extraction.lone_text import make_paragraphs
from filters.extraction.quick_search import search_for

_LEAST_PRECISE_SHARE = 0.25
"""Share of the characters of a flat text below which the precise text is a stub. Of 43 labelled pages with flat text
the mean F1 is .60 with the flat text, .51 with any precise text, and .62 with one of at least this share."""

_SAME_SHARE = 0.1
"""Share of the characters up to which a precise text is the same text, with its code as a quotation."""

_TRAFILATURA = threading.Lock()  # one page at a time per process: patched names are shared
# The names under which Trafilatura's code calls its parser and its flat fallbacks, see `_on`.
_core: Any = trafilatura.core
_external: Any = trafilatura.external
_SEARCHES = [
    (vars(module), name, searches, [search_for(search) for search in searches])
    for module in (trafilatura.core, trafilatura.external, trafilatura.main_extractor)
    for name, searches in vars(module).items()
    if isinstance(searches, list) and searches and all(isinstance(search, XPath) for search in searches)
]


def by_trafilatura(html: str, tree: Any) -> Extraction:
    """Extract for recall; for precision, if too much is link or code, or unknown. Raises ParseFailed."""
    with _TRAFILATURA:
        recall = _trafilatura(tree, "recall")
        share = 1.0 if recall.link_code_share is None else recall.link_code_share
        if recall.error or share <= RETRY_LINK_CODE_SHARE:
            return recall
        # Extraction consumed the tree. Parsing again is cheaper than a copy, because only 9 % of pages need one.
        precise = _trafilatura(parse(html), "precision")
    if recall.link_code_share is None:
        is_stub = len(precise.text) < _LEAST_PRECISE_SHARE * len(recall.text)
        is_better = not is_stub and precise.link_code_share is not None
    else:
        is_better = abs(len(precise.text) - len(recall.text)) > _SAME_SHARE * len(recall.text)
    kept = precise if is_better and not precise.error else recall  # without a precise text, keep the recall text
    return Extraction(kept.text, kept.blocks, kept.path, "", kept.link_code_share, ("recall", "precision"))


def _trafilatura(tree: Any, mode: str) -> Extraction:
    make_paragraphs(tree)
    for block in tree.iter("pre"):
        block.set("lang", "code")  # otherwise Trafilatura guesses by its words whether it is code or a quotation
    with _on(tree) as flat:
        document = _core.bare_extraction("", options=_options(mode))
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
    """The options of `bare_extraction`, built once: it would format dates for each page."""
    return Extractor(
        output_format="xml",
        recall=mode == "recall",
        precision=mode == "precision",
        comments=False,
        links=True,  # otherwise links are removed and their share is 0
        formatting=True,
    )


@contextmanager
def _on(tree: Any) -> Iterator[list[Any]]:
    """Patch Trafilatura to work on `tree` without a copy, with quick searches; yields the bodies of its flat fallbacks.

    Trafilatura does not report which algorithm won, so this wraps its two functions that make flat bodies.
    """
    seen: list[Any] = []
    load, justext, baseline = _core.load_html, _external.justext_rescue, _core.baseline

    def watched(fallback: Any) -> Any:
        def watching(*args: Any) -> Any:
            result = fallback(*args)
            seen.append(result[0])
            return result

        return watching

    _core.load_html = lambda *_: tree
    _external.justext_rescue, _core.baseline = watched(justext), watched(baseline)
    for names, name, _, quicker in _SEARCHES:
        names[name] = quicker
    try:
        yield seen
    finally:
        _core.load_html, _external.justext_rescue, _core.baseline = load, justext, baseline
        for names, name, searches, _ in _SEARCHES:
            names[name] = searches
