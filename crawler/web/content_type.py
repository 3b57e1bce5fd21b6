"""The type of a response: whether it is an HTML page, and its charset."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import lru_cache

from chardetng_py import EncodingDetector

from crawler.web.declared_charset import charset_of_header, charset_of_markup
from stream.text.charsets import WITHOUT_CODEC, charset_named, charset_of_mark, text_in

_VALUE = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*+"?)++', re.DOTALL)  # of a list; a comma in quotes ends none
_ESSENCE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+")  # tokens of RFC 9110 section 5.6.2
_CHARSET = re.compile(r';\s*charset=(?:"[^"]*"?|[^;"]*)', re.IGNORECASE)

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_UNKNOWN = frozenset({"", "unknown/unknown", "application/unknown", "*/*", "application/octet-stream"})
MAGIC = tuple(  # of files that are no text
    bytes.fromhex(start)
    for start in (
        "255044462d",  # PDF
        "89504e470d0a",  # PNG
        "47494638",  # GIF
        "ffd8ff",  # JPEG
        "504b0304",  # zip and formats based on it
        "1f8b",  # gzip
        "28b52ffd",  # Zstandard
        "52494646",  # RIFF: WebP, WAV, AVI
        "4f676753",  # Ogg
        "494433",  # MP3
        "7f454c46",  # ELF
        "774f4646",  # WOFF
        "774f4632",
        "377abcaf",  # 7z
        "52617221",  # RAR
        "d0cf11e0",  # old Office
    )
)
_HTML_START = re.compile(
    rb"\s*+(?:(?><!--.*?-->)\s*+)*+<(?:!doctype\s+html|\?xml|html|head|body|title|meta|script|style|div|table|h1|p|a)\b",
    re.IGNORECASE | re.DOTALL,
)
SNIFFED_BYTES = 1024
# Binary data bytes of the MIME Sniffing standard, section 3
_BINARY = bytes([*range(0x00, 0x09), 0x0B, *range(0x0E, 0x1B), *range(0x1C, 0x20)])
_BINARY_SHARE = 0.1  # of the first bytes; stray control bytes occur in real pages

_DETECTED_BYTES = 128 * 1024  # from the first byte beyond ASCII: 25 ms at most
_NOT_ASCII = re.compile(rb"[^\x00-\x7f]")


@lru_cache(512)
def counting_type(content_type: str) -> str:
    """The one value of a Content-Type header that counts, "" if none can be parsed.

    A header may be sent several times, joined by commas here. By "extract a MIME type" of the Fetch Standard the last
    valid value counts, and has the charset of the values of the same type before it if it names none.
    """
    counting, kind, charset = "", "", ""
    for value in _VALUE.findall(content_type):
        essence, _, parameters = value.partition(";")
        essence = essence.strip().lower()
        if not _ESSENCE.fullmatch(essence) or essence == "*/*":
            continue
        named = _CHARSET.search(";" + parameters)
        charset = named[0] if named else charset if essence == kind else ""
        counting, kind = value.strip() if named or not charset else f"{value.strip()}{charset}", essence
    return counting


def media_type(content_type: str) -> str:
    """Media type of a Content-Type header, lower case, without parameters; "" if none can be parsed."""
    return counting_type(content_type).partition(";")[0].strip().lower()


def may_be_html(content_type: str) -> bool:
    """Whether the header allows an HTML body; if not, the body is not read."""
    kind = media_type(content_type)
    return kind in _HTML or kind in _UNKNOWN


def is_html(content_type: str, body: bytes) -> bool:
    """Whether a body is HTML: by its header unless the bytes contradict it, by its start without one."""
    if body.startswith(MAGIC):
        return False
    start = body[:SNIFFED_BYTES]
    binary = len(start) - len(start.translate(None, _BINARY))
    if binary > _BINARY_SHARE * len(start):
        # declared as UTF-16, or marked as UTF-16 or UTF-32: zero bytes are text
        is_wide = charset_of_header(content_type).startswith("utf-16") or charset_of_mark(start) != ""
        if not is_wide:
            return False
    return media_type(content_type) in _HTML or bool(_HTML_START.match(start.removeprefix(codecs.BOM_UTF8)))


def is_text(body: bytes | bytearray) -> bool:
    """Whether a body begins as text: with a byte order mark, or without a binary data byte (section 7.2 there)."""
    start = bytes(body[:SNIFFED_BYTES])
    if start.startswith(MAGIC):
        return False
    return charset_of_mark(start) != "" or start == start.translate(None, _BINARY)


def charset_of(content_type: str, body: bytes, *, truncated: bool = False) -> str:
    """Name of the charset of an HTML body: BOM, header, markup, UTF-8, detection, in this order.

    Only charsets of the Encoding Standard count, and UTF-32 with a BOM. A declaration that the bytes contradict is
    ignored: if more characters are broken than whole, or if it is the Western default and the bytes are UTF-8 beyond
    ASCII.
    """
    if marked := charset_of_mark(body):
        return marked
    is_western = False
    for declared in _declared(content_type, body):
        if declared == "cp1252" and not body.isascii():
            is_western = True
        elif _agrees(body, declared, truncated):
            return declared
    if _agrees(body, "utf-8", truncated):
        return "utf-8"
    return "cp1252" if is_western else _detected(body, truncated)


def _declared(content_type: str, body: bytes) -> Iterator[str]:
    """The charsets in header and markup; the markup is read only if the header does not suffice."""
    if charset := charset_of_header(content_type):
        yield charset
    if charset := charset_of_markup(body):
        yield charset


def _agrees(body: bytes, charset: str, truncated: bool) -> bool:
    """Whether at least half of the characters beyond ASCII are whole: real pages have single broken bytes."""
    if charset in WITHOUT_CODEC or (charset == "utf-8" and body.isascii()):
        return True
    try:
        # a truncated body may end within a character
        codecs.getincrementaldecoder(charset)("strict").decode(body, final=not truncated)
    except UnicodeError:
        text = text_in(charset, body)
        broken = text.count("\ufffd")
        return 2 * broken <= len(text) - len(text.encode("ascii", "ignore"))
    return True


def _detected(body: bytes, truncated: bool) -> str:
    """The charset that a browser guesses for bytes that are no UTF-8, by the frequencies of letters."""
    first = _NOT_ASCII.search(body)
    start = first.start() if first else 0
    detector = EncodingDetector()
    piece = body[start : start + _DETECTED_BYTES]
    detector.feed(piece, last=not truncated and start + len(piece) == len(body))  # a cut piece may end in a character
    name = detector.guess(tld=None, allow_utf8=False)
    return charset_named(name) or codecs.lookup(name).name  # it calls windows-874 cp874
