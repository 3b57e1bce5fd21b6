"""The detector's card is honest: the study's whole table stands in it, measured with the weights that ship."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import msgspec
import pytest

from scoring.detector_card import BEGIN, END, markdown
from scoring.evaluation import DomainRow, Evaluation, GeneratorRow, LengthRow, SourceRow
from scoring.goals import Goal, goals
from scoring.training_report import TrainingReport
from scoring.unseen import ReferenceRow, Unseen

CARD = Path(__file__).parents[3] / "docs" / "detectors.md"


@pytest.fixture(scope="module")
def shipped() -> TrainingReport:
    """The numbers beside the weights that ship."""
    data = resources.files("scoring.data").joinpath("lite-ngram.json").read_bytes()
    return msgspec.json.decode(data, type=TrainingReport)


def evaluation(*, good: bool, unseen: bool = True) -> Evaluation:
    """Tables whose figures all reach the study's, or all miss them."""
    auroc, share = (0.9991, 0.0) if good else (0.7, 0.3)
    return Evaluation(
        in_domain=auroc,
        generators_mean=auroc,
        domains=[DomainRow("blog", 9, 0, None, auroc, None)],
        generators=[GeneratorRow("g-1", 9, auroc, 0.5)],
        sources=[SourceRow("w", ["web"], 9, share, True), SourceRow("e", ["essay"], 9, 0.5, False)],
        lengths=[
            LengthRow(words, 9, share, 9, share, 9, 0.99 if good else 0.5) for words in (60, 100, 150, 250, 400, 700)
        ],
        reference=[ReferenceRow(prose, 9, auroc, share) for prose in ("language reference", "docstrings")],
        unseen=Unseen([], auroc, auroc, 4, auroc) if unseen else None,
    )


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
