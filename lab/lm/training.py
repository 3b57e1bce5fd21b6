"""Counts the n-grams of a corpus: one pass over its files for each length.

Words that come once stand for all words that are not known: their part of the corpus is the share of unknown words (I.
J. Good, 1953). How many words share it is their number and A. Chao's estimate of the species not seen, 1984.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np

from filters.perplexity.model_file import VERSION, Card, Keys, NgramHeader, Shares, Tables
from filters.perplexity.words import START, Places, Sentences, key_of, places_of, sentences_of, shifted
from lab.lm.errors import TooLittleText

_CHUNK = 4 * 1024 * 1024  # bytes of text at once
_MERGED = 1 << 22  # keys that wait to be merged, at least

Advance = Callable[[int], None]


class _Counts:
    """How often each key came."""

    def __init__(self) -> None:
        self._keys, self._counts = np.zeros(0, np.uint64), np.zeros(0, np.int64)
        self._waiting = list[tuple[Keys, Places]]()

    def add(self, keys: Keys) -> None:
        self._waiting.append(np.unique(keys, return_counts=True))
        if sum(len(keys) for keys, _ in self._waiting) > max(_MERGED, len(self._keys)):
            self.merged()

    def merged(self) -> tuple[Keys, Places]:
        """The different keys, rising, and how often each came."""
        keys = np.concatenate([self._keys, *(keys for keys, _ in self._waiting)])
        counts = np.concatenate([self._counts, *(counts for _, counts in self._waiting)])
        self._keys, of = np.unique(keys, return_inverse=True)
        self._counts = np.bincount(of, weights=counts, minlength=len(self._keys)).astype(np.int64)
        self._waiting.clear()
        return self._keys, self._counts


def train(files: Sequence[Path], order: int, card: Card, advance: Advance) -> Tables:
    """The model of a corpus, with the numbers of its words and sentences on the card.

    `advance` gets the bytes that were read. Raises OSError, TooLittleText.
    """
    words, sentences = _Counts(), 0
    for batch in _batches(files, advance):
        words.add(batch.hashes)
        sentences += int((batch.words > 0).sum())
    hashes, counts = words.merged()
    total, once, twice = int(counts.sum()), int((counts == 1).sum()), int((counts == 2).sum())
    is_known = counts > 1
    if not once or not is_known.any():
        raise TooLittleText("no word comes once, or none more often: this is too little text")
    hashes, counts = np.append(hashes[is_known], START), np.append(counts[is_known], sentences)
    rising = np.argsort(hashes)
    keys, of_keys = [hashes[rising]], [counts[rising]]
    for length in range(2, order + 1):
        ngrams = _Counts()
        for batch in _batches(files, advance):
            ngrams.add(_ngrams(batch, keys, length))
        longer, of_longer = ngrams.merged()
        if not len(longer):
            raise TooLittleText(f"no {length} words in a row come more than once: this is too little text")
        keys.append(longer)
        of_keys.append(of_longer)
    header = NgramHeader(
        version=VERSION,
        counts=tuple(map(len, keys)),
        unknown=once / total,
        unseen=float(once + once * (once - 1) // (2 * (twice + 1))),
        card=msgspec.structs.replace(card, words=total, sentences=sentences),
    )
    shares: list[Shares] = [(of_keys[0] / total).astype(np.float32)]
    for longer, of_longer, of_shorter in zip(keys[1:], of_keys[1:], of_keys, strict=False):
        shares.append((of_longer / of_shorter[(longer >> np.uint64(32)).astype(np.intp)]).astype(np.float32))
    return Tables(header, tuple(keys), tuple(shares))


def _ngrams(batch: Sentences, keys: Sequence[Keys], length: int) -> Keys:
    """The keys of the n-grams of this length whose beginning and last word are known."""
    is_first = batch.is_first()
    places = places_of(keys[0], batch.hashes)
    before = shifted(places, is_first, int(keys[0].searchsorted(START)))
    for shorter in keys[1 : length - 1]:
        before = shifted(places_of(shorter, key_of(before, places)), is_first, len(shorter))
    is_known = (places < len(keys[0])) & (before < len(keys[length - 2]))
    return key_of(before[is_known], places[is_known])


def _batches(files: Sequence[Path], advance: Advance) -> Iterator[Sentences]:
    for file in files:
        with file.open("rb") as lines:
            while chunk := lines.readlines(_CHUNK):
                yield from sentences_of(b"".join(chunk).decode("utf-8", "replace"))
                advance(sum(map(len, chunk)))
