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
    measure_unseen,
)
from lab.detector.overlaps import KnownTexts
from lab.detector.regression import Model
from lab.detector.report import TrainingReport, markdown_table, warning
from lab.detector.texts import read_texts
from scoring.lite_ngram.detector import LiteNgram
from tests.tools.generated import section
from tests.tools.renew_card import CARD, COMMAND, section_of


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
        careful=0.99,
        domains=[DomainRow("blog", 9, 0, None, 0.9, None)],
        generators=[],
        sources=[SourceRow("w", ["web"], 9, 0.0, 0.0, True), SourceRow("e", ["essay"], 9, 0.5, 0.1, False)],
        lengths=[],
        pages=rows,
    )


def pages(share: float, recent: float = 0.1) -> list[PageSetRow]:
    """Two sets of pages, their sum, and recent pages; at every length the same share is flagged."""

    def row(name: str, flagged: float, is_recent: bool = False) -> PageSetRow:
        return PageSetRow(name, is_recent, [PageCell(words, 9, flagged) for words in (150, 300, 500)])

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
    """The warning has the shares of all collections, of the worst, and of recent pages."""
    rows = pages(0.02, recent=0.15)
    rows[2] = msgspec.structs.replace(rows[2], cells=[PageCell(150, 9, 0.01)])
    said = warning(evaluation(rows))
    assert "flags 1.0% of the human pages of other web collections, up to 2.0% of one, 15.0% of recent pages" in said
    assert "flags an unknown share of the human pages" in warning(evaluation([]))


def test_the_shipped_warning_is_that_of_the_shipped_numbers(shipped: TrainingReport) -> None:
    """A detector's warning follows from the tables of its weights."""
    assert shipped.warning == warning(shipped.evaluation)
    assert "% of one" in shipped.warning and "of recent pages" in shipped.warning


@pytest.mark.data
def test_the_figures_are_those_of_the_weights_that_ship(shipped: TrainingReport, shared: Path) -> None:
    """The shares flagged of texts that were only measured on agree with a measurement by the shipped weights."""
    detector = LiteNgram.load()
    header = detector.weights.header
    assert (header.threshold, header.careful) == (shipped.threshold, shipped.evaluation.careful)
    known, texts = KnownTexts(), shared / "data" / "texts"
    dev = read_texts(texts / "dev.jsonl.zst", shipped.seed, known).samples
    unseen = read_texts(shared / "data" / "sampleweb" / "pages.jsonl.zst", shipped.seed, known, unseen=True)
    found = measure_unseen(Model(detector.weights.vector, header.intercept, header.calibration), unseen.samples, dev)
    assert shipped.evaluation.unseen is not None
    told = {(row.source, row.generator): (row.texts, row.flagged) for row in shipped.evaluation.unseen.rows}
    assert {(row.source, row.generator) for row in found.rows} == told.keys()
    for row in found.rows:
        assert (row.texts, row.flagged) == pytest.approx(told[row.source, row.generator], abs=1e-4)
