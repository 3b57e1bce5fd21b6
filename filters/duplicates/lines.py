"""Lines of text by identity, to find those that a site repeats: its template.

The lines of a page are those of its main text and those of the whole page (`filters.structure.page_lines`), so that a
line of the main text is found wherever earlier pages have it. An identity is 32 bits of the xxh3-64 of a line with
single spaces; a foreign line matches one of 20,000 by chance once in 200,000 times. Case and digits count, because a
template repeats them: ignoring case finds hardly more on labelled pages, and ignoring digits costs more labelled text.
"""

from __future__ import annotations

from collections.abc import Collection

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

TEMPLATE_PAGES = 2
"""Earlier pages of the site that have a template line."""

Identities = npt.NDArray[np.uint32]


class Lines(msgspec.Struct, array_like=True, frozen=True):
    """Of each main line its identity and characters, and the page's different identities (little-endian uint32).

    `records`: of each line of its records.
    """

    main: bytes = b""
    chars: bytes = b""
    page: bytes = b""
    records: bytes = b""


def lines_of(text: str, of_page: Collection[str], cap: int, of_records: Collection[str] = ()) -> Lines:
    """The lines of a page by its main text and its other lines. It keeps the `cap` smallest, as similar pages do."""
    lines = text.split("\n")
    main = _identities(lines)
    records = _identities(of_records)
    page = np.unique(np.concatenate((main, _identities(of_page), records)))[:cap]
    chars = np.fromiter(map(len, lines), "<u4", len(lines))
    return Lines(*(part.astype("<u4").tobytes() for part in (main, chars, page, records)))


def pack_marks(marks: npt.NDArray[np.bool_]) -> bytes:
    """A bit for each line, the first line in the lowest bit of the first byte; without zero bytes at the end."""
    return np.packbits(marks, bitorder="little").tobytes().rstrip(b"\0")


def marked_lines(packed: bytes) -> list[int]:
    """The numbers of the marked lines, from 0, ascending."""
    return np.flatnonzero(np.unpackbits(np.frombuffer(packed, np.uint8), bitorder="little")).tolist()


def own_text(text: str, packed: bytes) -> str:
    """The text without its marked lines."""
    marked = set(marked_lines(packed))
    return "\n".join([line for number, line in enumerate(text.split("\n")) if number not in marked])


def _identities(lines: Collection[str]) -> Identities:
    hashed = map(xxhash.xxh3_64_intdigest, [line.encode("utf-8", "replace") for line in lines])
    return np.fromiter(hashed, np.uint64, len(lines)).astype(np.uint32)
