"""Labelled texts for training: read, filtered, capped, cropped and weighted. Deterministic by seed."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from scoring.errors import BadTrainingData
from scoring.lite_ngram.normalisation import normalise
from stream.text.ids import Ident
from stream.text.packed_files import DamagedFile, open_packed

WEB = "web"  # the domain of pages as they stand on the web
MIN_WORDS, MIN_ASCII = 150, 0.95
CROP_WORDS = (150, 500)  # both labels alike, or the classifier learns length
CALIBRATION_WORDS = (60, 700)
CAP, WEB_CAP = 500, 900  # texts per (source, domain, generator)
SAME_OPENING = 300  # normalised characters


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a training file; further fields are ignored."""

    id: Ident
    domain: str
    generator: str
    label: Literal["human", "llm"]
    text: str
    src: str
    lic: str = "none stated"
    site: str = ""  # whose pages several texts are, where that is known


class _UnseenLine(_Line, frozen=True, kw_only=True):
    """One line of a file that is only measured on: nothing is grouped by its identifier or its register."""

    id: Ident = ""
    domain: str = "unknown"


class TrainingText(NamedTuple):
    """A text that passed the filters. `words` are those of the normalised text."""

    id: str
    domain: str
    generator: str  # "human" for human texts
    llm: bool
    source: str
    licence: str
    words: list[str]
    site: str = ""


class TextSet(NamedTuple):
    """What came out of a file, and what was dropped why."""

    samples: list[TrainingText]
    read: int
    dropped: dict[str, int]  # short | not_ascii | duplicate | over_cap


def read_texts(path: Path, seed: int, known_openings: set[str] | None = None, *, unseen: bool = False) -> TextSet:
    """Read a .jsonl file, packed as .zst or .gz or not, normalise, filter and cap it.

    A file that is only measured on (`unseen`) may leave out `id` and `domain`.

    `known_openings` are texts seen elsewhere: they are dropped as duplicates, and what this file has is added to them.
    Raises BadTrainingData with file and line for a line that is no labelled text, or a file that cannot be read.
    """
    openings = set() if known_openings is None else known_openings
    kept: list[TrainingText] = []
    dropped: Counter[str] = Counter()
    count = 0
    for line in _lines(path, _UnseenLine if unseen else _Line):
        count += 1
        plain = normalise(line.text)
        words = plain.split()
        opening = plain[:SAME_OPENING]
        if len(words) < MIN_WORDS:
            dropped["short"] += 1
        elif sum(map(str.isascii, plain)) < MIN_ASCII * len(plain):
            dropped["not_ascii"] += 1
        elif opening in openings:
            dropped["duplicate"] += 1
        else:
            openings.add(opening)
            llm = line.label == "llm"
            kept.append(
                TrainingText(str(line.id), line.domain, line.generator, llm, line.src, line.lic, words, line.site)
            )
    capped = _cap(kept, random.Random(seed))  # noqa: S311  # reproducible, no secret
    dropped["over_cap"] = len(kept) - len(capped)
    return TextSet(capped, count, dict(sorted(dropped.items())))


def _lines(path: Path, kind: type[_Line]) -> Iterator[_Line]:
    decoder = msgspec.json.Decoder(kind)
    try:
        with open_packed(path) as file:
            for number, line in enumerate(file, start=1):
                if not line.strip():
                    continue
                try:
                    yield decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise BadTrainingData(f"{path}, line {number}: {error}") from error
    except (OSError, DamagedFile) as error:
        raise BadTrainingData(f"{path} cannot be read: {error}") from error


def _cap(samples: Sequence[TrainingText], rng: random.Random) -> list[TrainingText]:
    """At most CAP (of the web: WEB_CAP) of each (source, domain, generator), chosen at random, order kept."""
    groups: dict[tuple[str, str, str], list[int]] = {}
    for place, sample in enumerate(samples):
        groups.setdefault((sample.source, sample.domain, sample.generator), []).append(place)
    chosen: list[int] = []
    for (_, domain, _), places in groups.items():
        cap = WEB_CAP if domain == WEB else CAP
        chosen += places if len(places) <= cap else rng.sample(places, cap)
    return [samples[place] for place in sorted(chosen)]


def training_crop(words: Sequence[str], rng: random.Random) -> list[str]:
    """A random stretch of 150 to 500 words, uniform in length and place."""
    return _stretch(words, rng.randint(CROP_WORDS[0], min(CROP_WORDS[1], len(words))), rng)


def calibration_crop(words: Sequence[str], rng: random.Random) -> list[str]:
    """A random stretch of 60 to 700 words, uniform in the logarithm of its length."""
    low, high = math.log(CALIBRATION_WORDS[0]), math.log(min(CALIBRATION_WORDS[1], len(words)))
    return _stretch(words, round(math.exp(rng.uniform(low, high))), rng)


def _stretch(words: Sequence[str], size: int, rng: random.Random) -> list[str]:
    start = rng.randint(0, len(words) - size)
    return list(words[start : start + size])


def balanced_weights(samples: Sequence[TrainingText], web: float = 1.0) -> NDArray[np.float64]:
    """1/sqrt(count of the text's (label, domain, generator)), then scaled to equal label totals and mean 1.

    Texts of web pages weigh `web` times as much before that. Raises BadTrainingData where a label is missing.
    """
    counts = Counter((sample.llm, sample.domain, sample.generator) for sample in samples)
    weights = np.array([counts[sample.llm, sample.domain, sample.generator] ** -0.5 for sample in samples])
    weights[[sample.domain == WEB for sample in samples]] *= web
    llm = np.array([sample.llm for sample in samples], bool)
    if not llm.any() or llm.all():
        raise BadTrainingData("training needs texts of both labels, human and llm")
    for label in (llm, ~llm):
        weights[label] /= weights[label].sum()
    return np.asarray(weights * len(samples) / 2)
