"""The files of a training: labelled texts and human pages; filtered, capped and cropped, deterministic by seed."""

from __future__ import annotations

import hashlib
import math
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from lab.detector.overlaps import KnownTexts
from scoring.errors import BadTrainingData
from scoring.lite_ngram.detector import MAX_WORDS, MIN_WORDS
from scoring.lite_ngram.words import normalise
from stream.schema.vocabulary import PageClass, Truth
from stream.text.ids import Ident
from stream.text.packed_files import DamagedFile, bounded_lines, open_packed

WEB = "web"  # the domain of web pages
CROP_WORDS = (MIN_WORDS, 500)  # the same for both labels, otherwise the classifier learns length
_MIN_ASCII = 0.95
_CAP, _WEB_CAP = 500, 900  # texts per (source, domain, generator)
_PAGE_WORDS = 100  # of a page to learn from: shorter main texts are mostly notices
_ASSISTANTS = "2022-12"  # from this month on, a page may be by an assistant

T = TypeVar("T")


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a training file; further fields are ignored."""

    id: Ident
    domain: str
    generator: str
    label: Truth
    text: str
    src: str
    lic: str = "none stated"


class _UnseenLine(_Line, frozen=True, kw_only=True):
    """One line of a file that is used for measuring only; its identifier and domain are optional."""

    id: Ident = ""
    domain: str = "unknown"


class _PageLine(msgspec.Struct, frozen=True):
    """One line of a file of labelled pages."""

    id: str = ""
    articleBody: str | None = None  # the name in the files
    page_type: str | None = None
    publish_date: str | None = None


class TrainingText(NamedTuple):
    """A text that passed the filters. `words` are those of the normalised text."""

    id: str
    domain: str
    generator: str  # "human" for human texts
    llm: bool
    source: str
    licence: str
    words: list[str]


class FileReport(msgspec.Struct, frozen=True):
    """How many texts of a file were read, dropped and used."""

    sha256: str
    read: int
    dropped: dict[str, int]  # reason -> texts
    used: int

    @staticmethod
    def of(path: Path, read: int, dropped: dict[str, int], used: int) -> FileReport:
        return FileReport(hashlib.sha256(path.read_bytes()).hexdigest(), read, dropped, used)


class TextSet(NamedTuple):
    """The texts of a file."""

    samples: list[TrainingText]
    report: FileReport


class PageSet(NamedTuple):
    """Main texts of pages, as words of the normalised text."""

    name: str
    texts: list[list[str]]


class PageFile(NamedTuple):
    """A file of labelled pages, named after its folder or itself."""

    name: str
    human: list[TrainingText]  # surely by people
    recent: PageSet | None  # None: the file has no dates, and is of the time before assistants
    report: FileReport


def read_texts(path: Path, seed: int, known: KnownTexts, *, unseen: bool = False) -> TextSet:
    """Read a .jsonl file, packed as .zst or .gz or not, normalise, filter and cap it.

    A file for measuring only (`unseen`) may leave out `id` and `domain`. Texts that repeat `known` ones are dropped,
    the others are added to them. Raises BadTrainingData with file and line.
    """
    kept: list[TrainingText] = []
    dropped: Counter[str] = Counter()
    lines = list(_lines(path, _UnseenLine if unseen else _Line))
    for line in lines:
        plain = normalise(line.text)
        words = plain.split()
        if len(words) < MIN_WORDS:
            dropped["short"] += 1
        elif not _is_ascii(plain):
            dropped["not_ascii"] += 1
        elif not known.add(words):
            dropped["known"] += 1
        else:
            llm = line.label == Truth.LLM
            kept.append(TrainingText(str(line.id), line.domain, line.generator, llm, line.src, line.lic, words))
    groups: dict[tuple[str, str, str], list[int]] = {}
    for place, sample in enumerate(kept):
        groups.setdefault((sample.source, sample.domain, sample.generator), []).append(place)
    rng = random.Random(seed)  # noqa: S311  # reproducible, no secret
    chosen: list[int] = []
    for (_, domain, _), places in groups.items():
        cap = _WEB_CAP if domain == WEB else _CAP
        chosen += places if len(places) <= cap else rng.sample(places, cap)
    capped = [kept[place] for place in sorted(chosen)]
    dropped["over_cap"] = len(kept) - len(capped)
    return TextSet(capped, FileReport.of(path, len(lines), dict(sorted(dropped.items())), len(capped)))


def read_pages(path: Path, known: KnownTexts) -> PageFile:
    """The English articles of a file of labelled pages that repeat no `known` text, which they join.

    Where a file has dates, the pages from before December 2022 are surely by people; the others are only measured on.
    The file is named after the folder of a `gold.jsonl`, else after itself. Raises BadTrainingData with file and line.
    """
    name = path.parent.name if path.name == "gold.jsonl" else path.stem
    kept: list[tuple[_PageLine, list[str]]] = []
    dropped: Counter[str] = Counter()
    lines = list(_lines(path, _PageLine))
    for line in lines:
        plain = normalise(line.articleBody or "")
        words = plain.split()
        if not plain or line.page_type not in (None, PageClass.ARTICLE) or not _is_ascii(plain):
            dropped["no_english_article"] += 1
        elif len(words) < _PAGE_WORDS:
            dropped["short"] += 1
        elif not known.add(words):
            dropped["known"] += 1
        else:
            kept.append((line, words))
    dated = any(line.publish_date for line, _ in kept)
    human, recent = [], []
    for line, words in kept:
        if not dated or "" < (line.publish_date or "") < _ASSISTANTS:
            human.append(TrainingText(line.id, WEB, "human", False, name, "third-party pages", words))
        else:
            recent.append(words)
    report = FileReport.of(path, len(lines), dict(sorted(dropped.items())), len(human))
    return PageFile(name, human, PageSet(f"{name} later or undated", recent) if dated else None, report)


def _is_ascii(plain: str) -> bool:
    return sum(map(str.isascii, plain)) >= _MIN_ASCII * len(plain)


def _lines(path: Path, kind: type[T]) -> Iterator[T]:
    decoder = msgspec.json.Decoder(kind)
    try:
        with open_packed(path) as file:
            for number, line in enumerate(bounded_lines(file), start=1):
                try:
                    if line.strip():
                        yield decoder.decode(line)
                except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                    raise BadTrainingData(f"{path}, line {number}: {error}") from error
    except DamagedFile as error:
        raise BadTrainingData(str(error)) from error


def training_crop(words: Sequence[str], rng: random.Random) -> list[str]:
    """A random stretch of 150 to 500 words, uniform in length and place; a shorter text as a whole."""
    low, high = (min(limit, len(words)) for limit in CROP_WORDS)
    return _stretch(words, rng.randint(low, high), rng)


def calibration_crop(words: Sequence[str], rng: random.Random) -> list[str]:
    """A random stretch of 150 to 1,000 words, uniform in the logarithm of its length."""
    low, high = (math.log(min(limit, len(words))) for limit in (MIN_WORDS, MAX_WORDS))
    return _stretch(words, round(math.exp(rng.uniform(low, high))), rng)


def _stretch(words: Sequence[str], size: int, rng: random.Random) -> list[str]:
    start = rng.randint(0, len(words) - size)
    return list(words[start : start + size])


def balanced_weights(samples: Sequence[TrainingText], web: float = 1.0) -> NDArray[np.float64]:
    """1/sqrt(count of the text's group), then scaled to equal label totals and mean 1.

    A group is a domain's texts by one generator, or a source's human texts in one domain. Texts of web pages weigh
    `web` times as much before the scaling. Raises BadTrainingData where a label is missing.
    """
    groups = [(sample.llm, sample.domain, sample.generator if sample.llm else sample.source) for sample in samples]
    counts = Counter(groups)
    weights = np.array([1 / math.sqrt(counts[group]) for group in groups])
    weights[[sample.domain == WEB for sample in samples]] *= web
    llm = np.array([sample.llm for sample in samples], bool)
    if not llm.any() or llm.all():
        raise BadTrainingData("training needs texts of both labels, human and llm")
    for label in (llm, ~llm):
        weights[label] /= weights[label].sum()
    return np.asarray(weights * len(samples) / 2)
