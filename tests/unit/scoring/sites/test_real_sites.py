"""The claims of docs/explanation/sites.md, on real page scores: the bench's tables with fewer sites."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from lab.sites.training import LabelledSite, learn
from scoring.sites.sprt import SiteTest, SprtParams
from scoring.thresholds.threshold_set import read_thresholds
from stream.schema.vocabulary import SiteClass
from tests.bench.studies.instruments import (
    COLUMNS,
    FALCON_HUMAN,
    FALCON_LLM,
    Column,
    choose,
    judged,
    read_column,
    score_of_probability,
    threshold_set,
    without_each,
)
from tests.bench.studies.turns import SCENES, Draw, find
from tests.support.paths import DOCS
from tests.support.real_sites import ACCURACY, ARTICLE_WORDS, DETECTOR, Site, pages_of, read_sites, resampled, run_sites

pytestmark = pytest.mark.data
SITES = 3000


@pytest.fixture(scope="module")
def sites(shared: Path) -> list[Site]:
    """69 real sites with the Binoculars scores of their articles."""
    return read_sites(shared / "data/scores/page_scores.csv", ARTICLE_WORDS)


def test_no_real_site_is_judged_wrongly_in_file_order(sites: list[Site]) -> None:
    """Of 69 real sites with their first 20 articles, none is wrong and few are undecided, from a third of the pages."""
    found = [(site, SiteTest(SprtParams()).decide(pages_of(site.scores[:20]))) for site in sites]
    wrong = [
        site.name for site, verdict in found if verdict.verdict == (SiteClass.HUMAN if site.llm else SiteClass.LLM)
    ]
    assert wrong == []
    assert sum(verdict.verdict == (SiteClass.LLM if site.llm else SiteClass.HUMAN) for site, verdict in found) >= 65
    assert sum(verdict.before_pages or verdict.pages_used for _, verdict in found) / len(found) <= 8.0


def test_error_rates_are_within_alpha_and_beta(sites: list[Site]) -> None:
    """For pages resampled inside real sites, 20 per site, alpha and beta hold, with and without later corrections.

    At most 3 of 3,000 human sites are called llm; 20,000 runs of each site are tested below.
    """
    for close in (0, None):
        test = SiteTest(SprtParams(), close)
        human = run_sites(test, resampled(sites, False, 20, ACCURACY, True), SITES)
        llm = run_sites(test, resampled(sites, True, 20, ACCURACY, True), SITES)
        assert human.verdicts[SiteClass.LLM] <= 0.001 * SITES
        assert llm.share(SiteClass.HUMAN) <= 0.02


def test_trained_numbers_hold_for_sites_left_out(sites: list[Site]) -> None:
    """At 15 pages, each of 67 sites is judged correctly by numbers trained without it, in nearly all draws."""
    pytest.importorskip("sklearn")
    trained = learn([LabelledSite(*site) for site in sites], DETECTOR)
    assert (trained.deciles.human_sites, trained.deciles.llm_sites) == (45, 22)
    assert trained.wrong == []
    assert 0 < trained.human_draws_wrong < 0.002
    assert trained.llm_draws_wrong == 0


@pytest.mark.parametrize(("column", "fpr"), [(COLUMNS[1], 0.1), (COLUMNS[2], 0.02)], ids=["fast-detectgpt", "desklib"])
def test_other_detectors_judge_sites_left_out(shared: Path, column: Column, fpr: float) -> None:
    """Numbers chosen without a site judge it rightly in nearly all orders; those of all sites are in the docs."""
    scores = read_column(shared / "data/scores/page_scores.csv", column)
    chosen = [choose(part, (fpr,), 1) for part in without_each(scores)]
    human, llm = judged(scores, [each for each in chosen if each is not None], 10)
    assert (human.verdicts.total(), llm.verdicts.total()) == (470, 220)
    assert human.share(SiteClass.HUMAN) >= 0.99
    assert llm.share(SiteClass.LLM) >= 0.97
    assert threshold_set(scores, column, fpr) == read_thresholds(DOCS / "thresholds" / column.file)


def test_the_probability_of_fast_detectgpts_authors_is_turned_back() -> None:
    """Densities of both normal laws at a score give a probability that is read as that score, above the minimum."""
    score = np.array([-1.0, 0.0, 1.8, 5.0])
    human, llm = (np.exp(-(((score - mean) / spread) ** 2) / 2) / spread for mean, spread in (FALCON_HUMAN, FALCON_LLM))
    assert score_of_probability(llm / (human + llm)) == pytest.approx(score, abs=1e-6)


def test_the_test_of_a_turn_finds_turned_sites_and_hardly_others(shared: Path) -> None:
    """For pages of real sites, 8 before ChatGPT and 8 since: at most 2% of sites that did not turn are found.

    The scores alone differ more often where the writer changed; one wrong date on each side hides every other turn.
    """
    draw = Draw.of(read_sites(shared / "data/scores/page_scores.csv", 0))
    found = {scene: find(scene, 8, draw, 400) for scene in SCENES}
    assert found["turned"].turned > 0.8
    assert 0.15 < found["turned to 60% LLM"].turned < 0.4
    assert 0.3 < found["turned, one date wrong on each side"].turned < 0.7
    unturned = ("human throughout", "LLM throughout", "another human writer", "half LLM throughout")
    assert all(found[scene].turned <= 0.02 for scene in unturned)
    assert found["another human writer"].differ > 0.03
