"""`farmwatch train-detector`: labelled texts → weights, the numbers measured with them, and the detector's card.

Same files, seed and library versions, same bytes on the same machine; docs/how-to/train-detector.md says what another
processor changes.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from scoring.errors import BadTrainingData, TrainingRefused
from scoring.lite_ngram.detector import WEIGHTS_FILE
from scoring.lite_ngram.weights import RECIPE, Header, pack, quantise
from scoring.statistics.rounding import WEIGHT_DIGITS, significant
from scoring.training.card import TrainingReport, dropped, markdown, table_lines, warning
from scoring.training.evaluation import DetectorEvaluation, Texts, evaluate
from scoring.training.regression import Trainer
from scoring.training.texts import read_pages, read_texts

MAX_FLAGGED = 0.06  # of the human texts of any web source left out of training


class TrainingOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `farmwatch train-detector` takes."""

    train: Path
    """Labelled texts to fit on, .jsonl or .jsonl.zst: {id, domain, generator, label, text, src, lic}."""
    dev: Path
    """Labelled texts to calibrate and test on, split from `train` by group (prompt or source document)."""
    out: Path
    """Folder that gets lite-ngram.weights and lite-ngram.json."""
    unseen: tuple[Path, ...] = ()
    """Further labelled texts to measure on only: generators and human sources that neither file has."""
    pages: tuple[Path, ...] = ()
    """Files of human web pages to measure on only: {articleBody[, page_type, publish_date]} a line."""
    card: Path | None = None
    """Markdown file whose generated section is renewed, or written when there is no such file."""
    seed: int = 0
    """Seed of crops and caps."""
    threshold: float = 0.95
    """A text is flagged above this probability."""


def run_training(options: TrainingOptions, say: Callable[[str], None] = lambda _: None) -> TrainingReport:
    """Train, print every table through `say`, and write weights, numbers and card.

    Raises TrainingRefused (nothing is written) when a held-out web source has more than 6% of its human texts flagged,
    BadTrainingData, or MissingExtra.
    """
    openings: set[str] = set()
    dev = read_texts(options.dev, options.seed, openings)  # first: a text in both files belongs to the test
    train = read_texts(options.train, options.seed, openings)
    if not dev.samples or not train.samples:
        raise BadTrainingData(f"no usable texts in {options.dev if not dev.samples else options.train}")
    unseen = [read_texts(path, options.seed, openings, unseen=True) for path in options.unseen]
    pages = [read_pages(path, openings) for path in options.pages]
    files = {
        "train": train.report,
        "dev": dev.report,
        **{f"unseen {place}": found.report for place, found in enumerate(unseen, start=1)},
        **{f"pages {place}: {found.name}": found.report for place, found in enumerate(pages, start=1)},
    }
    for name, file in files.items():
        say(f"{name}: {file.read} read, dropped {dropped(file) or 'none'}; used {file.used}")
    trainer = Trainer(train.samples, dev.samples, options.seed, options.threshold)
    fitted = trainer.fit()
    quantised, scale = quantise(fitted.vector)
    intercept = significant(fitted.intercept, WEIGHT_DIGITS)
    # measured as it ships
    model = trainer.calibrated(fitted._replace(vector=quantised.astype(float) * scale, intercept=intercept))
    texts = Texts(
        train.samples,
        dev.samples,
        [sample for found in unseen for sample in found.samples],
        [page_set for found in pages for page_set in found.sets],
    )
    evaluation = evaluate(trainer, model, texts, say)
    for line in table_lines(evaluation):
        say(line)
    _refuse_if_unfair(evaluation)
    packed = pack(Header(RECIPE, scale, model.intercept, model.calibration, options.threshold), quantised)
    used = [*train.samples, *dev.samples]
    report = TrainingReport(
        digest=hashlib.sha256(packed).hexdigest(),
        warning=warning(evaluation),
        threshold=options.threshold,
        seed=options.seed,
        files=files,
        licences=_counts(sample.licence for sample in used),
        registers=_counts(f"{'llm' if sample.llm else 'human'}/{sample.domain}" for sample in used),
        evaluation=evaluation,
    ).rounded()  # the card says what the file says
    _write(options, packed, report)
    say(report.warning)
    return report


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _refuse_if_unfair(evaluation: DetectorEvaluation) -> None:
    unfair = [row for row in evaluation.sources if row.web and row.flagged > MAX_FLAGGED]
    if unfair:
        named = ", ".join(f"{row.source} {row.flagged:.1%} of {row.texts}" for row in unfair)
        raise TrainingRefused(
            f"human texts of left-out web sources are flagged too often ({named}; at most {MAX_FLAGGED:.0%}): "
            "add human texts of their register; nothing was written"
        )


def _write(options: TrainingOptions, packed: bytes, report: TrainingReport) -> None:
    options.out.mkdir(parents=True, exist_ok=True)
    weights = options.out / WEIGHTS_FILE
    weights.write_bytes(packed)
    weights.with_suffix(".json").write_bytes(report.to_json())
    if options.card is not None:
        options.card.parent.mkdir(parents=True, exist_ok=True)
        old = options.card.read_text(encoding="utf-8") if options.card.exists() else ""
        options.card.write_text(markdown(old, report), encoding="utf-8")
