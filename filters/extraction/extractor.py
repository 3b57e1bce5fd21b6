"""HTML to main text, once: decoding, guards, and the extractors by name.

Pure: a page in, an `Extraction` out. Problems of the page are reported in `error`, not raised.
`filters.measure.workers` bounds time and memory: it runs this code in processes that can be killed.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

from filters.charsets import decode
from filters.errors import MissingExtractor
from filters.extraction.blocks import Block, BlockKind, pack
from filters.extraction.interface import ExtractError, Extraction, Extractor
from filters.settings import MeasureSettings
from filters.structure.names import Measures

MAX_ATTRIBUTES = 1_000
"""Limit of attributes per element; pages above it are not extracted. Parsers compare each attribute with all earlier
ones: 150,000 take half a minute. Real pages have fewer than 200."""

_FEW_ATTRIBUTES_CHARS = 100_000
"""Smaller pages are not searched for attributes: a single element of this size takes some 2 s to extract."""

_MANY_ATTRIBUTES = re.compile(
    # Tags as HTML defines them, skipping scripts, style sheets and comments. Possessive quantifiers avoid backtracking,
    # so the time is linear in the page. A page built to mislead this pattern is stopped by the worker's time limit.
    rf"""<(?:
        (?P<raw>(?i:script|style|title|textarea)) (?=[\t\n\f\r\ >]) (?![^>]*+(?<=/)>) [^<]*+
            (?:<(?!/(?i:(?P=raw))) [^<]*+)*+
        | !-- (?: -?> | [^-]*+ (?:-(?!-!?>) [^-]*+)*+ )
        | [!?/] [^>]*+
        | [a-zA-Z] [^\t\n\f\r\ />]*+
          (?:
            [\t\n\f\r\ /]*+ [^\t\n\f\r\ />] [^\t\n\f\r\ />=]*+
            (?: [\t\n\f\r\ ]*+ = [\t\n\f\r\ ]*+ (?: "[^"]*+" | '[^']*+' | [^\t\n\f\r\ >"'] [^\t\n\f\r\ >]*+ )?+ )?+
          ){{0,{MAX_ATTRIBUTES}}}+
          (?P<more> [\t\n\f\r\ /]*+ [^\t\n\f\r\ />])?
    )""",
    re.VERBOSE,
)
_ELEMENT = re.compile(r"<[a-zA-Z]")
_CONTROLS = bytes(set(range(1, 0x20)) - set(b"\t\n\r\f\x1b")) + b"\x7f"  # NUL is dropped before extraction
_SNIFFED_BYTES = 8192
_CONTROL_SHARE = 0.02  # random bytes have .10, text of any charset none
_IMAGES = (b"\x89PNG", b"GIF8", b"\xff\xd8\xff", b"RIFF")
_BINARIES = (b"%PDF-", b"PK\x03\x04", b"\x1f\x8b", b"\x7fELF", b"\x28\xb5\x2f\xfd")


def extractor(settings: MeasureSettings) -> Extractor:
    """The extractor of the settings. Raises MissingExtractor if its package is not installed, BadModel."""
    name = settings.extractor
    if name == "blocks":
        from filters.extraction.learned.main_blocks import by_blocks  # numpy
        from filters.extraction.learned.model import load_model

        return partial(by_blocks, load_model(settings.extractor_model))
    if name in _OPTIONAL and find_spec(name) is None:
        raise MissingExtractor(
            f"extractor {name!r} needs a package that is not installed: pip install 'farmwatch[{name}]'"
        )
    return EXTRACTORS[name]


def extract(page: bytes | str, encoding: str, settings: MeasureSettings, url: str = "") -> Extraction:
    """Main text, structure and lines of a page: bytes in the charset `encoding` ("" or wrong: UTF-8), or text.

    Raises MissingExtractor, BadModel.
    """
    from lxml import etree

    from filters.extraction.html_tree import ParseFailed, parse, readable  # lxml: import only in workers
    from filters.extraction.pruning import prune
    from filters.structure.measures import structure_measures
    from filters.structure.page_lines import page_lines, size_of, visible_text
    from filters.structure.tag_paths import template_sketch

    run = extractor(settings)
    html, is_cut = html_of(page, encoding, settings)
    error = refused(page, html, settings)
    if error is not None:
        return Extraction(error=error, is_cut=is_cut)
    html = readable(html)
    structure: Measures = {}
    lines: set[str] = set()
    template = b""
    try:
        tree = parse(html)
        elements = list(tree.iter())  # kept for the extractor, which would make these objects again
        visible = visible_text(tree)
        structure = structure_measures(elements, visible, html, url)
        lines = page_lines(visible)
        template = template_sketch(elements)
        if prune(elements, size_of(visible)):
            html = etree.tostring(tree, encoding="unicode", method="html")
        found = run(html, tree, settings)
    except ParseFailed as unparsed:
        found = Extraction(error=unparsed.error)
    except MemoryError:
        found = Extraction(error=ExtractError.OUT_OF_MEMORY)
    except Exception:  # noqa: BLE001  # third-party code on hostile input
        found = Extraction(error=ExtractError.FAILED)
    if len(found.text) * 4 > settings.max_text_bytes and len(found.text.encode()) > settings.max_text_bytes:
        found = Extraction(error=ExtractError.TOO_LARGE, tried=found.tried)
    if found.text and not any(map(str.isalpha, found.text)):
        found = Extraction(error=ExtractError.NO_TEXT, tried=found.tried)
    return replace(found, structure=structure, lines=lines, template=template, is_cut=is_cut)


def html_of(page: bytes | str, encoding: str, settings: MeasureSettings) -> tuple[str, bool]:
    """The HTML of a page that is read, and whether it is only the first part, which ends before a tag."""
    is_cut = len(page) > settings.max_html_bytes
    page = page[: settings.max_html_bytes]
    # libxml2 silently stops at a lone surrogate
    html = page.encode("utf-8", "replace").decode() if isinstance(page, str) else decode(page, encoding)
    return html[: html.rfind("<")] if is_cut else html, is_cut


def refused(page: bytes | str, html: str, settings: MeasureSettings) -> ExtractError | None:
    """Check a page cheaply before parsing; None = accepted."""
    if not html or html.isspace():
        return ExtractError.EMPTY
    if isinstance(page, bytes) and page.startswith(_IMAGES + _BINARIES):
        return ExtractError.NOT_HTML
    start = html[:_SNIFFED_BYTES].encode("utf-8", "replace")
    if len(start) - len(start.translate(None, _CONTROLS)) > _CONTROL_SHARE * len(start):
        return ExtractError.NOT_HTML
    if html.count("<") > settings.max_elements and len(_ELEMENT.findall(html)) > settings.max_elements:
        return ExtractError.TOO_MANY_ELEMENTS
    if len(html) > _FEW_ATTRIBUTES_CHARS and any(tag["more"] for tag in _MANY_ATTRIBUTES.finditer(html)):
        return ExtractError.TOO_MANY_ATTRIBUTES
    return None


def _by_trafilatura(html: str, tree: Any, settings: MeasureSettings) -> Extraction:
    from filters.extraction.trafilatura_text import by_trafilatura  # takes half a second: import only in workers

    return by_trafilatura(html, tree, settings)


def _by_resiliparse(html: str, tree: Any, settings: MeasureSettings) -> Extraction:  # noqa: ARG001  # as every extractor
    """One line per paragraph; links, code and lists are unknown (J. Bevendorff et al., "Elastic ChatNoir", ECIR 2018).

    Its time grows with the square of the `div` nesting; the worker's time limit bounds it.
    """
    from resiliparse.extract.html2text import extract_plain_text  # optional extra

    plain = extract_plain_text(
        html, preserve_formatting=True, main_content=True, list_bullets=False, alt_texts=False, comments=False
    )
    lines = [line for line in (" ".join(line.split()) for line in plain.split("\n")) if line]
    if not lines:
        return Extraction(error=ExtractError.NO_TEXT, tried=("plain",))
    rows = [Block(BlockKind.PARAGRAPH, len(line), 0, 0) for line in lines]
    return Extraction("\n".join(lines), pack(rows), "plain", "", None, ("plain",))


EXTRACTORS: dict[str, Extractor] = {"trafilatura": _by_trafilatura, "resiliparse": _by_resiliparse}
"""Extractors without a model, by name."""
_OPTIONAL = frozenset({"resiliparse"})  # the name is also that of a package, and of the extra that installs it
