"""How good a detector is where it matters: on domains, generators and human sources that it has not seen.

The number in domain alone misleads, so every training computes all of these, by fitting again without what is tested.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from scoring.calibration.auroc import auroc
from scoring.lite_ngram.weights import Calibration
from scoring.training.page_sets import PageRow, PageSet, measure_pages
from scoring.training.regression import Floats, Model, Trainer, model_probability
from scoring.training.texts import WEB, TrainingText
from scoring.training.unseen import ReferenceRow, Unseen, measure_reference, measure_unseen

CHAT = "chat"  # the domain of chat assistants' answers, which has no human texts of its own
LENGTHS = (60, 100, 150, 250, 400, 700)


class DomainRow(msgspec.Struct, frozen=True):
    """A domain left out of training. AUROC of its human texts against …; None where there are no such texts."""

    domain: str
    human: int
    llm: int
    own_llm: float | None  # its own LLM texts
    chat_llm: float | None  # chat assistants: what a human register that was never seen looks like
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
    web: bool  # the gate holds for it


class LengthRow(msgspec.Struct, frozen=True):
    """Openings of this many words; calibration and test on different halves of the dev texts."""

    words: int
    human: int
    flagged: float  # false-positive rate
    web_human: int
    web_flagged: float | None
    llm: int
    found: float  # true-positive rate


class Texts(NamedTuple):
    """What a training has: to fit on, to calibrate and test on, and to measure on only."""

    training: Sequence[TrainingText]
    dev: Sequence[TrainingText]
    unseen: Sequence[TrainingText] = ()
    pages: Sequence[PageSet] = ()


class DetectorEvaluation(msgspec.Struct, frozen=True):
    """All tables of a training."""

    in_domain: float  # AUROC on the dev texts
    generators_mean: float  # mean AUROC over generators left out
    domains: list[DomainRow]
    generators: list[GeneratorRow]
    sources: list[SourceRow]
    lengths: list[LengthRow]
    reference: list[ReferenceRow]
    unseen: Unseen | None = None  # None: no such file was given
    pages: list[PageRow] = msgspec.field(default_factory=list)  # human web pages that no training has seen


def evaluate(
    trainer: Trainer,
    model: Model,
    calibration: Calibration,
    texts: Texts,
    threshold: float,
    progress: Callable[[str], None],
) -> DetectorEvaluation:
    """Compute every table; some thirty fits."""
    training, dev = texts.training, texts.dev
    domains, generators, sources = [], [], []
    for domain in _names(sample.domain for sample in [*training, *dev]):
        progress(f"without domain {domain}")
        domains.append(_domain(trainer, domain, training, dev))
    for generator in _names(sample.generator for sample in dev if sample.llm):
        progress(f"without generator {generator}")
        generators.append(_generator(trainer, generator, dev, threshold))
    for source in _names(sample.source for sample in training if not sample.llm):
        progress(f"without human texts of {source}")
        sources.append(_source(trainer, source, training, threshold))
    known = [row.auroc for row in generators if row.auroc is not None]
    whole = auroc(_margins(trainer, model, dev, llm=False), _margins(trainer, model, dev, llm=True))
    chat = _margins(trainer, model, [sample for sample in dev if sample.domain == CHAT], llm=True)
    return DetectorEvaluation(
        in_domain=whole or 0.0,
        generators_mean=sum(known) / len(known) if known else 0.0,
        domains=domains,
        generators=generators,
        sources=sources,
        lengths=_lengths(trainer, model, dev, threshold),
        reference=measure_reference(model, calibration, chat, threshold),
        unseen=measure_unseen(model, calibration, texts.unseen, [*training, *dev], threshold) if texts.unseen else None,
        pages=measure_pages(model, calibration, texts.pages, threshold),
    )


def _domain(trainer: Trainer, domain: str, training: Sequence[TrainingText], dev: Sequence[TrainingText]) -> DomainRow:
    model = trainer.fit(lambda sample: sample.domain != domain)
    inside = [sample for sample in dev if sample.domain == domain]
    if not inside:  # all of the domain is in the training file: unseen by this model all the same
        inside = [sample for sample in training if sample.domain == domain]
    human, llm = _margins(trainer, model, inside, llm=False), _margins(trainer, model, inside, llm=True)
    chat = _margins(trainer, model, [sample for sample in dev if sample.domain == CHAT], llm=True)
    other = _margins(trainer, model, [sample for sample in dev if sample.domain != domain], llm=False)
    return DomainRow(
        domain=domain,
        human=len(human),
        llm=len(llm),
        own_llm=auroc(human, llm),
        chat_llm=auroc(human, chat) if domain != CHAT else None,
        other_human=auroc(other, llm),
    )


def _generator(trainer: Trainer, generator: str, dev: Sequence[TrainingText], threshold: float) -> GeneratorRow:
    model = trainer.fit(lambda sample: sample.generator != generator)
    calibration = trainer.calibrate(model, lambda sample: sample.generator != generator)
    texts = [sample for sample in dev if sample.generator == generator]
    return GeneratorRow(
        generator=generator,
        texts=len(texts),
        auroc=auroc(_margins(trainer, model, dev, llm=False), _margins(trainer, model, texts, llm=True)),
        found=_share(trainer.probabilities(model, calibration, texts), threshold),
    )


def _source(trainer: Trainer, source: str, training: Sequence[TrainingText], threshold: float) -> SourceRow:
    def keep(sample: TrainingText) -> bool:
        return sample.llm or sample.source != source

    model = trainer.fit(keep)
    calibration = trainer.calibrate(model, keep)
    texts = [sample for sample in training if not keep(sample)]
    domains = _names(sample.domain for sample in texts)
    return SourceRow(
        source=source,
        domains=domains,
        texts=len(texts),
        flagged=_share(trainer.probabilities(model, calibration, texts), threshold),
        web=WEB in domains,
    )


def _lengths(trainer: Trainer, model: Model, dev: Sequence[TrainingText], threshold: float) -> list[LengthRow]:
    halves = {sample.id: place % 2 for place, sample in enumerate(sorted(dev))}
    calibrations = [
        trainer.calibrate(model, lambda sample, half=half: halves[sample.id] != half)  # type: ignore[misc]
        for half in (0, 1)
    ]

    def flagged(texts: Sequence[TrainingText], words: int) -> float:
        parts = [
            (
                part,
                _share(model_probability(model, calibrations[half], [text.words[:words] for text in part]), threshold),
            )
            for half in (0, 1)
            if (part := [sample for sample in texts if halves[sample.id] == half])
        ]
        return sum(len(part) * share for part, share in parts) / len(texts) if texts else 0.0

    rows = []
    for words in LENGTHS:
        long_enough = [sample for sample in dev if len(sample.words) >= words]
        human = [sample for sample in long_enough if not sample.llm]
        web = [sample for sample in human if sample.domain == WEB]
        llm = [sample for sample in long_enough if sample.llm]
        rows.append(
            LengthRow(
                words=words,
                human=len(human),
                flagged=flagged(human, words),
                web_human=len(web),
                web_flagged=flagged(web, words) if web else None,
                llm=len(llm),
                found=flagged(llm, words),
            )
        )
    return rows


def _margins(trainer: Trainer, model: Model, samples: Sequence[TrainingText], *, llm: bool) -> Floats:
    return trainer.margins(model, [sample for sample in samples if sample.llm is llm])


def _share(p_llm: Floats, threshold: float) -> float:
    return float(np.mean(p_llm > threshold)) if len(p_llm) else 0.0


def _names(values: Iterable[str]) -> list[str]:
    return sorted(set(values))
