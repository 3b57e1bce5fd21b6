"""The list of the most certain LLM sites."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from scoring.estimate.fit import WIDE, KnownSites
from scoring.estimate.mixture import estimate_share
from scoring.rates.certain_sites import certain_cells, certain_llm_sites, contradicts
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import llm_probabilities
from tests.support.listed_farms import false_farms
from tests.support.site_rows import cell_rows
from tests.support.sizes import LONG

HUMAN, LLM = [(10, 0)] * 30 + [(10, 1)] * 10, [(10, 9)] * 12 + [(10, 8)] * 8


def test_llm_sites_are_listed_the_most_certain_first() -> None:
    """Clear LLM sites are all listed, those with more flagged articles first; human sites and canaries are not."""
    rows = cell_rows([*HUMAN, *LLM]) + cell_rows([(10, 10)], "x{}.1.llm.canary.invalid")
    certain = certain_llm_sites(rows, RateSettings(), 0, 0.01).sites
    assert list(certain) == sorted(certain, key=lambda site: -certain[site])
    assert set(certain) == {row.site for row in rows[len(HUMAN) : len(HUMAN) + len(LLM)]}


@given(
    st.dictionaries(
        st.tuples(st.integers(1, 20), st.integers(0, 20)), st.tuples(st.integers(1, 50), st.floats(0, 1)), min_size=1
    ),
    st.floats(0.001, 0.5),
)
def test_a_list_is_the_longest_that_keeps_its_word(cells: dict[tuple[int, int], tuple[int, float]], fdr: float) -> None:
    """The mean of 1 - p is at most the stated share, and with the next cell it would not be, or that is unlikely."""
    numbers = {cell: number for cell, (number, _) in cells.items()}
    likely = {cell: chance for cell, (_, chance) in cells.items()}
    certain = certain_cells(numbers, likely, fdr)
    false = sum(numbers[cell] * (1 - likely[cell]) for cell in certain)
    assert false <= fdr * sum(numbers[cell] for cell in certain) + 1e-9
    rest = sorted(likely.keys() - certain.keys(), key=lambda cell: (-likely[cell], cell))
    assert all(likely[cell] >= max(likely[other] for other in rest) for cell in certain if rest)
    if rest and likely[rest[0]] >= 0.5:
        more = [*certain, rest[0]]
        assert sum(numbers[cell] * (1 - likely[cell]) for cell in more) > fdr * sum(numbers[cell] for cell in more)


@pytest.mark.parametrize(("human", "llm", "share"), [(0.045, 0.8, 0.3), (0.045, 0.8, 0.05), (0.1, 0.6, 0.3)])
def test_the_stated_share_of_false_sites_holds(human: float, llm: float, share: float) -> None:
    """In simulated webs the lists have, over all draws, at most the stated share of false sites and chance."""
    rng = np.random.default_rng(3)
    false = number = 0
    for _ in range(40 if LONG else 12):
        is_llm = rng.random(200) < share
        lengths = np.minimum(rng.geometric(0.25, 200), 20)
        means, precision = np.where(is_llm, llm, human), np.where(is_llm, 24.0, 11.5)
        flagged = rng.binomial(lengths, rng.beta(means * precision, (1 - means) * precision))
        cells = list(zip(lengths.tolist(), flagged.tolist(), strict=True))
        numbers = Counter(cells)
        fit = estimate_share(numbers, WIDE, KnownSites({}, {}))
        assert fit is not None and all(fit.cautious[cell] <= fit.posterior[cell] + 1e-6 for cell in numbers)
        certain = certain_cells(numbers, fit.cautious, 0.05)
        false += sum(not truth for truth, cell in zip(is_llm, cells, strict=True) if cell in certain)
        number += sum(cell in certain for cell in cells)
    assert false <= 0.05 * number + 3 * np.sqrt(0.05 * number + 1)
    assert number > 0 or human > 0.05 or share < 0.1  # few are certain where kinds overlap and no site is known


def test_sites_that_may_not_be_listed_are_left_out_before_the_list_is_made() -> None:
    """Neither a host that is left out, nor a site whose newest term has no article, whose former verdict counts."""
    rows = cell_rows([*HUMAN, *LLM])
    first, second, *others = (row.site for row in rows[len(HUMAN) :])
    old = {row.site: replace(row, term=1, term_end=2000) for row in rows}[second]
    again = replace(old, verdict="unclassifiable", scored=0, flagged=0, term=2, term_start=2000, term_end=4000)
    again = replace(again, former=replace(old, verdict="llm"))
    rows = [again if row.site == second else row for row in rows]
    assert second in llm_probabilities(rows, RateSettings(), 2100)
    certain = certain_llm_sites(rows, RateSettings(), 2100, 0.05, left_out=first.__eq__).sites
    assert set(certain) == set(others)


def test_the_list_of_farms_keeps_its_word_where_ads_are_of_people() -> None:
    """In webs in which LLM sites have fewer ads than others, at most the stated share of listed farms is false."""
    false, number = false_farms(range(60 if LONG else 4))
    assert number > 0 and false <= 0.05 * number + 2 * np.sqrt(0.05 * number + 1)


def test_nothing_is_listed_where_two_kinds_are_not_told_apart() -> None:
    """Sites of one kind give an empty list with the reason."""
    certain = certain_llm_sites(cell_rows([(10, 5)] * 40), RateSettings(), 0, 0.1)
    assert certain.sites == {} and certain.untold


def test_labels_contradict_a_list_when_chance_does_not_explain_them() -> None:
    """One false site of 100 labelled ones is chance at 1%, of 3 it is none; 7 of 13 contradict any list."""
    assert not contradicts(0, 0, 0.01) and not contradicts(100, 0, 0.01) and not contradicts(100, 1, 0.01)
    assert contradicts(3, 1, 0.01) and contradicts(13, 7, 0.2) and not contradicts(3, 1, 0.05)
