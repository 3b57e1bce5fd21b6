"""Measuring on what was in neither training file: further files of texts, and the human prose that comes with Python.

Nothing is fitted here. A file of unseen texts answers what leaving out cannot: how generators newer than every training
text are told, and how well three pages rank a site. Such a file should mix topics alike in both labels; where it does
not, its AUROC is too good, and whoever hands it in knows.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

import msgspec
import numpy as np

from scoring.calibration.auroc import auroc
from scoring.lite_ngram.detector import log_length, margins, probability, read
from scoring.lite_ngram.weights import Calibration
from scoring.training.python_prose import docstrings, reference_pages
from scoring.training.regression import Floats, Model, model_margins, model_probability
from scoring.training.texts import CROP_WORDS, TrainingText

PAGES_OF_A_SITE = 3  # the study ranks sites by so many
_SPLIT = re.compile("[-_.](?:train|training|dev|valid|validation|val|test)$")


class UnseenRow(msgspec.Struct, frozen=True):
    """Texts of one source and generator, in openings of up to 500 words."""

    source: str
    generator: str  # "human" for human texts
    texts: int
    new: bool  # the generator, or the set that the human source is of, is in no training file
    auroc: float | None  # against the other label of the unseen texts
    flagged: float


class Unseen(msgspec.Struct, frozen=True):
    """What texts outside the training files say."""

    rows: list[UnseenRow]
    new_llm: int  # texts by generators that are new
    new_human: int  # texts of human sources that are new
    new_generators: float | None  # AUROC of these two
    new_prompts_llm: int  # of the first, texts whose source is new too: the others answer prompts of the training
    new_prompts: float | None  # AUROC of them against the second
    sites: int  # of new generators and new human sources
    three_pages: float | None  # AUROC of the mean margin of three pages of such a site


class ReferenceRow(msgspec.Struct, frozen=True):
    """Human prose that comes with Python, as the detector reads it: what it abstains from is left out."""

    prose: str
    texts: int
    auroc: float | None  # against the dev file's chat assistants
    flagged: float


def measure_unseen(
    model: Model,
    calibration: Calibration,
    texts: Sequence[TrainingText],
    seen: Collection[TrainingText],
    threshold: float,
) -> Unseen:
    """Score texts of files that were not trained on; `seen` are those that were."""
    openings = [sample.words[: CROP_WORDS[1]] for sample in texts]
    margin, p_llm = model_margins(model, openings), model_probability(model, calibration, openings)
    llm = np.array([sample.llm for sample in texts], bool)
    known = {(sample.llm, _origin(sample)) for sample in seen}
    sources = {set_of(sample.source) for sample in seen}
    new = np.array([(sample.llm, _origin(sample)) not in known for sample in texts], bool)
    new_source = np.array([set_of(sample.source) not in sources for sample in texts], bool)
    rows = []
    for source, generator in sorted({(sample.source, sample.generator) for sample in texts}):
        chosen = np.array([(sample.source, sample.generator) == (source, generator) for sample in texts], bool)
        of_llm = bool(llm[chosen][0])
        rows.append(
            UnseenRow(
                source=source,
                generator=generator,
                texts=int(chosen.sum()),
                new=bool(new[chosen].all()),
                auroc=auroc(margin[~llm], margin[chosen]) if of_llm else auroc(margin[chosen], margin[llm]),
                flagged=float(np.mean(p_llm[chosen] > threshold)),
            )
        )
    fresh = [place for place in range(len(texts)) if new[place]]
    pages = _site_means([texts[place] for place in fresh], margin[fresh])
    return Unseen(
        rows=rows,
        new_llm=int((llm & new).sum()),
        new_human=int((~llm & new).sum()),
        new_generators=auroc(margin[~llm & new], margin[llm & new]),
        new_prompts_llm=int((llm & new & new_source).sum()),
        new_prompts=auroc(margin[~llm & new], margin[llm & new & new_source]),
        sites=len({texts[place].site for place in fresh if texts[place].site}),
        three_pages=auroc(pages[False], pages[True]),
    )


def set_of(source: str) -> str:
    """The collection that a source is a split of: "essays" for "essays-test" and "essays-valid"."""
    return _SPLIT.sub("", source)


def _origin(sample: TrainingText) -> str:
    return sample.generator if sample.llm else set_of(sample.source)


def _site_means(texts: Sequence[TrainingText], margin: Floats) -> dict[bool, Floats]:
    """Label -> mean margins of every three neighbouring pages of a site."""
    sites: dict[tuple[bool, str], list[float]] = {}
    for sample, value in zip(texts, margin.tolist(), strict=True):
        if sample.site:
            sites.setdefault((sample.llm, sample.site), []).append(value)
    means: dict[bool, list[float]] = {False: [], True: []}
    for (label, _), values in sites.items():
        means[label] += _threes(values)
    return {label: np.array(found) for label, found in means.items()}


def _threes(values: Sequence[float]) -> Iterator[float]:
    for start in range(0, len(values) - PAGES_OF_A_SITE + 1, PAGES_OF_A_SITE):
        yield float(np.mean(values[start : start + PAGES_OF_A_SITE]))


def measure_reference(model: Model, calibration: Calibration, chat: Floats, threshold: float) -> list[ReferenceRow]:
    """Score Python's own documentation; `chat` are margins of chat assistants' texts."""
    rows = []
    for name, texts in (("language reference", reference_pages()), ("docstrings", docstrings())):
        readings = [reading for reading in map(read, texts) if not reading.abstain]
        margin = margins([reading.words for reading in readings], model.vector) + model.intercept
        length = log_length(np.array([reading.length for reading in readings], np.float64))
        p_llm = probability(margin, length, calibration)
        flagged = float(np.mean(p_llm > threshold)) if len(p_llm) else 0.0
        rows.append(ReferenceRow(name, len(readings), auroc(margin, chat), flagged))
    return rows
