"""What is said beside the series of shares by day of publication."""

from __future__ import annotations

import pytest

from farmwatch.share.published_rate import PublishedRate
from scoring.rates.published import CONTROLS, FEWEST_CONTROLS, MIXTURE, QUARTER, published_lines
from scoring.rates.split_rates import RateQuery
from tests.unit.scoring.rates.test_published import models, people


@pytest.mark.parametrize(("number", "by"), [(FEWEST_CONTROLS, CONTROLS), (FEWEST_CONTROLS - 1, MIXTURE)])
def test_earlier_periods_are_zero_by_construction_where_controls_are_their_articles(number: int, by: str) -> None:
    """It is said with p0 of control pages only: with that of the mixture, an earlier share of 0 is a finding."""
    lines = list(published_lines([*people(number), *models()], RateQuery(by=QUARTER)))
    said = " ".join(PublishedRate(lines, 100, 90).notes())
    assert {line.p0_by for line in lines} == {by}
    assert ("by construction" in said) == (by == CONTROLS)


def test_texts_and_articles_are_counted_apart() -> None:
    """A text on several pages is one text of the series and several articles: no share is made of the two numbers."""
    said = next(PublishedRate([], 100, 90).notes())
    assert said.startswith("90 different texts") and "100 scored articles" in said and "%" not in said
