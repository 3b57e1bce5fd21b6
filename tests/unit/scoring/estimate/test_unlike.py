"""Doubts about a share: sites that are flagged unlike the known ones, and sites between the two kinds."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from scoring.estimate.doubts import doubts, find_unlike
from scoring.estimate.fit import CellCounts, KnownSites
from scoring.estimate.remarks import Remark, RemarkKind
from tests.support.sizes import LONG
from tests.unit.scoring.estimate.test_mixture import HUMAN, NOTHING, canaries, cells, drawn, fitted, web

pytestmark = pytest.mark.slow

DRAWS = 30 if LONG else 4


def unlike(counts: CellCounts, known: KnownSites) -> Remark | None:
    """The finding for the fit of these sites."""
    return find_unlike(counts, fitted(counts, known))


def test_sites_unlike_the_known_ones_are_named() -> None:
    """Sites that are flagged less often than known LLM sites are reported; sites like the known ones are not."""
    rng = np.random.default_rng(15)
    known = canaries(rng)
    found = unlike(web(rng, 2000, 0.3, HUMAN, (15.0, 9.0))[0], known)
    assert found is not None
    wanted = {"here": pytest.approx(0.62, abs=0.05), "known": pytest.approx(0.79, abs=0.05)}
    assert found.facts == {"kind": "LLM", **wanted}
    quiet = [(web(rng, 300, 0.2)[0], canaries(rng)) for _ in range(DRAWS)]
    assert [unlike(*one) for one in quiet] == [None] * DRAWS


def test_a_kind_that_scatters_more_is_unlike() -> None:
    """Human sites with the flagged mean of the known ones, but of which a few are flagged often, are reported."""
    rng = np.random.default_rng(2)
    found = unlike(web(rng, 2000, 0.3, (0.15, 3.0))[0], canaries(rng, 200))
    assert found is not None and found.facts["kind"] == "human"


def test_both_kinds_flagged_unlike_the_known_ones_are_reported() -> None:
    """If human pages are flagged twice as often and LLM pages less often, webs of 300 sites are reported."""
    rng = np.random.default_rng(17)
    shifted = [(web(rng, 300, 0.3, (1.2, 10.8), (14.4, 9.6))[0], canaries(rng, 100)) for _ in range(DRAWS)]
    assert None not in [unlike(*one) for one in shifted]


def test_few_known_sites_say_nothing() -> None:
    """Without known sites, or with fewer than five, nothing is reported."""
    rng = np.random.default_rng(18)
    counts = web(rng, 2000, 0.3, HUMAN, (15.0, 9.0))[0]
    assert unlike(counts, NOTHING) is None
    few = cells(np.full(4, 9), np.full(4, 9))
    assert unlike(counts, KnownSites({}, few)) is None


def test_mixed_sites_are_counted() -> None:
    """A tenth of 2,000 sites with half of their articles flagged is a doubt, with their part of the longer sites."""
    rng = np.random.default_rng(19)
    lengths = np.minimum(rng.geometric(0.25, 200), 20)
    mixed, others = cells(lengths, rng.binomial(lengths, 0.5)), Counter(web(rng, 1800, 0.2, HUMAN, (45.0, 5.0))[0])
    for counts, is_said in ((others, False), (others + mixed, True)):
        said = [doubt for doubt in doubts(counts, fitted(counts)) if doubt.kind == RemarkKind.MIXED_SITES]
        assert bool(said) is is_said
    between = sum(sites for (n, k), sites in counts.items() if n >= 5 and 0.25 <= k / n <= 0.65)
    longer = sum(sites for (n, _), sites in counts.items() if n >= 5)
    assert said[0].facts["share"] == pytest.approx(between / longer)


def test_mixed_sites_are_not_looked_for_among_few_longer_ones() -> None:
    """Fewer than 100 sites of five articles tell nothing of mixed ones."""
    rng = np.random.default_rng(20)
    lengths = np.full(90, 6)
    counts = cells(lengths, rng.binomial(lengths, 0.5)) + cells(np.full(900, 1), drawn(rng, np.full(900, 1), HUMAN))
    assert not [doubt for doubt in doubts(counts, fitted(counts)) if doubt.kind == RemarkKind.MIXED_SITES]
