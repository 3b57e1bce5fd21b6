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
from scoring.training.card import markdown, warning
from scoring.training.page_sets import measure_pages, read_pages
from scoring.training.regression import Model
from scoring.training.report import FileReport, TrainingReport, page_reports
from scoring.training.texts import read_texts
from scoring.training.unseen import measure_unseen
from tests.conftest import data_root

PAGE_SETS = ("aeb", "cleaneval", "cleanportaleval", "readability", "wcxb")  # none is in the training texts


def main() -> None:
    """Read the files of the training again, measure, and write lite-ngram.json and docs/reference/lite-ngram.md."""
    data = data_root() / "data"
    file = Path(scoring.__file__).parent / "data" / WEIGHTS_FILE
    numbers, card = file.with_suffix(".json"), file.parents[2] / "docs" / "reference" / "lite-ngram.md"
    report = msgspec.json.decode(numbers.read_bytes(), type=TrainingReport)
    weights = unpack(file.read_bytes(), str(file))
    model, calibration = Model(weights.vector, weights.header.intercept), weights.header.calibration
    openings: set[str] = set()
    paths = [data / "texts" / f"{name}.jsonl.zst" for name in ("dev", "train")]
    seen = [sample for path in paths for sample in read_texts(path, report.seed, openings).samples]
    web = data / "sampleweb" / "pages.jsonl.zst"
    unseen = read_texts(web, report.seed, openings, unseen=True)
    page_paths = [data / "pages" / name / "gold.jsonl" for name in PAGE_SETS]
    pages = [read_pages(path, openings) for path in page_paths]
    evaluation = msgspec.structs.replace(
        report.evaluation,
        unseen=measure_unseen(model, calibration, unseen.samples, seen, report.threshold),
        pages=measure_pages(model, calibration, [one for found in pages for one in found.sets], report.threshold),
    )
    files = {name: told for name, told in report.files.items() if not name.startswith(("unseen", "pages"))}
    files["unseen 1"] = FileReport.of(web.read_bytes(), unseen)
    report = msgspec.structs.replace(
        report, evaluation=evaluation, files=files | page_reports(page_paths, pages), warning=warning(evaluation)
    ).rounded()
    numbers.write_bytes(report.to_json())
    card.write_text(markdown(card.read_text(encoding="utf-8"), report), encoding="utf-8")
    print(report.warning)


if __name__ == "__main__":
    main()
