"""The errors of a detector on domains, generators, human sources and pages that it was not trained on.

The error in domain alone misleads, so every training computes all of these, each by a fit without the tested texts.
Files of unseen texts and pages show the errors on generators newer than all training texts. Both labels of such a file
should have the same mix of topics; otherwise its AUROC is too good.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from lab.detector.regression import Model, Trainer
from lab.detector.texts import CROP_WORDS, WEB, PageSet, TrainingText
from scoring.calibration.labelled_scores import auroc

TOGETHER = "all surely human"
_CHAT = "chat"  # the domain of chat assistants' answers, which has no human texts of its own
_LENGTHS = (60, 100, 150, 250, 400, 700)
_PAGE_LENGTHS = (60, 100, 150, 300, 500)
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


class SourceRow(msgspec.Struct, frozen=True):
    """A source's human texts left out of training and calibration: openings of up to 500 words."""

    source: str
    domains: list[str]
    texts: int
    flagged: float  # false-positive rate
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


class UnseenRow(msgspec.Struct, frozen=True):
    """Texts of one source and generator, in openings of up to 500 words."""

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
    """A page set at every length."""

    name: str
    recent: bool
    cells: list[PageCell]


class DetectorEvaluation(msgspec.Struct, frozen=True):
    """All tables of a training."""

    in_domain: float  # AUROC on the dev texts
    generators_mean: float  # mean AUROC over generators left out
    domains: list[DomainRow]
    generators: list[GeneratorRow]
    sources: list[SourceRow]
    lengths: list[LengthRow]
    unseen: Unseen | None = None  # None: no such file was given
    pages: list[PageSetRow] = msgspec.field(default_factory=list)  # human web pages that no training has seen


def evaluate(
    trainer: Trainer,
    model: Model,
    unseen: Sequence[TrainingText],
    pages: Sequence[PageSet],
    progress: Callable[[str], None],
) -> DetectorEvaluation:
    """Compute every table; some thirty fits. `unseen` and `pages` are measured on only."""

    def left_out(kind: str, names: Iterable[str]) -> Iterator[str]:
        for name in sorted(set(names)):
            progress(f"without {kind} {name}")
            yield name

    training, dev = trainer.training, trainer.dev
    every_generator = (sample.generator for sample in dev if sample.llm)
    generators = [_generator(trainer, name) for name in left_out("generator", every_generator)]
    known = [row.auroc for row in generators if row.auroc is not None]
    human, llm = (trainer.margins(model, _where(dev, llm=label)) for label in (False, True))
    return DetectorEvaluation(
        in_domain=auroc(human, llm) or 0.0,
        generators_mean=sum(known) / len(known) if known else 0.0,
        domains=[_domain(trainer, name) for name in left_out("domain", (one.domain for one in [*training, *dev]))],
        generators=generators,
        sources=[
            _source(trainer, name)
            for name in left_out("human texts of", (sample.source for sample in training if not sample.llm))
        ],
        lengths=_lengths(trainer, model),
        unseen=measure_unseen(model, unseen, [*training, *dev]) if unseen else None,
        pages=measure_pages(model, pages),
    )


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


def _generator(trainer: Trainer, generator: str) -> GeneratorRow:
    model = trainer.fit_calibrated(lambda sample: sample.generator != generator)
    texts = _where(trainer.dev, generator=generator)
    area = auroc(trainer.margins(model, _where(trainer.dev, llm=False)), trainer.margins(model, texts))
    return GeneratorRow(generator, len(texts), area, trainer.flagged(model, texts))


def _source(trainer: Trainer, source: str) -> SourceRow:
    model = trainer.fit_calibrated(lambda sample: sample.llm or sample.source != source)
    texts = _where(trainer.training, llm=False, source=source)
    domains = sorted({sample.domain for sample in texts})
    return SourceRow(source, domains, len(texts), trainer.flagged(model, texts), WEB in domains)


def _lengths(trainer: Trainer, model: Model) -> list[LengthRow]:
    dev = trainer.dev
    halves = {sample.id: place % 2 for place, sample in enumerate(sorted(dev))}
    models = [
        trainer.calibrated(model, lambda sample, half=half: halves[sample.id] != half)  # type: ignore[misc]
        for half in (0, 1)
    ]

    def flagged(texts: Sequence[TrainingText], words: int) -> float:
        count = 0
        for half, calibrated in enumerate(models):
            count += int(calibrated.flags([text.words[:words] for text in texts if halves[text.id] == half]).sum())
        return count / len(texts) if texts else 0.0

    rows = []
    for words in _LENGTHS:
        long_enough = [sample for sample in dev if len(sample.words) >= words]
        human, llm = _where(long_enough, llm=False), _where(long_enough, llm=True)
        web = _where(human, domain=WEB)
        web_flagged = flagged(web, words) if web else None
        rows.append(
            LengthRow(words, len(human), flagged(human, words), len(web), web_flagged, len(llm), flagged(llm, words))
        )
    return rows


def measure_unseen(model: Model, texts: Sequence[TrainingText], seen: Collection[TrainingText]) -> Unseen:
    """Score texts of files that were not trained on; `seen` are those that were."""
    openings = [sample.words[: CROP_WORDS[1]] for sample in texts]
    margin, flags = model.margins(openings), model.flags(openings)
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


def measure_pages(model: Model, sets: Sequence[PageSet]) -> list[PageSetRow]:
    """Share flagged of every set; of all that are surely human together, after them; and of recent sets."""
    sure = [page_set for page_set in sets if not page_set.recent]
    if sure:
        sure.append(PageSet(TOGETHER, False, [words for page_set in sure for words in page_set.texts]))
    rows = []
    for page_set in (*sure, *(page_set for page_set in sets if page_set.recent)):
        cells = []
        for words in _PAGE_LENGTHS:
            cut = [text[:words] for text in page_set.texts if len(text) >= words]
            cells.append(PageCell(words, len(cut), float(np.mean(model.flags(cut))) if cut else None))
        rows.append(PageSetRow(page_set.name, page_set.recent, cells))
    return rows


def _where(samples: Sequence[TrainingText], **wanted: Any) -> list[TrainingText]:
    return [sample for sample in samples if all(getattr(sample, name) == value for name, value in wanted.items())]
