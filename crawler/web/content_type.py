"""The type of a response: whether it is an HTML page, and its charset."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterator
from functools import lru_cache

from w3lib.encoding import html_body_declared_encoding, http_content_type_encoding, read_bom

_VALUE = re.compile(r'(?:[^",]|"(?:[^"\\]|\\.)*+"?)++', re.DOTALL)  # of a list; a comma in quotes ends none
_ESSENCE = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+/[!#$%&'*+.^_`|~0-9a-z-]+")  # tokens of RFC 9110 section 5.6.2
_CHARSET = re.compile(r';\s*charset=(?:"[^"]*"?|[^;"]*)', re.IGNORECASE)

_HTML = frozenset({"text/html", "application/xhtml+xml"})
_UNKNOWN = frozenset({"", "unknown/unknown", "application/unknown", "*/*", "application/octet-stream"})
_MAGIC = tuple(
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

# Python's names of the encodings of the Encoding Standard (encoding.spec.whatwg.org, section 4.2). Its other codecs are
# no charsets of the web: some are no text, some raise, `punycode` takes quadratic time, `utf-7` hides markup.
_CHARSETS = frozenset(
    """utf-8 utf-16 utf-16-le utf-16-be cp866 iso8859-2 iso8859-3 iso8859-4 iso8859-5 iso8859-6 iso8859-7 iso8859-8
    iso8859-10 iso8859-13 iso8859-14 iso8859-15 iso8859-16 koi8-r koi8-u mac-roman mac-cyrillic cp874 cp1250 cp1251
    cp1252 cp1253 cp1254 cp1255 cp1256 cp1257 cp1258 gb18030 big5hkscs euc_jp iso2022_jp cp932 cp949
    """.split()  # noqa: SIM905  # a table of words
)


_of_header = lru_cache(512)(http_content_type_encoding)  # the web has few of them


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
    if body.startswith(_MAGIC):
        return False
    start = body[:SNIFFED_BYTES]
    binary = len(start) - len(start.translate(None, _BINARY))
    if binary > _BINARY_SHARE * len(start) and not _is_wide(content_type, start):
        return False
    return media_type(content_type) in _HTML or bool(_HTML_START.match(start.removeprefix(codecs.BOM_UTF8)))


def _is_wide(content_type: str, start: bytes) -> bool:
    """Whether a body is declared or marked as UTF-16 or UTF-32, where zero bytes are text."""
    declared = content_type.lower()
    return "utf-16" in declared or "utf-32" in declared or read_bom(start)[0] is not None


def is_text(body: bytes | bytearray) -> bool:
    """Whether a body begins as text: with a byte order mark, or without a binary data byte (section 7.2 there)."""
    start = bytes(body[:SNIFFED_BYTES])
    if start.startswith(_MAGIC):
        return False
    return read_bom(start)[0] is not None or start == start.translate(None, _BINARY)


def charset_of(content_type: str, body: bytes, *, truncated: bool = False) -> str:
    """Python's name of the charset of an HTML body: BOM, header, meta, strict UTF-8, windows-1252, in this order.

    Only charsets of the Encoding Standard count, and UTF-32 with a BOM: all decode in linear time. A declaration that
    the bytes contradict is ignored: if more characters are broken than whole, or if it is the Western default and the
    bytes are UTF-8 beyond ASCII.
    """
    bom, _ = read_bom(body)
    if bom is not None:
        return bom
    for declared in _declared(content_type, body):
        if declared == "cp1252" and not body.isascii():
            continue
        if _decodes(body, declared, truncated) or _mostly_decodes(body, declared):
            return declared
    return "utf-8" if _decodes(body, "utf-8", truncated) else "cp1252"


def _declared(content_type: str, body: bytes) -> Iterator[str]:
    """The charsets in header and markup; the markup is read only if the header does not suffice."""
    name = _of_header(content_type)
    if name in _CHARSETS:
        yield name
    name = html_body_declared_encoding(body)
    if name in _CHARSETS:
        yield name


def _decodes(body: bytes, encoding: str, truncated: bool) -> bool:
    """Whether the bytes decode; a truncated body may end within a character."""
    try:
        if truncated:
            codecs.getincrementaldecoder(encoding)("strict").decode(body)
        else:
            body.decode(encoding)
    except (UnicodeError, LookupError):
        return False
    return True


def _mostly_decodes(body: bytes, encoding: str) -> bool:
    """Whether at least half of the characters beyond ASCII are whole: real pages have single broken bytes."""
    try:
        text = body.decode(encoding, "replace")
    except (UnicodeError, LookupError):
        return False
    broken = text.count("\ufffd")
    return 2 * broken <= len(text) - len(text.encode("ascii", "ignore"))
