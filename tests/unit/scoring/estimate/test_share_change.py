"""The change of the direct share between two runs over the same sites, and its interval by simulation."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from scoring.estimate.fit import WIDE, Cell, Fit, KnownSites
from scoring.estimate.mixture import estimate_share
from scoring.estimate.share_change import NO_CELL, share_change
from tests.support.sizes import LONG

pytestmark = pytest.mark.slow

Pairs = Counter[tuple[Cell, Cell]]
SAMPLES = 32 if LONG else 6


def fit_of(pairs: Pairs, run: int, human: Pairs, llm: Pairs) -> Fit:
    """The direct estimate of one run."""
    cells, *known = (
        Counter(cell for pair, sites in found.items() for cell in [pair[run]] * sites if cell[0])
        for found in (pairs, human, llm)
    )
    fit = estimate_share(cells, WIDE, KnownSites(*known))
    assert fit is not None
    return fit


def drawn(rng: np.random.Generator, sites: int, share: float, kept: tuple[float, float]) -> tuple[Pairs, float]:
    """Sites under two rulesets and the true difference; the second keeps these shares of the articles of each kind.

    The same articles have the same scores under both.
    """
    pairs: Pairs = Counter()
    found = np.zeros((2, 2))  # run; LLM sites, sites
    for is_llm in (rng.random(sites) < share).tolist():
        n = min(int(rng.geometric(0.25)), 20)
        k = rng.binomial(n, rng.beta(8, 2) if is_llm else rng.beta(0.4, 12))
        of_b = rng.binomial(n - k, kept[is_llm]), rng.binomial(k, kept[is_llm])
        pairs[(n, k), (sum(of_b), of_b[1])] += 1
        found += [[is_llm, 1], [is_llm * (sum(of_b) > 0), sum(of_b) > 0]]
    return pairs, found[1, 0] / found[1, 1] - found[0, 0] / found[0, 1]


def test_the_interval_covers_the_true_change() -> None:
    """In 6 of 6 samples of 150 sites, the interval covers the true change, with a change and without.

    At 95%, it does so with a probability of .74; at 60%, of .05.
    """
    rng = np.random.default_rng(7)
    covered = 0
    for number in range(SAMPLES):
        kept = ((0.9, 0.9), (0.8, 0.3))[number % 2]  # evenly thinned; LLM sites thinned
        pairs, change = drawn(rng, 150, 0.25, kept)
        human, llm = drawn(rng, 40, 0.0, kept)[0], drawn(rng, 40, 1.0, kept)[0]
        found = share_change(fit_of(pairs, 0, human, llm), fit_of(pairs, 1, human, llm), pairs, human, llm)
        covered += found.low <= change <= found.high
    assert covered / SAMPLES > 7 / 8


def test_what_runs_have_in_common_cancels() -> None:
    """If two runs differ in a few sites, the interval is far narrower than that of either share, but not a point."""
    rng = np.random.default_rng(3)
    pairs, _ = drawn(rng, 400, 0.2, (1.0, 1.0))
    of_run = fit_of(pairs, 0, Counter(), Counter())
    pairs[(6, 0), (6, 5)] += 3
    a, b = (fit_of(pairs, run, Counter(), Counter()) for run in (0, 1))
    found = share_change(a, b, pairs, Counter(), Counter())
    assert 0 < found.high - found.low < 0.5 * (of_run.high - of_run.low)
    assert found.low < b.share - a.share < found.high


def test_influence_is_the_effect_of_a_little_more_of_a_cell() -> None:
    """The influence of a cell is the change of the share when sites of the cell are added, also for known sites."""
    rng = np.random.default_rng(5)
    drawn_sites = (drawn(rng, number, share, (1.0, 1.0))[0] for number, share in ((300, 0.3), (40, 0.0), (40, 1.0)))
    cells = [{pair[0]: float(sites) for pair, sites in found.items()} for found in drawn_sites]
    fit = estimate_share(cells[0], WIDE, KnownSites(*cells[1:]))
    assert fit is not None
    for at, influence in enumerate((fit.influence, *fit.known_influence)):
        for cell in list(cells[at])[:1]:
            more = [dict(one) for one in cells]
            more[at][cell] += 0.1
            moved = estimate_share(more[0], WIDE, KnownSites(*more[1:]))
            assert moved is not None
            assert (moved.share - fit.share) / 0.1 == pytest.approx(influence[cell], rel=0.05, abs=1e-6)


def test_a_site_of_one_run_only_counts_in_that_run() -> None:
    """A site without a scored article in one run counts only in the other run's share."""
    rng = np.random.default_rng(9)
    pairs, _ = drawn(rng, 300, 0.2, (1.0, 1.0))
    alone = Counter(
        {(cell_a, NO_CELL) if rng.random() < 0.5 else (cell_a, cell_a): n for (cell_a, _), n in pairs.items()}
    )
    a, b = (fit_of(alone, run, Counter(), Counter()) for run in (0, 1))
    found = share_change(a, b, alone, Counter(), Counter())
    assert found.low <= b.share - a.share <= found.high
