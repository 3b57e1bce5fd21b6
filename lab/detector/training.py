"""`farmwatch lab train-detector`: labelled texts → weights, and the numbers measured with them.

The same files and seed give the same bytes on every processor (lab.detector.newton).
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from farmwatch.commands.options import AsJson
from farmwatch.terminal.messages import message, put, put_json
from lab.detector.evaluation import THRESHOLD, evaluate
from lab.detector.overlaps import KnownTexts
from lab.detector.regression import Trainer
from lab.detector.report import TrainingReport, dropped, most_flagged, table_lines, warning
from lab.detector.texts import read_pages, read_texts
from lab.extras import require_sklearn
from scoring.errors import BadTrainingData, TrainingRefused
from scoring.lite_ngram.detector import WEIGHTS_FILE
from scoring.lite_ngram.weights import RECIPE, Header, pack, quantise
from scoring.statistics.rounding import WEIGHT_DIGITS, significant
from stream.text.user_errors import Exit

MAX_FLAGGED = 0.06  # of the human texts of any web source left out of training


def train_detector(
    train: Annotated[
        Path, Parameter(help="Texts to learn from: JSONL of {id, domain, generator, label, text, src, lic}.")
    ],
    /,
    *,
    dev: Annotated[
        Path, Parameter(help="Texts to calibrate and test on, of other prompts or documents than those learned from.")
    ],
    out: Annotated[Path, Parameter(help="Folder for the weights and their numbers.")],
    unseen: Annotated[
        list[Path] | None, Parameter(help="Labelled texts to measure on only; `id` and `domain` may lack.", negative="")
    ] = None,
    human_pages: Annotated[
        list[Path] | None,
        Parameter(
            help="Web pages by people to learn from: JSONL of {articleBody}. From 2022-12 on: to measure on only.",
            negative="",
        ),
    ] = None,
    seed: Annotated[int, Parameter(help="Of crops and caps.")] = 0,
    json: AsJson = False,
) -> int:
    """Learn the numbers of the built-in detector, and print every table of its errors.

    Exit code 1, and nothing is written, if it flags too many human pages of a web source that it has not seen.
    JSON: one object, as in the file beside the weights; the tables go to stderr.
    """
    require_sklearn()
    say = message if json else put
    report = run_training(train, dev, out, unseen=unseen or (), pages=human_pages or (), seed=seed, say=say)
    if json:
        put_json(msgspec.to_builtins(report))
    return Exit.OK


def run_training(
    train: Path,
    dev: Path,
    out: Path,
    *,
    unseen: Sequence[Path] = (),
    pages: Sequence[Path] = (),
    seed: int = 0,
    say: Callable[[str], None] = lambda _: None,
) -> TrainingReport:
    """Train, tell every table through `say`, and write weights and numbers to the folder `out`.

    Raises TrainingRefused (nothing is written), BadTrainingData, or MissingExtra.
    """
    known = KnownTexts()
    dev_set = read_texts(dev, seed, known)  # first: a text in two files belongs to the test
    unseen_sets = [read_texts(path, seed, known, unseen=True) for path in unseen]
    train_set = read_texts(train, seed, known)
    if not dev_set.samples or not train_set.samples:
        raise BadTrainingData(f"no usable texts in {train if dev_set.samples else dev}")
    page_files = [read_pages(path, known) for path in pages]
    training = [*train_set.samples, *(text for file in page_files for text in file.human)]
    files = {
        "train": train_set.report,
        "dev": dev_set.report,
        **{f"unseen {place}": texts.report for place, texts in enumerate(unseen_sets, start=1)},
        **{f"pages {place}: {texts.name}": texts.report for place, texts in enumerate(page_files, start=1)},
    }
    for name, file in files.items():
        say(f"{name}: {file.read} read, dropped {dropped(file) or 'none'}; used {file.used}")
    trainer = Trainer(training, dev_set.samples, seed)
    fitted = trainer.fit()
    quantised, scale = quantise(fitted.vector)
    intercept = significant(fitted.intercept, WEIGHT_DIGITS)
    # measured as it ships
    model = trainer.calibrated(fitted._replace(vector=quantised.astype(float) * scale, intercept=intercept))
    evaluation = evaluate(
        trainer,
        model,
        [sample for texts in unseen_sets for sample in texts.samples],
        [file.recent for file in page_files if file.recent is not None],
        say,
    )
    for line in table_lines(evaluation):
        say(line)
    if unfair := [row for row in evaluation.sources if row.web and row.flagged > MAX_FLAGGED]:
        named = ", ".join(f"{row.source} {row.flagged:.1%} of {row.texts}" for row in unfair)
        raise TrainingRefused(
            f"human texts of left-out web sources are flagged too often ({named}; at most {MAX_FLAGGED:.0%}): "
            "add human texts of their register; nothing was written"
        )
    packed = pack(Header(RECIPE, scale, model.intercept, model.calibration, THRESHOLD, evaluation.careful), quantised)
    used = [*training, *dev_set.samples]
    report = TrainingReport(
        digest=hashlib.sha256(packed).hexdigest(),
        warning=warning(evaluation),
        flags=most_flagged(evaluation),
        threshold=THRESHOLD,
        seed=seed,
        files=files,
        licences=_counts(sample.licence for sample in used),
        registers=_counts(f"{'llm' if sample.llm else 'human'}/{sample.domain}" for sample in used),
        evaluation=evaluation,
    ).rounded()
    out.mkdir(parents=True, exist_ok=True)
    weights = out / WEIGHTS_FILE
    weights.write_bytes(packed)
    weights.with_suffix(".json").write_bytes(report.to_json())
    say(report.warning)
    return report


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))
