"""The pipes' functions and grouped rates: the same answers as the stages, in stable field names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from scoring.detectors.testing import FakeDetector
from scoring.errors import PooledDetectors
from scoring.pipes import FlagLine, SiteVerdictLine, TextLine, estimate_sites, score_texts, tally_scores
from scoring.rates.error_counts import ErrorCounts
from scoring.rates.site_rates import by_query_group, by_rank_band, by_source, rates_by, site_rate
from scoring.sites.gaussian import GaussianParams, GaussianTest
from scoring.sites.sprt import SiteTest, SprtParams
from stream.schema.records import SiteState
from tests.bench.bench_sites import ACCURACY, read_sites


def test_score_lines_have_the_documented_fields() -> None:
    """{id, text} → {id, detector, score, p_llm, flag, abstain, tokens}; flag is null where it abstains."""
    lines = score_texts(FakeDetector("x"), [TextLine(id="1", text="x"), TextLine(id="2", text="")])
    assert msgspec.to_builtins(lines) == [
        {"id": "1", "detector": "fake/1", "score": 1.0, "p_llm": 0.9, "flag": True, "abstain": "", "tokens": 1},
        {"id": "2", "detector": "fake/1", "score": None, "p_llm": None, "flag": None, "abstain": "too_short"}
        | {"tokens": 0},
    ]


def test_tally_gives_a_line_per_site_with_evidence() -> None:
    """Sites come in the order of their first line, abstentions are passed over, the evidence names the numbers."""
    flags = [FlagLine(site=site, flag=flag) for flag in (None, *[True] * 6) for site in ("b", "a")]
    first, second = tally_scores([*flags, FlagLine(site="c", flag=False)], SiteTest(SprtParams()))[1:]
    assert (first.site, first.verdict, first.pages_used, first.pages, first.mixed) == ("a", "llm", 6, 7, False)
    assert "6 of the first 6 of 6" in first.evidence and "6.89" in first.evidence
    assert (second.site, second.verdict) == ("c", "unclassifiable")
    assert "at least 5 are needed" in second.evidence


def test_tally_gives_each_method_what_it_reads() -> None:
    """A flag without a score is for sprt alone, a score without a flag for gaussian; both tell that a site is mixed."""
    scores = [0.85, 0.99, 0.86, 1.0] * 2
    lines = [FlagLine(site="a", flag=score < 0.9, score=score) for score in scores]
    lines += [FlagLine(site="b", flag=True)] * 8 + [FlagLine(site="c", flag=None, score=0.8)] * 8
    by_flags = tally_scores(lines, SiteTest(SprtParams()))
    by_scores = tally_scores(lines, GaussianTest(GaussianParams()))
    assert [line.mixed for line in by_flags] == [line.mixed for line in by_scores] == [True, False, False]
    assert [line.verdict for line in by_flags] == ["undecided", "llm", "unclassifiable"]
    assert [line.verdict for line in by_scores] == ["undecided", "unclassifiable", "llm"]


def test_estimate_counts_every_kind_of_site() -> None:
    """Denominators add up, a site's last line counts, and error counts correct the rate."""
    verdicts = ["llm", "human", "undecided", "unclassifiable", "human"]
    lines = [SiteVerdictLine(site=str(i), verdict=v) for i, v in enumerate(verdicts)]  # type: ignore[arg-type]
    found = estimate_sites([SiteVerdictLine(site="0", verdict="human"), *lines])
    assert (found.llm, found.human, found.undecided, found.unclassifiable) == (1, 2, 1, 1)
    assert (found.classifiable, found.sites, found.judged_share, found.judged_method) == (4, 5, 0.25, "uncorrected")
    corrected = estimate_sites(lines, ErrorCounts(50, 50, 50, 45))
    assert corrected.judged_method == "corrected" and corrected.judged_share is not None
    assert estimate_sites([]).judged_share is None


def test_a_line_without_a_site_is_a_site_of_its_own() -> None:
    """{verdict} alone is enough: such lines are never taken for one site, nor for one that has a name."""
    unnamed = [SiteVerdictLine(verdict="llm") for _ in range(3)]
    found = estimate_sites([*unnamed, SiteVerdictLine(site="", verdict="human"), SiteVerdictLine(verdict="human")])
    assert (found.llm, found.human, found.sites) == (3, 2, 5)


@pytest.mark.parametrize(
    ("what", "one", "other"),
    [
        ("detector", {"detector": "x/1"}, {"detector": "y/1"}),
        ("ruleset", {"ruleset": "r", "digest": "d1"}, {"ruleset": "r", "digest": "d2"}),
        ("site method", {"method": "sprt", "method_digest": "d1"}, {"method": "sprt", "method_digest": "d2"}),
        ("run", {"run": "live"}, {"run": "again"}),
    ],
)
def test_estimate_pools_nothing(what: str, one: dict[str, Any], other: dict[str, Any]) -> None:
    """Lines of two, or of one and of none, are refused with both names: for two sites, and for one, in each order."""
    for first, second in ((one, other), (other, one), (one, {}), ({}, one)):
        for site in ("a", "b"):
            lines = [
                SiteVerdictLine(site="a", verdict="llm", **first),
                SiteVerdictLine(site=site, verdict="human", **second),
            ]
            with pytest.raises(PooledDetectors, match=f"two {what}s") as caught:
                estimate_sites(lines)
            assert all(name in str(caught.value) for name in [*first.values(), *second.values()])
        assert estimate_sites([SiteVerdictLine(site="a", verdict="llm", **first)] * 2).sites == 1


def test_a_site_without_a_page_counts_with_any_ruleset() -> None:
    """A row that no ruleset has judged yet is unclassifiable, and no reason to refuse the others."""
    rows = [
        SiteVerdictLine(site="a", verdict="unclassifiable", ruleset=""),
        SiteVerdictLine(site="b", verdict="llm", ruleset="r"),
    ]
    assert estimate_sites(rows).sites == estimate_sites(rows[::-1]).sites == 2


def row(site: str, verdict: str, sources: list[str], queries: list[str], rank: int) -> SiteState:
    """A site row."""
    return SiteState(id=site, site=site, verdict=verdict, sources=sources, queries=queries, best_rank=rank)


ROWS = [
    row("a", "llm", ["s1", "s2"], ["health/1", "health/2"], 1),
    row("b", "human", ["s1"], ["travel/1"], 5),
    row("c", "unclassifiable", ["s2"], [], 0),
    row("d", "human", ["s2"], ["health/1"], 99),
]


def test_rates_by_source_count_a_site_in_each_of_its_sources() -> None:
    """A site of two sources counts in both; unclassifiable sites stay out of the denominator and are shown."""
    rates = rates_by(ROWS, by_source)
    assert {name: (r.llm, r.classifiable, r.unclassifiable, r.sites) for name, r in rates.items()} == {
        "s1": (1, 2, 0, 2),
        "s2": (1, 2, 1, 3),
    }


def test_rates_by_rank_band_and_query_group() -> None:
    """Bands sort by rank, rank 0 is unknown, and a site counts once in a query group."""
    assert list(rates_by(ROWS, by_rank_band)) == ["1-3", "4-10", "51+", "unknown"]
    groups = rates_by(ROWS, by_query_group(lambda query: query.split("/")[0]))
    assert {name: r.sites for name, r in groups.items()} == {"health": 2, "travel": 1}


def test_no_classifiable_site_gives_no_rate() -> None:
    """Only unclassifiable sites: no rate, and the number of sites still shows."""
    found = site_rate(["unclassifiable"] * 3)
    assert (found.rate.rate, found.sites, found.classifiable) == (None, 3, 0)


@pytest.mark.data
@pytest.mark.slow
def test_the_share_of_real_pages_through_the_pipes_is_in_its_interval(shared: Path) -> None:
    """Flags of Binoculars on real pages of sites drawn at a known share, others as canaries: in 180 of 200 draws."""
    sites = read_sites(shared / "data/scores/page_scores.csv", 0)
    rng, method, covered = np.random.default_rng(13), SiteTest(SprtParams()), 0
    errors = []
    for draw in range(200):
        llm = int(rng.binomial(120, (0.05, 0.15, 0.3, 0.5)[draw % 4]))
        lines = []
        for truth, count in (("human", 120 - llm), ("llm", llm)):
            kind = [site for site in sites if site.llm is (truth == "llm")]
            order = [kind[place] for place in rng.permutation(len(kind))]
            known, rest = order[: len(kind) // 3], order[len(kind) // 3 :]
            drawn = [rest[place] for place in rng.integers(len(rest), size=count)]
            named = [(f"c.{number:016x}.20.1.{truth}.canary.invalid", site, 20) for number, site in enumerate(known)]
            lengths = np.minimum(rng.geometric(0.25, count), 20).tolist()
            named += [(f"{truth}{number}", *of) for number, of in enumerate(zip(drawn, lengths, strict=True))]
            for name, site, most in named:
                scores = rng.choice(site.scores, min(most, len(site.scores)), replace=False)
                lines += [FlagLine(site=name, flag=bool(score < ACCURACY), score=float(score)) for score in scores]
        tallied = [msgspec.convert(msgspec.to_builtins(line), SiteVerdictLine) for line in tally_scores(lines, method)]
        found = estimate_sites(tallied)
        assert found.low is not None and found.high is not None
        covered += found.low <= llm / 120 <= found.high
        if found.share is not None:
            errors.append(found.share - llm / 120)
    assert covered >= 180
    assert abs(np.mean(errors)) < 0.03 and len(errors) > 150
