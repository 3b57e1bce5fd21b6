"""The figures of the detector's card belong to the shipped weights."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import msgspec
import pytest

from lab.detector.evaluation import (
    TOGETHER,
    DetectorEvaluation,
    DomainRow,
    PageCell,
    PageSetRow,
    SourceRow,
    measure_pages,
)
from lab.detector.regression import Model
from lab.detector.report import TrainingReport, markdown_table, warning
from lab.detector.texts import read_pages
from scoring.lite_ngram.detector import LiteNgram
from tests.support.sizes import LONG
from tests.tools.generated import section
from tests.tools.renew_card import CARD, COMMAND, PAGE_SETS, section_of

SMALL_SETS = ("aeb", "cleanportaleval", "readability")


@pytest.fixture(scope="module")
def shipped() -> TrainingReport:
    """The numbers of the shipped weights."""
    data = resources.files("scoring.data").joinpath("lite-ngram.json").read_bytes()
    return msgspec.json.decode(data, type=TrainingReport)


def evaluation(rows: list[PageSetRow]) -> DetectorEvaluation:
    """Tables of a training with these page sets."""
    return DetectorEvaluation(
        in_domain=0.9,
        generators_mean=0.9,
        domains=[DomainRow("blog", 9, 0, None, 0.9, None)],
        generators=[],
        sources=[SourceRow("w", ["web"], 9, 0.0, True), SourceRow("e", ["essay"], 9, 0.5, False)],
        lengths=[],
        pages=rows,
    )


def pages(share: float, recent: float = 0.1) -> list[PageSetRow]:
    """Two sets of pages, their sum, and recent pages; at every length the same share is flagged."""

    def row(name: str, flagged: float, is_recent: bool = False) -> PageSetRow:
        return PageSetRow(name, is_recent, [PageCell(words, 9, flagged) for words in (60, 100, 150, 300, 500)])

    return [row("old", share), row("odd", share / 2), row(TOGETHER, share), row("new", recent, True)]


def test_the_card_is_that_of_the_weights_that_ship(shipped: TrainingReport) -> None:
    """The generated section follows from the shipped numbers, with the AUROCs in one table."""
    written = section(CARD.read_text(encoding="utf-8"), COMMAND)
    assert written == section_of(shipped)
    assert f"`{shipped.digest[:8]}`" in written
    rows = [line.strip("| ").split(" | ") for line in written.splitlines() if line.startswith("| ")]
    assert ["in domain", f"{shipped.evaluation.in_domain:.3f}"] in rows


def test_without_unseen_texts_nothing_is_claimed(shipped: TrainingReport) -> None:
    """Without a file of unseen texts, the card has no row on newer generators."""
    alone = msgspec.structs.replace(shipped, evaluation=msgspec.structs.replace(shipped.evaluation, unseen=None))
    words = "newer than the training files"
    assert words in section_of(shipped) and words not in section_of(alone)


def test_a_table_without_rows_has_no_lines(shipped: TrainingReport) -> None:
    """A card without licences, files and registers is written without their tables."""
    assert markdown_table([]) == []
    empty = msgspec.structs.replace(shipped, licences={}, files={}, registers={})
    assert "| licence |" not in section_of(empty)


def test_the_warning_says_what_is_flagged_of_human_web_pages() -> None:
    """The warning has the shares of all sets, of the worst set, and of recent pages, at the judged lengths only."""
    rows = pages(0.02, recent=0.15)
    rows[2] = msgspec.structs.replace(rows[2], cells=[PageCell(60, 9, 0.5), PageCell(150, 9, 0.01)])
    said = warning(evaluation(rows))
    assert "flags 1.0% of the human pages of other web collections, up to 2.0% of one, 15.0% of recent pages" in said
    assert "other collections: unknown" in warning(evaluation([]))


def test_the_shipped_warning_is_that_of_the_shipped_numbers(shipped: TrainingReport) -> None:
    """A detector's warning follows from the tables of its weights."""
    assert shipped.warning == warning(shipped.evaluation)
    assert "up to 6.8% of one" in shipped.warning and "17.5% of recent pages" in shipped.warning


@pytest.mark.data
def test_the_page_sets_are_measured_with_the_weights_that_ship(shipped: TrainingReport, shared: Path) -> None:
    """The table of human pages agrees with a measurement by the shipped weights (FARMWATCH_LONG: in every set)."""
    detector = LiteNgram.load()
    header = detector.weights.header
    measured = PAGE_SETS if LONG else SMALL_SETS
    sets = [one for name in measured for one in read_pages(shared / "data" / "pages" / name / "gold.jsonl").sets]
    model = Model(detector.weights.vector, header.intercept, shipped.threshold, header.calibration)
    rows, shown = measure_pages(model, sets), shipped.evaluation.pages
    if not LONG:
        rows, shown = ([row for row in table if row.name in SMALL_SETS] for table in (rows, shown))
        assert len(rows) == len(SMALL_SETS)
    assert [(row.name, [cell.texts for cell in row.cells]) for row in rows] == [
        (row.name, [cell.texts for cell in row.cells]) for row in shown
    ]
    for row, told in zip(rows, shown, strict=True):
        assert [cell.flagged for cell in row.cells] == pytest.approx([cell.flagged for cell in told.cells], abs=1e-4)
