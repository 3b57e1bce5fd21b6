"""Measure anew, with the weights that ship, what needs no fit: unseen texts and page sets. Renews numbers and card.

Run by `python -m tests.tools.renew_card` after a change to how these are measured or told; a training does the same
with all of its tables and takes ten minutes. The weights, and so the detector's identity, stay.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

import scoring
from scoring.lite_ngram.detector import WEIGHTS_FILE
from scoring.lite_ngram.weights import unpack
from scoring.training.card import TrainingReport, markdown, warning
from scoring.training.evaluation import measure_pages, measure_unseen
from scoring.training.regression import Model
from scoring.training.texts import read_pages, read_texts
from tests.conftest import data_root

PAGE_SETS = ("aeb", "cleaneval", "cleanportaleval", "readability", "wcxb")  # none is in the training texts


def main() -> None:
    """Read the files of the training again, measure, and write lite-ngram.json and docs/reference/lite-ngram.md."""
    data = data_root() / "data"
    file = Path(scoring.__file__).parent / "data" / WEIGHTS_FILE
    numbers, card = file.with_suffix(".json"), file.parents[2] / "docs" / "reference" / "lite-ngram.md"
    report = msgspec.json.decode(numbers.read_bytes(), type=TrainingReport)
    weights = unpack(file.read_bytes(), str(file))
    model = Model(weights.vector, weights.header.intercept, report.threshold, weights.header.calibration)
    openings: set[str] = set()
    paths = [data / "texts" / f"{name}.jsonl.zst" for name in ("dev", "train")]
    seen = [sample for path in paths for sample in read_texts(path, report.seed, openings).samples]
    unseen = read_texts(data / "sampleweb" / "pages.jsonl.zst", report.seed, openings, unseen=True)
    pages = [read_pages(data / "pages" / name / "gold.jsonl", openings) for name in PAGE_SETS]
    evaluation = msgspec.structs.replace(
        report.evaluation,
        unseen=measure_unseen(model, unseen.samples, seen),
        pages=measure_pages(model, [one for found in pages for one in found.sets]),
    )
    files = report.files | {"unseen 1": unseen.report}
    files |= {f"pages {place}: {found.name}": found.report for place, found in enumerate(pages, start=1)}
    report = msgspec.structs.replace(report, evaluation=evaluation, files=files, warning=warning(evaluation)).rounded()
    numbers.write_bytes(report.to_json())
    card.write_text(markdown(card.read_text(encoding="utf-8"), report), encoding="utf-8")
    print(report.warning)


if __name__ == "__main__":
    main()
