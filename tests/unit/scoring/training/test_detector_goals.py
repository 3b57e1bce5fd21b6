"""The detector's card is honest: the study's whole table stands in it, measured with the weights that ship."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import msgspec
import pytest

from scoring.lite_ngram.detector import LiteNgram
from scoring.training.card import BEGIN, END, markdown, warning
from scoring.training.evaluation import DetectorEvaluation, DomainRow, GeneratorRow, LengthRow, SourceRow
from scoring.training.goals import Goal, goals
from scoring.training.page_sets import TOGETHER, PageCell, PageRow, measure_pages, read_pages
from scoring.training.regression import Model
from scoring.training.report import TrainingReport
from scoring.training.unseen import ReferenceRow, Unseen
from tests.support.paths import ROOT

CARD = ROOT / "docs" / "reference" / "lite-ngram.md"


@pytest.fixture(scope="module")
def shipped() -> TrainingReport:
    """The numbers beside the weights that ship."""
    data = resources.files("scoring.data").joinpath("lite-ngram.json").read_bytes()
    return msgspec.json.decode(data, type=TrainingReport)


def evaluation(*, good: bool, unseen: bool = True) -> DetectorEvaluation:
    """Tables whose figures all reach the study's, or all miss them."""
    auroc, share = (0.9991, 0.0) if good else (0.7, 0.3)
    return DetectorEvaluation(
        in_domain=auroc,
        generators_mean=auroc,
        domains=[DomainRow("blog", 9, 0, None, auroc, None)],
        generators=[GeneratorRow("g-1", 9, auroc, 0.5)],
        sources=[SourceRow("w", ["web"], 9, share, True), SourceRow("e", ["essay"], 9, 0.5, False)],
        lengths=[
            LengthRow(words, 9, share, 9, share, 9, 0.99 if good else 0.5) for words in (60, 100, 150, 250, 400, 700)
        ],
        reference=[ReferenceRow(prose, 9, auroc, share) for prose in ("language reference", "docstrings")],
        unseen=Unseen([], 9, 9, auroc, 9, auroc, 4, auroc) if unseen else None,
        pages=pages(share),
    )


def pages(share: float, recent: float = 0.1) -> list[PageRow]:
    """Two sets of pages and both together, and recent ones; at every length the same share is flagged."""

    def row(name: str, flagged: float, is_recent: bool = False) -> PageRow:
        return PageRow(name, is_recent, [PageCell(words, 9, flagged) for words in (60, 100, 150, 300, 500)])

    return [row("old", share), row("odd", share / 2), row(TOGETHER, share), row("new", recent, True)]


def named(rows: list[Goal], words: str) -> Goal:
    """The only row about `words`."""
    (found,) = [row for row in rows if words in row.what]
    return found


def test_the_card_is_that_of_the_weights_that_ship(shipped: TrainingReport) -> None:
    """The generated section is what these numbers make, and every figure of the study stands in it."""
    card = CARD.read_text(encoding="utf-8")
    assert markdown(card, shipped) == card
    section = card[card.index(BEGIN) : card.index(END)]
    assert f"`{shipped.digest[:8]}`" in section
    for goal in goals(shipped.evaluation):
        assert f"| {goal.what} | {goal.study} | {goal.here} | {goal.verdict} |" in section


def test_every_figure_of_the_study_has_a_row(shipped: TrainingReport) -> None:
    """All figures are there with the study's number: AUROCs, human shares, shares found by length, sites."""
    studied = [goal.study for goal in goals(shipped.evaluation)]
    for figure in (".987", ".991", ".96", ".82", ".83", "1.5%", "2.9%", "9.0%", "0.6%", ".998"):
        assert figure in studied, figure
    assert [goal.study for goal in goals(shipped.evaluation) if "found at" in goal.what] == [
        *("66.0%", "79.0%", "89.0%", "72.0%")
    ]


def test_reached_is_met_and_short_of_it_is_missed() -> None:
    """Figures that reach the study's are met, the others missed; what no text is for is not measured, never met."""
    for good, verdict in ((True, "met"), (False, "missed")):
        rows = goals(evaluation(good=good))
        measured = [row for row in rows if row.here != "-"]
        assert len(measured) == len(rows) - 1
        assert all(row.verdict.split(":")[0] == verdict for row in measured)
    assert named(rows, "rewrote").verdict.startswith("not measured")


def test_a_miss_names_its_generators() -> None:
    """Generators that pull the mean down are named with their figure."""
    assert named(goals(evaluation(good=False)), "each generator").verdict == "missed: g-1 .7"


def test_pages_by_people_are_those_that_no_training_has_seen() -> None:
    """The dev file's web texts, none of them flagged, meet no goal: the page sets do or miss, and sets are named."""
    flattered = msgspec.structs.replace(
        evaluation(good=False), lengths=[LengthRow(words, 9, 0.0, 177, 0.0, 9, 0.99) for words in (60, 100)]
    )
    for words in (60, 100, 150):
        found = named(goals(flattered), f"flagged at {words} words")
        assert (found.here, found.verdict) == ("30.0%", "missed: old 30.0%, odd 15.0%")
    alone = msgspec.structs.replace(flattered, pages=[])
    assert named(goals(alone), "flagged at 100 words").verdict.startswith("not measured")


def test_a_set_that_stands_out_is_named_though_all_together_are_met() -> None:
    """One set of many flagged pages does not hide behind the others."""
    rows = pages(0.01)
    rows[0] = msgspec.structs.replace(rows[0], cells=[PageCell(words, 9, 0.068) for words in (60, 100, 150, 300, 500)])
    found = named(goals(msgspec.structs.replace(evaluation(good=True), pages=rows)), "flagged at 300 words")
    assert found.verdict == "met; but old 6.8%"


def test_the_warning_says_what_is_flagged_of_human_web_pages() -> None:
    """All sets together, the worst of them, and recent pages; at the lengths that are judged only."""
    rows = pages(0.02, recent=0.15)
    rows[2] = msgspec.structs.replace(rows[2], cells=[PageCell(60, 9, 0.5), PageCell(150, 9, 0.01)])
    said = warning(msgspec.structs.replace(evaluation(good=True), pages=rows))
    assert "flags 1.0% of the human pages of other web collections, up to 2.0% of one, 15.0% of recent pages" in said
    assert "other collections: unknown" in warning(msgspec.structs.replace(evaluation(good=True), pages=[]))


def test_the_shipped_warning_is_that_of_the_shipped_numbers(shipped: TrainingReport) -> None:
    """What a detector says of itself follows from the tables beside its weights."""
    assert shipped.warning == warning(shipped.evaluation)
    assert "up to 6.8% of one" in shipped.warning and "17.5% of recent pages" in shipped.warning


@pytest.mark.data
def test_the_page_sets_are_measured_with_the_weights_that_ship(shipped: TrainingReport, shared: Path) -> None:
    """The table of human pages is what the shipped weights make of the same files today."""
    detector = LiteNgram.load()
    header = detector.weights.header
    names = ("aeb", "cleaneval", "cleanportaleval", "readability", "wcxb")
    sets = [one for name in names for one in read_pages(shared / "data" / "pages" / name / "gold.jsonl").sets]
    rows = measure_pages(Model(detector.weights.vector, header.intercept), header.calibration, sets, shipped.threshold)
    assert [(row.name, [cell.texts for cell in row.cells]) for row in rows] == [
        (row.name, [cell.texts for cell in row.cells]) for row in shipped.evaluation.pages
    ]
    for row, told in zip(rows, shipped.evaluation.pages, strict=True):
        assert [cell.flagged for cell in row.cells] == pytest.approx([cell.flagged for cell in told.cells], abs=1e-4)


def test_a_goal_is_met_by_the_figure_that_is_shown() -> None:
    """What is compared is what is printed: three places, no hidden digits."""
    exact = msgspec.structs.replace(evaluation(good=False), in_domain=0.98651)
    assert named(goals(exact), "in domain") == Goal("AUROC in domain", ".987", ".987", "met")
    assert named(goals(msgspec.structs.replace(exact, in_domain=0.98649)), "in domain").verdict == "missed"


def test_without_unseen_texts_nothing_is_claimed() -> None:
    """Newer generators and the ranking of sites are not measured where no further file was given."""
    rows = goals(evaluation(good=True, unseen=False))
    for words in ("newer", "three pages"):
        assert (named(rows, words).here, named(rows, words).verdict[:12]) == ("-", "not measured")
