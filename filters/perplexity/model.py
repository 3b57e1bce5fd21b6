"""An n-gram model: how unlikely each sentence of a text is.

The probability of a word w after the history h takes from the model's shares B what they have and gives the rest to the
word's own share U among all words: p(w | h) = a B(w | h) + (1 - a S(h)) U(w), where S(h) is the sum of the B that the
model has for h. So it sums to 1 over the words of the model and the unknown ones, however many n-grams were left out.
With trigrams, the bigrams' p takes the place of U. F. Jelinek and R. Mercer, "Interpolated estimation of Markov source
parameters", 1980. An unknown word is one of `unseen` words, which share `unknown`.

The published formula (M. Fernández-Pichel et al., "An unsupervised perplexity-based method for boilerplate removal",
Natural Language Engineering, 2023) is there to compare: its second term is the share of the history, so it is no
probability.

A word's surprisal, -log2 p, is a whole number of 4096ths of a bit, looked up by the first 17 binary digits of p, and
those of a sentence are added as whole numbers: so which sentences are above a limit does not depend on the processor,
whose logarithm may differ in its last digits.
"""

from __future__ import annotations

from enum import StrEnum
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from filters.errors import BadModel
from filters.model_file import digest_in, digest_of, refuse_changed
from filters.perplexity.model_file import SUFFIX, Card, Tables, decoded, mapped, sums_by_beginning
from filters.perplexity.names import SHIPPED
from filters.perplexity.words import START, Flags, Places, key_of, places_of, sentences_of, shifted
from filters.quality.tokens import Hashes

_UNITS = 4096  # of a bit
_MANTISSAS = 1 << 16
_DIGITS = 4  # of a perplexity
_HERE = Path()
_PARTS = {2: (0.8,), 3: (0.75, 0.6)}  # order -> a of bigrams, and of trigrams: .8 .2, and .6 .3 .1
_PUBLISHED = {2: (0.2, 0.8), 3: (0.1, 0.3, 0.6)}  # order -> weights of the word, the bigram, the trigram
_FLOOR = 1e-6


class Formula(StrEnum):
    """How the probability of a word is computed."""

    INTERPOLATED = "interpolated"
    PUBLISHED = "published"


class Surprisals(NamedTuple):
    """Sentences in a row: places of their first characters, with the text's end; words of each; sums of surprisals."""

    bounds: Places
    words: Places
    units: Places

    def above(self, limit: float) -> Flags:
        """Which sentences are less likely than a perplexity; those without a word are."""
        above: Flags = (self.units > self.words * surprisal(np.float64(1 / limit))) | (self.words == 0)
        return above

    def perplexities(self) -> list[float | None]:
        """The perplexity of each sentence, 2 to the mean surprisal; None for a sentence without a word."""
        return [
            float(f"{2 ** (units / words / _UNITS):.{_DIGITS}g}") if words else None
            for units, words in zip(self.units.tolist(), self.words.tolist(), strict=True)
        ]

    def bits(self) -> npt.NDArray[np.float64]:
        """The mean surprisal of each sentence's words in bits; 0 for a sentence without a word."""
        bits: npt.NDArray[np.float64] = self.units / np.maximum(self.words, 1) / _UNITS
        return bits


class NgramModel:
    """A model read from its file. `digest` names it, `card` says what it was trained on."""

    def __init__(self, tables: Tables, digest: str) -> None:
        self.digest = digest
        self.card: Card = tables.header.card
        self.ngrams = tables.header.counts
        self._keys, self._shares = tables.keys, tables.shares
        self._unknown = tables.header.unknown / tables.header.unseen
        beginnings = (len(keys) for keys in self._keys)
        self._sums = [
            np.append(sums_by_beginning(keys, shares, count), np.float32(0))
            for keys, shares, count in zip(self._keys[1:], self._shares[1:], beginnings, strict=False)
        ]
        self._start = int(self._keys[0].searchsorted(START))

    def surprisals(self, text: str, formula: Formula = Formula.INTERPOLATED) -> Surprisals:
        """The surprisals of a text's sentences, which together cover it."""
        bounds, words, units = [np.zeros(1, np.int64)], list[Places](), list[Places]()
        for sentences in sentences_of(text):
            ends = sentences.words.cumsum()
            sums = np.zeros(len(sentences.hashes) + 1, np.int64)
            np.cumsum(self._units(sentences.hashes, sentences.is_first(), formula), out=sums[1:])
            bounds.append(sentences.bounds[1:])
            words.append(sentences.words)
            units.append(sums[ends] - sums[ends - sentences.words])
        return Surprisals(np.concatenate(bounds), np.concatenate(words), np.concatenate(units))

    def _units(self, hashes: Hashes, is_first: Flags, formula: Formula) -> Places:
        """The surprisal of each word."""
        places = places_of(self._keys[0], hashes)
        before = shifted(places, is_first, self._start)  # the place of the n-gram that a word follows
        p = _taken(self._shares[0], places, self._unknown)
        if formula == Formula.PUBLISHED:
            p = np.full(len(places), _FLOOR)
            word_before = before if len(self._keys) == 2 else shifted(before, is_first, len(self._keys[0]))
            p += _PUBLISHED[len(self._keys)][0] * _taken(self._shares[0], word_before, 0)
        for order, (keys, shares, sums) in enumerate(zip(self._keys[1:], self._shares[1:], self._sums, strict=True)):
            found = places_of(keys, key_of(before, places))
            following = shifted(found, is_first, len(keys))
            if formula == Formula.PUBLISHED:
                is_last = order == len(self._sums) - 1
                p += _PUBLISHED[len(self._keys)][order + 1] * _taken(shares, found if is_last else following, 0)
            else:
                part = _PARTS[len(self._keys)][order]
                p = part * _taken(shares, found, 0) + (1 - part * sums[before].astype(np.float64)) * p
            before = following
        return surprisal(p)


def surprisal(p: npt.NDArray[np.float64] | np.float64) -> Places:
    """-log2 of probabilities above 0, in 4096ths of a bit."""
    mantissas, exponents = np.frexp(p)
    units: Places = _logarithms().take(((mantissas - 0.5) * 2 * _MANTISSAS).astype(np.intp)) - exponents * _UNITS
    return units


@cache
def _logarithms() -> Places:
    """The units of the middles of equal parts of 0.5 to 1: none is so near to a half that processors differ."""
    middles = (np.arange(_MANTISSAS) + 0.5) / (2 * _MANTISSAS) + 0.5
    units: Places = np.rint(np.log2(middles) * -_UNITS).astype(np.int64)
    return units


def _taken(shares: npt.NDArray[np.float32], places: Places, otherwise: float) -> npt.NDArray[np.float64]:
    """The share at each place, in double precision; `otherwise` where nothing is."""
    values = shares.take(places, mode="clip").astype(np.float64)
    values[places == len(shares)] = otherwise
    return values


@cache
def shipped_model() -> NgramModel:
    """The model of the package."""
    with resources.as_file(resources.files("filters.perplexity").joinpath(f"{SHIPPED}{SUFFIX}")) as path:
        return read_model(mapped(path), SHIPPED)


@cache  # asked for each page
def model_digest(name_or_path: str) -> str:
    """The digest of the shipped model, or of a file by its name. Raises BadModel."""
    return shipped_model().digest if name_or_path == SHIPPED else _named(Path(name_or_path))


def _named(path: Path) -> str:
    if digest := digest_in(path, SUFFIX):
        return digest
    raise BadModel(f"n-gram model {str(path)!r}: take english, or a file with the name of its digest, DIGEST{SUFFIX}")


def load_model(name_or_path: str, folder: Path = _HERE) -> NgramModel:
    """The shipped model, or that of a file DIGEST.ngrams, from `folder` on. Raises BadModel."""
    if name_or_path == SHIPPED:
        return shipped_model()
    path = folder / name_or_path
    digest = _named(path)
    data = mapped(path)
    refuse_changed(path, data, digest)
    return read_model(data, str(path))


def read_model(data: Any, where: str) -> NgramModel:
    """Read and check the content of a file; `where` names it in errors. Raises BadModel."""
    return NgramModel(decoded(data, where), digest_of(data))
