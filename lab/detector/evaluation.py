"""The errors of a detector on domains, generators, human sources and pages that it was not trained on.

The error in domain alone misleads, so every training computes all of these, each by a fit without the tested texts;
texts that overlap are in one file only (lab.detector.overlaps). Files of unseen texts show the errors on generators
newer than all training texts. Both labels of such a file should have the same mix of topics; otherwise its AUROC is too
good.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from lab.detector.regression import Model, Trainer
from lab.detector.texts import WEB, PageSet, TrainingText
from scoring.calibration.labelled_scores import auroc
from scoring.lite_ngram.detector import MAX_WORDS, MIN_WORDS

TOGETHER = "all surely human"
_CHAT = "chat"  # the domain of chat assistants' answers, which has no human texts of its own
_LENGTHS = (150, 250, 400, 700, 1000)
_PAGE_LENGTHS = (150, 300, 500, 1000)
THRESHOLD = 0.95  # a text is flagged above this probability
CAREFUL_FPR = 0.05  # of the worst human source left out, at the careful threshold
_FEWEST_TEXTS = 50  # of a source that the careful threshold is taken from
_SPLIT = re.compile("[-_.](?:train|training|dev|valid|validation|val|test)$")


class DomainRow(msgspec.Struct, frozen=True):
    """A domain left out of training. AUROC of its human texts against each column; None without such texts."""

    domain: str
    human: int
    llm: int
    own_llm: float | None  # its own LLM texts
    chat_llm: float | None  # chat assistants: the AUROC of an unseen human register
    other_human: float | None  # its LLM texts against the human texts of the other domains


class GeneratorRow(msgspec.Struct, frozen=True):
    """A generator left out of training, against all human texts."""

    generator: str
    texts: int
    auroc: float | None
    found: float  # share flagged
    found_careful: float  # at the careful threshold


class SourceRow(msgspec.Struct, frozen=True):
    """A source's human texts that are long enough, left out of training and calibration."""

    source: str
    domains: list[str]
    texts: int
    flagged: float  # false-positive rate
    flagged_careful: float
    web: bool  # the limit of false positives applies to it


class LengthRow(msgspec.Struct, frozen=True):
    """Openings of this many words; calibration and test on different halves of the dev texts."""

    words: int
    human: int
    flagged: float  # false-positive rate
    web_human: int
    web_flagged: float | None
    llm: int
    found: float  # true-positive rate
    found_careful: float


class UnseenRow(msgspec.Struct, frozen=True):
    """Texts of one source and generator."""

    source: str
    generator: str  # "human" for human texts
    texts: int
    new: bool  # the generator, or the set of the human source, is in no training file
    auroc: float | None  # against the other label of the unseen texts
    flagged: float


class Unseen(msgspec.Struct, frozen=True):
    """The detector on texts outside the training files."""

    rows: list[UnseenRow]
    new_llm: int  # texts by new generators
    new_human: int  # texts of new human sources
    new_generators: float | None  # AUROC of these two


class PageCell(msgspec.Struct, frozen=True):
    """Openings of this many words, of pages at least that long."""

    words: int
    texts: int
    flagged: float | None  # None: no page is this long


class PageSetRow(msgspec.Struct, frozen=True):
    """A collection of human web pages left out of training and calibration, or recent pages, at every length."""

    name: str
    recent: bool  # published after assistants became common, or at an unknown time: some pages may not be human
    cells: list[PageCell]


class DetectorEvaluation(msgspec.Struct, frozen=True):
    """All tables of a training."""

    in_domain: float  # AUROC on the dev texts
    generators_mean: float  # mean AUROC over generators left out
    careful: float  # the probability above which at most a twentieth of the worst left-out source is
    domains: list[DomainRow]
    generators: list[GeneratorRow]
    sources: list[SourceRow]
    lengths: list[LengthRow]
    unseen: Unseen | None = None  # None: no such file was given
    pages: list[PageSetRow] = msgspec.field(default_factory=list)


def evaluate(
    trainer: Trainer,
    model: Model,
    unseen: Sequence[TrainingText],
    recent: Sequence[PageSet],
    progress: Callable[[str], None],
) -> DetectorEvaluation:
    """Compute every table; some forty fits. `unseen` and `recent` are measured on only."""

    def left_out(kind: str, names: Iterable[str]) -> Iterator[str]:
        for name in sorted(set(names)):
            progress(f"without {kind} {name}")
            yield name

    training, dev = trainer.training, trainer.dev
    chances: dict[str, NDArray[np.float64]] = {}
    pages: list[PageSetRow] = []
    for name in left_out("human texts of", (sample.source for sample in training if not sample.llm)):
        without = trainer.fit_calibrated(lambda sample, name=name: sample.llm or sample.source != name)  # type: ignore[misc]
        texts = [sample for sample in _where(training, llm=False, source=name) if len(sample.words) >= MIN_WORDS]
        chances[name] = trainer.p_llm(without, texts)
        if any(sample.domain == WEB for sample in texts):
            pages.append(_page_row(without, PageSet(name, [sample.words for sample in texts]), recent=False))
    careful = careful_threshold(list(chances.values()))
    every_generator = (sample.generator for sample in dev if sample.llm)
    generators = [_generator(trainer, name, careful) for name in left_out("generator", every_generator)]
    known = [row.auroc for row in generators if row.auroc is not None]
    human, llm = (trainer.margins(model, _where(dev, llm=label)) for label in (False, True))
    return DetectorEvaluation(
        in_domain=auroc(human, llm) or 0.0,
        generators_mean=sum(known) / len(known) if known else 0.0,
        careful=careful,
        domains=[_domain(trainer, name) for name in left_out("domain", (one.domain for one in [*training, *dev]))],
        generators=generators,
        sources=[_source(trainer, name, found, careful) for name, found in chances.items()],
        lengths=_lengths(trainer, model, careful),
        unseen=measure_unseen(model, unseen, [*training, *dev]) if unseen else None,
        pages=[*pages, *_together(pages), *(_page_row(model, one, recent=True) for one in recent)],
    )


def careful_threshold(sources: Sequence[NDArray[np.float64]]) -> float:
    """The least probability, to three places, that at most a twentieth of each source of enough texts exceeds."""
    worst = 0.0
    for chances in sources:
        if len(chances) >= _FEWEST_TEXTS:
            worst = max(worst, float(np.sort(chances)[::-1][int(CAREFUL_FPR * len(chances))]))
    return min(max(math.ceil(round(worst * 1000, 3)) / 1000, THRESHOLD), 0.999)


def _share(chances: NDArray[np.float64], threshold: float) -> float:
    return float(np.mean(chances > threshold)) if len(chances) else 0.0


def _domain(trainer: Trainer, domain: str) -> DomainRow:
    model, dev = trainer.fit(lambda sample: sample.domain != domain), trainer.dev
    # a domain without dev texts is completely in the training file, but unseen by this model
    inside = _where(dev, domain=domain) or _where(trainer.training, domain=domain)
    human, llm = (trainer.margins(model, _where(inside, llm=label)) for label in (False, True))
    chat = trainer.margins(model, _where(dev, domain=_CHAT, llm=True))
    other = trainer.margins(model, [sample for sample in dev if sample.domain != domain and not sample.llm])
    return DomainRow(
        domain=domain,
        human=len(human),
        llm=len(llm),
        own_llm=auroc(human, llm),
        chat_llm=auroc(human, chat) if domain != _CHAT else None,
        other_human=auroc(other, llm),
    )


def _generator(trainer: Trainer, generator: str, careful: float) -> GeneratorRow:
    model = trainer.fit_calibrated(lambda sample: sample.generator != generator)
    texts = _where(trainer.dev, generator=generator)
    area = auroc(trainer.margins(model, _where(trainer.dev, llm=False)), trainer.margins(model, texts))
    chances = trainer.p_llm(model, texts)
    return GeneratorRow(generator, len(texts), area, _share(chances, THRESHOLD), _share(chances, careful))


def _source(trainer: Trainer, source: str, chances: NDArray[np.float64], careful: float) -> SourceRow:
    domains = sorted({sample.domain for sample in _where(trainer.training, llm=False, source=source)})
    shares = _share(chances, THRESHOLD), _share(chances, careful)
    return SourceRow(source, domains, len(chances), *shares, WEB in domains)


def _lengths(trainer: Trainer, model: Model, careful: float) -> list[LengthRow]:
    dev = trainer.dev
    halves = {sample.id: place % 2 for place, sample in enumerate(sorted(dev))}
    models = [
        trainer.calibrated(model, lambda sample, half=half: halves[sample.id] != half)  # type: ignore[misc]
        for half in (0, 1)
    ]

    def chances(texts: Sequence[TrainingText], words: int) -> NDArray[np.float64]:
        parts = [
            calibrated.p_llm([text.words[:words] for text in texts if halves[text.id] == half])
            for half, calibrated in enumerate(models)
        ]
        return np.concatenate(parts)

    rows = []
    for words in _LENGTHS:
        long_enough = [sample for sample in dev if len(sample.words) >= words]
        human, llm = _where(long_enough, llm=False), _where(long_enough, llm=True)
        web = _where(human, domain=WEB)
        found = chances(llm, words)
        rows.append(
            LengthRow(
                words=words,
                human=len(human),
                flagged=_share(chances(human, words), THRESHOLD),
                web_human=len(web),
                web_flagged=_share(chances(web, words), THRESHOLD) if web else None,
                llm=len(llm),
                found=_share(found, THRESHOLD),
                found_careful=_share(found, careful),
            )
        )
    return rows


def measure_unseen(model: Model, texts: Sequence[TrainingText], seen: Collection[TrainingText]) -> Unseen:
    """Score texts of files that were not trained on; `seen` are those that were."""
    openings = [sample.words[:MAX_WORDS] for sample in texts]
    margin, flags = model.margins(openings), model.p_llm(openings) > THRESHOLD
    llm = np.array([sample.llm for sample in texts], bool)
    known = {_origin(sample) for sample in seen}
    new = np.array([_origin(sample) not in known for sample in texts], bool)
    places: dict[tuple[str, str], list[int]] = {}
    for place, sample in enumerate(texts):
        places.setdefault((sample.source, sample.generator), []).append(place)
    rows = []
    for (source, generator), chosen in sorted(places.items()):
        own = margin[chosen]
        area = auroc(margin[~llm], own) if llm[chosen[0]] else auroc(own, margin[llm])
        flagged = float(np.mean(flags[chosen]))
        rows.append(UnseenRow(source, generator, len(chosen), bool(new[chosen].all()), area, flagged))
    return Unseen(
        rows=rows,
        new_llm=int((llm & new).sum()),
        new_human=int((~llm & new).sum()),
        new_generators=auroc(margin[~llm & new], margin[llm & new]),
    )


def _origin(sample: TrainingText) -> tuple[bool, str]:
    """Label, and generator, or the collection that a human source is a split of: "essays" for "essays-test"."""
    return sample.llm, sample.generator if sample.llm else _SPLIT.sub("", sample.source)


def _page_row(model: Model, pages: PageSet, *, recent: bool) -> PageSetRow:
    cells = []
    for words in _PAGE_LENGTHS:
        cut = [text[:words] for text in pages.texts if len(text) >= words]
        cells.append(PageCell(words, len(cut), _share(model.p_llm(cut), THRESHOLD) if cut else None))
    return PageSetRow(pages.name, recent, cells)


def _together(rows: Sequence[PageSetRow]) -> list[PageSetRow]:
    """All rows as one, each page with the model that has not seen its collection; none of none."""
    cells = []
    for words, *of_rows in zip(_PAGE_LENGTHS, *(row.cells for row in rows), strict=True):
        texts = sum(cell.texts for cell in of_rows)
        flagged = sum(cell.texts * (cell.flagged or 0.0) for cell in of_rows)
        cells.append(PageCell(words, texts, flagged / texts if texts else None))
    return [PageSetRow(TOGETHER, False, cells)] if rows else []


def _where(samples: Sequence[TrainingText], **wanted: Any) -> list[TrainingText]:
    return [sample for sample in samples if all(getattr(sample, name) == value for name, value in wanted.items())]
