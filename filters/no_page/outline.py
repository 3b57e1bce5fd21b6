"""Outlines of answers, to tell whether two answers of a site are the same "not found" page.

An outline holds hashes of title, headings and the body's classes, and a one-permutation MinHash (P. Li, A. Owen,
C.-H. Zhang, "One permutation hashing", NIPS 2012) of the text outside of links, navigation and footer. Links are left
out because recommendations change with each answer and menus are the same on all pages of a site. Words with a digit
are left out too: dates, tokens, and the random path, which many such pages repeat.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import xxhash

from filters.no_page.view import View, body_class, text_size

WORDS = 300  # of the text, of which shingles are made
_SHINGLE = 3  # words
_FEWEST_WORDS = 5  # an outline is made of; the shell of an application says "Loading…" on all of its pages
_PLACES = 90
_HEAD = struct.Struct("<2s?xIIII")  # version, class says error, digests of title, heading, classes and lead
_VERSION = b"n1"
_EMPTY = 0xFFFF
_LEAD_SIZE = 30  # of a block that may be the message
_LONG_WORD = 16  # characters; a longer one is text in a script without spaces
SIZE = _HEAD.size + 2 * _PLACES

# two answers are the same if these shares of the shingles are
_TITLES_EQUAL = 0.5  # the same title
_NO_TITLES = 0.8  # no title, but the same heading and classes
_CLASS_SAYS = 0.3  # other titles, but the classes of both name an error

_QUOTES = "\"'`“”„«»‹›「」().,:;/"
_DIGIT = re.compile(r"\d")
_TOKEN = re.compile(r"(?=\D*\d)[^/]{8}|.*/")  # in a title: an identifier or a path, but no year and no chapter
_ERROR_CLASS = re.compile(r"(?:^|[ _-])(?:error-?404|404|not-?found|no-?results?|error-?page|page-?error)(?:$|[ _-])")
_FACTORS = np.array([0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], np.uint64)  # primes of xxHash


def outline_of(url: str, view: View) -> bytes:
    """The outline of an answer, `SIZE` bytes; b"" for one with hardly any text."""
    path = unquote(url[:2000]).lower()
    # parts of the path that are no plain words: a real page has the words of its URL in its title
    echo = frozenset(part for part in (path, *path.split("/")) if len(part) > 5 and not part.isalpha())
    words = _words(" ".join(view.blocks)[: 16 * WORDS], echo)
    if len(words) < _FEWEST_WORDS:
        return b""
    classes = body_class(view.visible)
    heading = next(iter(view.headings), "")
    head = _HEAD.pack(
        _VERSION,
        error_class(classes),
        _digest(_title_words(view.title, echo)),
        _digest(_title_words(heading, echo)),
        _digest(sorted(word for word in classes.split() if not _DIGIT.search(word))),
        _digest(_words(_lead(view, heading), echo)),
    )
    return head + _sketch(words).astype("<u2").tobytes()


def same(outline: bytes, other: bytes) -> bool:
    """Whether two answers of one site are the same "not found" page, by their outlines. Symmetric; False for b""."""
    if not all(len(one) == SIZE and one.startswith(_VERSION) for one in (outline, other)):
        return False
    _, error, title, heading, classes, lead = _HEAD.unpack_from(outline)
    _, other_error, other_title, other_heading, other_classes, other_lead = _HEAD.unpack_from(other)
    ours, theirs = (np.frombuffer(one, "<u2", offset=_HEAD.size) for one in (outline, other))
    used = (ours != _EMPTY) | (theirs != _EMPTY)
    alike = int(np.count_nonzero((ours == theirs) & used)) / max(1, int(np.count_nonzero(used)))
    rest_equal = (heading, classes) == (other_heading, other_classes)
    if title != other_title:
        return bool(error and other_error) and alike >= _CLASS_SAYS
    if not title:
        return rest_equal and alike >= _NO_TITLES
    return alike >= _TITLES_EQUAL or (rest_equal and bool(lead) and lead == other_lead)


def error_class(classes: str) -> bool:
    """Whether the classes of a body name an error, as those of WordPress do for a path that it does not know."""
    return bool(_ERROR_CLASS.search(classes))


def _lead(view: View, heading: str) -> str:
    """The first sentence or so after the heading: recommendations and their excerpts follow it."""
    start = next((number for number, block in enumerate(view.blocks, 1) if block.strip() == heading), 0)
    return next((block for block in view.blocks[start:] if text_size(block) >= _LEAD_SIZE), "")


def _words(text: str, echo: frozenset[str]) -> list[str]:
    words: list[str] = []
    for word in text.split()[:WORDS]:
        if len(word) > _LONG_WORD and not word.isascii():
            words += filter(str.isalpha, word)
        elif word.isalpha() or not (_DIGIT.search(word) or word.strip(_QUOTES) in echo):
            words.append(word)
    return words[:WORDS]


def _title_words(text: str, echo: frozenset[str]) -> list[str]:
    return [word for word in text.split() if word.isalpha() or not (_TOKEN.match(word) or word.strip(_QUOTES) in echo)]


def _digest(words: Iterable[str]) -> int:
    joined = " ".join(words)
    return xxhash.xxh32_intdigest(joined.encode("utf-8", "replace")) if joined else 0


def _sketch(words: list[str]) -> npt.NDArray[np.uint16]:
    sketch = np.full(_PLACES, _EMPTY, np.uint16)
    encoded = "\n".join(words).encode("utf-8", "replace").split(b"\n")
    hashes = np.fromiter(map(xxhash.xxh3_64_intdigest, encoded), np.uint64, len(words))
    count = len(words) - _SHINGLE + 1
    mixed = np.zeros(count, np.uint64)
    for place in range(_SHINGLE):
        mixed += hashes[place : place + count] * _FACTORS[place]
    mixed ^= mixed >> np.uint64(33)
    mixed *= np.uint64(0xFF51AFD7ED558CCD)
    mixed ^= mixed >> np.uint64(33)
    np.minimum.at(sketch, mixed % np.uint64(_PLACES), (mixed >> np.uint64(48)).astype(np.uint16))
    return sketch
