"""The decoding of pages by the charset that they claim."""

from __future__ import annotations

import codecs

from stream.text.charsets import WITHOUT_CODEC, text_in

# codecs of Python that are no charsets of pages, and slow
_NOT_CHARSETS = frozenset({"idna", "punycode", "unicode-escape", "raw-unicode-escape", "utf-7", "undefined"})


def decode(page: bytes, encoding: str) -> str:
    """Decode `page`. Invalid bytes become U+FFFD; an unknown charset counts as UTF-8."""
    try:
        name = encoding if encoding in WITHOUT_CODEC else codecs.lookup(encoding or "utf-8").name
        text = text_in("utf-8" if name in _NOT_CHARSETS else name, page)
    except (LookupError, ValueError):  # unknown, not a charset ("zlib"), or a codec that cannot replace
        text = page.decode("utf-8", "replace")
    return text.removeprefix("\ufeff")
