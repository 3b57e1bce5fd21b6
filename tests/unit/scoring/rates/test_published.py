"""The share of articles by their day of publication."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from scoring.rates.cuts import Cut
from scoring.rates.direct_share import WIDEST
from scoring.rates.published import CONTROLS, FEWEST_CONTROLS, MIXTURE, QUARTER, YEAR, PublishedLine, published_lines
from scoring.rates.split_rates import RateQuery
from stream.schema.records import SiteState
from tests.bench.studies.published import errors


def site(name: str, controls: tuple[int, int] = (0, 0), **quarters: tuple[int, int]) -> SiteState:
    """A site with scored and flagged texts by quarter, such as Q2021_1=(5, 0)."""
    counts = {f"{name[1:5]}-Q{name[6]}": list(of) for name, of in quarters.items()}
    scored, flagged = (sum(of[place] for of in counts.values()) for place in (0, 1))
    versions: dict[str, Any] = {"ruleset": "default", "digest": "d1", "detector": "x/1"}
    return SiteState(
        id=name,
        site=name,
        scored=scored,
        flagged=flagged,
        control_scored=controls[0],
        control_flagged=controls[1],
        quarters=counts,
        **versions,
    )


def people(number: int = 30) -> list[SiteState]:
    """Human sites with two control pages each, of which a tenth is flagged."""
    return [site(f"h{n}.example", (2, n % 5 == 0), Q2021_1=(2, n % 5 == 0), Q2024_1=(2, 0)) for n in range(number)]


def models(number: int = 10) -> list[SiteState]:
    """LLM sites of 2024, of whose articles eight tenths are flagged."""
    return [site(f"m{n}.example", Q2024_2=(5, 4)) for n in range(number)]


def lines(rows: list[SiteState], by: str = QUARTER, least: int = 1, **more: Any) -> dict[str, PublishedLine]:
    return {line.group: line for line in published_lines(rows, RateQuery(by=by, **more), least)}


def test_the_flagged_part_is_corrected_by_the_controls_and_the_mixture() -> None:
    """(flagged - p0) / (Se - p0), in each quarter and year; the articles of people are none of a model."""
    found = lines([*people(), *models()])
    assert list(found) == ["2021-Q1", "2024-Q1", "2024-Q2"]
    old, new = found["2021-Q1"], found["2024-Q2"]
    assert (old.p0, old.p0_by, old.share, old.low) == (0.1, CONTROLS, 0.0, 0.0)
    assert old.high is not None and 0 < old.high < 0.2
    assert new.se == pytest.approx(0.8, abs=0.05)
    assert new.share == pytest.approx((0.8 - 0.1) / (new.se - 0.1), abs=1e-3) or new.share == 1.0
    assert (new.articles, new.flagged, new.sites, new.domains) == (50, 40, 10, 10)
    year = lines([*people(), *models()], YEAR)["2024"]
    assert year.share == pytest.approx((40 / 110 - 0.1) / (year.se - 0.1), abs=1e-5)
    assert year.low is not None and year.high is not None and year.low < 50 / 110 < year.high


def test_the_share_of_the_periods_sites_is_by_its_articles_alone() -> None:
    """Of 2021 no site is an LLM site, of the second quarter of 2024 all are, though all are in one log."""
    found = lines([*people(), *models()])
    old, new = found["2021-Q1"], found["2024-Q2"]
    assert old.site_share is not None and old.site_share < 0.1
    assert new.site_share is not None and new.site_share > 0.8


def test_with_too_few_control_sites_the_mixture_says_how_often_people_are_flagged() -> None:
    """One fewer than needed."""
    for number, by in ((FEWEST_CONTROLS, CONTROLS), (FEWEST_CONTROLS - 1, MIXTURE)):
        assert {line.p0_by for line in lines([*people(number), *models()]).values()} == {by}


def test_sites_of_one_domain_are_one_draw() -> None:
    """The interval of as many articles is wider if they are of few domains."""
    apart = models(12)
    rows = [site(f"m{n}.d{n % 3}.example.org", Q2024_2=(5, 4 if n % 3 else 1)) for n in range(12)]
    loose = [site(f"m{n}.d{n}.org", Q2024_2=(5, 4 if n % 3 else 1)) for n in range(12)]
    together, single = (lines([*people(), *apart, *some])["2024-Q2"] for some in (rows, loose))
    assert (together.domains, single.domains) == (13, 24)
    assert together.low is not None and together.high is not None and single.low is not None and single.high is not None
    assert together.high - together.low > single.high - single.low


def test_sites_with_fewer_articles_of_the_period_are_left_out() -> None:
    """As many as asked for, in the period: a site counts in one and not in another."""
    rows = [*people(), *models(), site("few.example", Q2021_1=(1, 1), Q2024_2=(3, 3))]
    found = lines(rows, least=3)
    assert list(found) == ["2024-Q2"]
    assert (found["2024-Q2"].sites, found["2024-Q2"].articles) == (11, 53)


def test_versions_and_cuts_are_as_in_other_rates() -> None:
    """Detectors are not pooled, a cut leaves sites out, canaries do not count, and a log without dates has no line."""
    other = SiteState(id="o", site="o.example", detector="y/1", digest="d1", ruleset="default", scored=1)
    other = SiteState(
        **{name: getattr(other, name) for name in other.__struct_fields__} | {"quarters": {"2020-Q1": [1, 0]}}
    )
    found = list(published_lines([*people(), other], RateQuery(by=QUARTER)))
    assert [(line.detector, line.group) for line in found if line.group == "2020-Q1"] == [("y/1", "2020-Q1")]
    assert not lines(people(), cut=Cut(source="none"))
    assert not lines([site("plain.example")])


def test_a_detector_that_does_not_tell_gives_no_share() -> None:
    """Where no kind of sites is flagged more often than people may be."""
    rows = [site(f"h{n}.example", (5, 4), Q2024_1=(5, 4)) for n in range(40)]
    assert [line.share for line in lines(rows).values()] == [None]


def test_an_interval_that_is_too_wide_gives_no_share() -> None:
    """As of one site with one article, of which the interval says all that is known."""
    line = lines([*people(), *models(), site("one.example", Q2023_1=(1, 1))])["2023-Q1"]
    assert line.share is None
    assert line.low is not None and line.high is not None and line.high - line.low > WIDEST


def test_the_intervals_hold_the_true_shares_of_simulated_webs() -> None:
    """Of 100 domains, in 8 webs of which a tenth and two fifths changed: before and since ChatGPT."""
    for changed, (years, held) in product((0.1, 0.4), ((("2019", "2021"), 13), (("2023", "2025"), 13))):
        found = [error for year, error in errors(100, changed, 8) if year in years]
        assert len(found) == 16
        assert sum(error.is_within for error in found) >= held
        assert sum(error.width for error in found) / 16 < 0.35
