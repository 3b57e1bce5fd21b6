"""The charset that an answer declares: in its Content-Type header, in its markup, or in its XML declaration.

The markup is read twice, as browsers do (HTML Standard, "prescan a byte stream" and "change the encoding"): the first
1,024 bytes as they stand, then the elements of the whole page, wherever a meta stands. Both passes are linear.
"""

from __future__ import annotations

import re
from functools import lru_cache

from stream.text.charsets import USER_DEFINED, charset_named

_PRESCAN_BYTES = 1024
_PARAMETER = re.compile(r'(?:^|;)\s*+([^\s;=]++)\s*+=\s*+(?:"((?:[^"\\]|\\.)*+)"?|([^\s;,]*+))')

# An attribute without a value has no "="; a quoted value may hold any bytes, and one that is not closed holds the rest
_VALUE = rb"""=\s*+(?:"[^"]*+(?:"|\Z)|'[^']*+(?:'|\Z)|[^\s>"'][^\s>]*+)?+"""
_ELEMENT = rb"<(?P<name>/?[a-z][^\s/>]*+)(?P<attributes>(?:" + _VALUE + rb"|[^>=]++)*+)(?P<end>>|\Z)"
_NO_ELEMENT = rb"<!--(?:-?>|.*?(?:-->|\Z))|<[!/?][^>]*+"
_RAW_TEXT = (
    rb"<(?P<raw>script|style|title|textarea|xmp|iframe|noembed|noframes)(?=[\s/>]).*?(?:</(?P=raw)(?=[\s/>])|\Z)"
)
_PRESCANNED = re.compile(rb"|".join((_NO_ELEMENT, _ELEMENT)), re.IGNORECASE | re.DOTALL)
_PARSED = re.compile(rb"|".join((_NO_ELEMENT, _RAW_TEXT, _ELEMENT)), re.IGNORECASE | re.DOTALL)
_ATTRIBUTE = re.compile(
    rb"""(=?[^\s/=>]++)(?:\s*+=\s*+(?:"([^"]*+)(?:"|\Z)|'([^']*+)(?:'|\Z)|([^\s>]*+)))?+""", re.DOTALL
)
_IN_CONTENT = re.compile(rb"""charset\s*+=\s*+(?:"([^"]*)"|'([^']*)'|([^\s;"'][^\s;]*+))""", re.IGNORECASE)
_XML = re.compile(rb"""<\?xml\s[^>]*?\bencoding\s*+=\s*+(?:"([^">]*+)"|'([^'>]*+)')""")


@lru_cache(512)
def charset_of_header(content_type: str) -> str:
    """The charset in a Content-Type header, "" if there is none."""
    for name, quoted, token in _PARAMETER.findall(content_type):
        if name.lower() == "charset":
            return charset_named(quoted or token)
    return ""


def charset_of_markup(body: bytes) -> str:
    """The charset in the markup of a page, "" if there is none. Never one that ASCII markup cannot be in."""
    last = body.lower().rfind(b"charset")
    if last >= 0:
        for text, pattern in ((body[:_PRESCAN_BYTES], _PRESCANNED), (body, _PARSED)):
            for tag in pattern.finditer(text):
                if tag.start() > last:
                    break
                if tag["end"] and tag["name"].lower() == b"meta" and (charset := _of_meta(tag["attributes"])):
                    return charset
    declaration = _XML.match(body, 0, _PRESCAN_BYTES)
    return _as_read(declaration[1] or declaration[2]) if declaration and (declaration[1] or declaration[2]) else ""


def _of_meta(attributes: bytes) -> str:
    values: dict[bytes, bytes] = {}
    for attribute in _ATTRIBUTE.finditer(attributes):
        values.setdefault(attribute[1].lower(), next(filter(None, attribute.groups()[1:]), b""))
    if b"charset" in values:
        return _as_read(values[b"charset"])
    if values.get(b"http-equiv", b"").lower() != b"content-type":
        return ""
    match = _IN_CONTENT.search(values.get(b"content", b""))
    return _as_read(next(filter(None, match.groups()), b"")) if match else ""


def _as_read(label: bytes) -> str:
    """The charset of a label in markup: as that was read, the page is in none that differs from ASCII."""
    charset = charset_named(label.decode("latin-1"))
    if charset.startswith("utf-16"):
        return "utf-8"
    return "cp1252" if charset == USER_DEFINED else charset
