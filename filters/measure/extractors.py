"""The extractors by name, and the extraction of a page: guards, structure, main text.

Pure: a page in, an `Extraction` out. Problems of the page are reported in `error`, not raised.
`filters.measure.workers` bounds time and memory: it runs this code in processes that can be killed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

from filters.dates.page_dates import Candidates
from filters.extraction.interface import ExtractError, Extraction, Extractor
from filters.extraction.page_guards import html_of, refused
from filters.settings import MeasureSettings
from filters.structure.names import Measures
from stream.text.user_errors import MissingExtra

MAX_TEXT_BYTES = 2 * 1024**2
"""UTF-8 bytes of main text beyond which it is given up: a record stays below the log's cap (epoch)."""


class ExtractorRow(NamedTuple):
    """An extractor. `load` gets the file of its model, "" = the shipped one, and may raise BadModel."""

    load: Callable[[str], Extractor]  # imports its libraries, which take half a second
    libraries: tuple[str, ...]  # whose versions its texts depend on
    modes: tuple[str, ...] = ()  # of its own that an `Extraction` lists
    extra: str = ""  # the optional package that it needs, which is also the name of farmwatch's extra
    takes_model: bool = False
    calls: tuple[str, ...] = ()  # other extractors
    otherwise: Callable[[str], Callable[[Any], Extraction]] | None = None  # for a tree whose text is no article


def _trafilatura(_: str) -> Extractor:
    from filters.extraction.trafilatura_text import by_trafilatura

    return by_trafilatura


def _blocks(model: str) -> Extractor:
    from filters.extraction.learned.main_blocks import by_blocks
    from filters.extraction.learned.model import load_model

    return partial(by_blocks, load_model(model))


def _main_blocks(model: str) -> Callable[[Any], Extraction]:
    from filters.extraction.learned.main_blocks import main_blocks
    from filters.extraction.learned.model import load_model

    return partial(main_blocks, load_model(model))


def _resiliparse(_: str) -> Extractor:
    from filters.extraction.resiliparse_text import by_resiliparse

    return by_resiliparse


_OF_TRAFILATURA = ("trafilatura", "justext", "lxml")
EXTRACTORS = {
    "trafilatura": ExtractorRow(_trafilatura, _OF_TRAFILATURA, ("recall", "precision", "fallback")),
    "blocks": ExtractorRow(_blocks, _OF_TRAFILATURA, ("blocks",), takes_model=True, calls=("trafilatura",)),
    "auto": ExtractorRow(
        _trafilatura, _OF_TRAFILATURA, takes_model=True, calls=("trafilatura", "blocks"), otherwise=_main_blocks
    ),
    "resiliparse": ExtractorRow(_resiliparse, ("resiliparse",), ("plain",), extra="resiliparse"),
}
"""The values of the setting `measure.extractor`."""


def extractor(settings: MeasureSettings) -> Extractor:
    """The extractor of the settings. Raises MissingExtra if its package is not installed, BadModel."""
    member = EXTRACTORS[settings.extractor]
    if member.extra and find_spec(member.extra) is None:
        raise MissingExtra(f"{settings.extractor} needs a package that is not installed", extra=member.extra)
    return member.load(settings.extractor_model)


def extract(page: bytes | str, encoding: str, settings: MeasureSettings, url: str = "") -> Extraction:
    """Main text, structure and lines of a page: text, or bytes in a charset. Raises MissingExtra, BadModel."""
    from lxml import etree  # import only in workers

    from filters.dates.candidates import candidates
    from filters.extraction.html_tree import ParseFailed, parse, readable
    from filters.extraction.pruning import prune
    from filters.measure.article_first import article_or_other
    from filters.segments.records import RecordTexts, records_of
    from filters.signals.page_signals import signals_of
    from filters.structure.measures import by_tag, structure_measures
    from filters.structure.page_lines import (
        characters_of,
        marked_text,
        page_lines,
        visible_bytes,
        visible_part,
        without_marks,
    )
    from filters.structure.tag_paths import template_sketch

    run, otherwise = extractor(settings), EXTRACTORS[settings.extractor].otherwise
    html, is_cut = html_of(page, encoding, settings)
    error = refused(page, html, settings)
    if error is not None:
        return Extraction(error=error, is_cut=is_cut)
    html = readable(html)
    structure: Measures = {}
    lines: set[str] = set()
    template = b""
    dates: Candidates | None = None
    signals: list[str] | None = None
    records: Sequence[RecordTexts] = ()
    try:
        tree = parse(html)
        elements = list(tree.iter())  # kept for the extractor, which would make these objects again
        marked = marked_text(tree)
        if without_marks(elements, marked):
            marked = marked_text(tree)
        visible = visible_part(marked)
        of = by_tag(elements)
        structure = structure_measures(elements, of, visible, html, url)
        dates = candidates(elements, of, html, url)
        signals = signals_of(of, url)
        characters = characters_of(marked)
        lines = page_lines(characters if visible is marked else characters_of(visible))
        template = template_sketch(elements)
        records = records_of(elements, characters, url)
        if prune(elements, visible_bytes(visible)):
            html = etree.tostring(tree, encoding="unicode", method="html")
        extracted = run(html, tree)
        if otherwise is not None:  # extraction consumed the tree
            blocks = otherwise(settings.extractor_model)
            extracted = article_or_other(extracted, structure, settings.tokenizer, lambda: blocks(parse(html)))
    except ParseFailed as unparsed:
        extracted = Extraction(error=unparsed.error)
    except MemoryError:
        extracted = Extraction(error=ExtractError.OUT_OF_MEMORY)
    except Exception:  # noqa: BLE001  # third-party code on hostile input
        extracted = Extraction(error=ExtractError.FAILED)
    if len(extracted.text) * 4 > MAX_TEXT_BYTES and len(extracted.text.encode()) > MAX_TEXT_BYTES:
        extracted = Extraction(error=ExtractError.TOO_LARGE, tried=extracted.tried)
    if extracted.text and not any(map(str.isalpha, extracted.text)):
        extracted = Extraction(error=ExtractError.NO_TEXT, tried=extracted.tried)
    return replace(
        extracted,
        structure=structure,
        lines=lines,
        template=template,
        records=records,
        is_cut=is_cut,
        dates=dates,
        signals=signals,
    )
