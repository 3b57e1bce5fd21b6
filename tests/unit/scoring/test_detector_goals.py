"""The detector's card is honest: what it says of the goals holds for the weights that ship."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import msgspec
import pytest

from scoring.detector_card import END
from scoring.training_report import TrainingReport

CARD = Path(__file__).parents[3] / "docs" / "detectors.md"


@pytest.fixture(scope="module")
def goals() -> str:
    """The section that is written by hand, after the generated one."""
    title, section = CARD.read_text(encoding="utf-8").partition(END)[2].split("### Measured against the goals")
    assert not title.strip()
    return section


def test_the_goals_are_measured_with_the_weights_that_ship(goals: str) -> None:
    """The section names the shipped weights, and its numbers are those of their training."""
    data = resources.files("scoring.data").joinpath("lite-ngram.json").read_bytes()
    report = msgspec.json.decode(data, type=TrainingReport)
    found = report.evaluation
    assert f"`{report.digest[:8]}`" in goals
    unseen = {row.domain: row.chat_llm for row in found.domains if row.chat_llm is not None}
    essays = max(row.flagged for row in found.sources)
    lengths = {row.words: row.found for row in found.lengths}
    for number in (
        f"| {found.in_domain:.3f} |",
        f"| {found.generators_mean:.3f} |",
        f"| {unseen['govblog']:.3f} |",
        f"**{min(unseen.values()):.3f}**",
        f"**{essays:.1%}**",
        "| " + ", ".join(f"{lengths[words]:.2f}" for words in (150, 250, 400, 700)) + " |",
    ):
        assert number.replace(" 0.", " .").replace("**0.", "**.") in goals, number


def test_what_is_missed_is_said(goals: str) -> None:
    """Each goal is met, missed or not measured, and says which."""
    rows = [line.split("|")[4].strip() for line in goals.splitlines() if line.startswith("| ")][1:]
    assert len(rows) == 9
    assert all(row.startswith(("met", "**missed**", "no such texts")) for row in rows)
