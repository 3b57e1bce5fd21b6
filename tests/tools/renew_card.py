"""After a training, renews the numbers of the detector's card: `python -m tests.tools.renew_card`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

import scoring
from lab.detector.evaluation import measure_pages, measure_unseen
from lab.detector.regression import Model
from lab.detector.report import TrainingReport, dropped, markdown_table, table_lines, warning
from lab.detector.texts import read_pages, read_texts
from scoring.lite_ngram.detector import WEIGHTS_FILE
from scoring.lite_ngram.weights import unpack
from tests.support.paths import ROOT, data_root
from tests.tools.generated import renewed

COMMAND = "python -m tests.tools.renew_card"
CARD = ROOT / "docs" / "reference" / "lite-ngram.md"
PAGE_SETS = ("aeb", "cleaneval", "cleanportaleval", "readability", "wcxb")  # none of them is in the training texts


def main() -> None:
    """Read the training files again, measure, and write lite-ngram.json and docs/reference/lite-ngram.md."""
    data = data_root() / "data"
    file = Path(scoring.__file__).parent / "data" / WEIGHTS_FILE
    numbers = file.with_suffix(".json")
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
    CARD.write_text(renewed(CARD.read_text(encoding="utf-8"), COMMAND, section_of(report)), encoding="utf-8")
    print(report.warning)


def section_of(report: TrainingReport) -> str:
    """The generated section of the card."""
    return "\n".join(_lines(report)).strip()


def _lines(report: TrainingReport) -> Iterator[str]:
    files = [
        {
            "file": name,
            "read": file.read,
            "dropped": dropped(file),
            "used": file.used,
            "SHA-256": f"`{file.sha256:.12}`",
        }
        for name, file in report.files.items()
    ]
    yield from ("", f"> {report.warning}", "")
    yield from (f"Weights `{report.digest[:8]}`, seed {report.seed}, flagged above p = {report.threshold:g}.", "")
    yield from ("### What it was trained on", "")
    yield from markdown_table(files)
    yield from markdown_table([{"label/domain": name, "texts": texts} for name, texts in report.registers.items()])
    yield "Licences as the sources state them. The texts are not part of farmwatch; numbers learned from them are."
    licences = [{"licence": name, "texts": texts} for name, texts in report.licences.items()]
    yield from ("", *markdown_table(licences))
    yield from ("### How wrong it is", "", *table_lines(report.evaluation))


if __name__ == "__main__":
    main()
