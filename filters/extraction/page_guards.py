"""Cheap checks of a page before it is parsed, and the part of its HTML that is read."""

from __future__ import annotations

import re

from filters.charsets import decode
from filters.extraction.interface import ExtractError
from filters.settings import MeasureSettings

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
