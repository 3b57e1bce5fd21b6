"""After a training, renews the tables of the detector's card: `python -m tests.tools.renew_card`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

import scoring
from lab.detector.report import TrainingReport, dropped, markdown_table, table_lines
from scoring.lite_ngram.detector import WEIGHTS_FILE
from tests.support.paths import ROOT
from tests.tools.generated import renewed

COMMAND = "python -m tests.tools.renew_card"
CARD = ROOT / "docs" / "reference" / "lite-ngram.md"


def main() -> None:
    """Write the tables of docs/reference/lite-ngram.md from the numbers beside the weights."""
    numbers = (Path(scoring.__file__).parent / "data" / WEIGHTS_FILE).with_suffix(".json")
    report = msgspec.json.decode(numbers.read_bytes(), type=TrainingReport)
    CARD.write_text(renewed(CARD.read_text(encoding="utf-8"), COMMAND, section_of(report)), encoding="utf-8")


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
    thresholds = f"p = {report.threshold:g} (`careful`: {report.evaluation.careful:g})"
    yield from (f"Weights `{report.digest[:8]}`, seed {report.seed}, flagged above {thresholds}.", "")
    yield from ("### What it was trained on", "")
    yield from markdown_table(files)
    yield from markdown_table([{"label/domain": name, "texts": texts} for name, texts in report.registers.items()])
    yield "Licences as the sources state them. The texts are not part of farmwatch; numbers learned from them are."
    licences = [{"licence": name, "texts": texts} for name, texts in report.licences.items()]
    yield from ("", *markdown_table(licences))
    yield from ("### How wrong it is", "", *table_lines(report.evaluation))


if __name__ == "__main__":
    main()
