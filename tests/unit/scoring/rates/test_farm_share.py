"""The share of content farms."""

from __future__ import annotations

from dataclasses import replace as replace_query

import numpy as np
import pytest
from msgspec.structs import replace

from scoring.estimate.definitions import FARM, SITES
from scoring.estimate.remarks import RemarkKind
from scoring.estimate.reviewed_share import Review
from scoring.rates.cuts import Cut
from scoring.rates.direct_share import ShareState
from scoring.rates.split_rates import RateLine, RateQuery, rate_lines
from stream.schema.records import Sitemaps, SiteState
from tests.support.remarks import facts, kinds
from tests.support.site_rows import cell_rows
from tests.support.sizes import LONG

ADS, NONE = {"ads:adsense": 3, "cms:wordpress": 4}, {"cms:wordpress": 4}
CLEAR = {"llm": (10, 9), "human": (10, 0)}


def listed(site: str, urls: int) -> Sitemaps:
    return Sitemaps(id=site, site=site, urls=urls, files_read=1, files_listed=1, months={})


def lines_of(rows: list[SiteState], sitemaps: dict[str, int], by: str = "") -> list[RateLine]:
    """The lines of farms, where sites list so many article URLs; of the others no sitemap is known."""
    known = {site: listed(site, urls) for site, urls in sitemaps.items()}
    return rate_lines(rows, RateQuery(definition=FARM, sitemaps=known, by=by))


def line_of(rows: list[SiteState], sitemaps: dict[str, int]) -> RateLine:
    """The line of all sites."""
    (line,) = lines_of(rows, sitemaps)
    return line


def sites(kind: str, number: int, name: str, signals: dict[str, int]) -> list[SiteState]:
    return cell_rows([CLEAR[kind]] * number, f"{name}{{}}.com", pages=10, articles=10, epoch="e", signals=signals)


def web() -> tuple[list[SiteState], dict[str, int]]:
    """100 sites: 20 farms, 10 LLM sites that may be, 10 without ads; of people 30 with both signs, and 30 others."""
    rows = sites("llm", 20, "farm", ADS) + sites("llm", 10, "maybe", ADS) + sites("llm", 10, "poor", NONE)
    rows += sites("human", 30, "magazine", ADS) + sites("human", 30, "diary", NONE)
    return rows, {row.site: 200 for row in rows if not row.site.startswith("maybe")}


def test_a_farm_is_llm_and_in_mass_and_monetised() -> None:
    """The share is that of sites with all three, to that of those that may have; both signs alone make no farm."""
    line = line_of(*web())
    assert line.share == pytest.approx(0.2, abs=0.02)
    (of_100, of_50, of_500) = line.farms
    assert of_100.at_most == pytest.approx(0.3, abs=0.02) and (of_100.yes, of_100.unknown) == (50, 10)
    assert line.low is not None and line.high is not None
    assert line.low < 0.2 and line.high > 0.3
    assert line.look_low is not None and line.look_high is not None
    assert line.look_low < line.low and line.look_high > line.high
    assert (of_50.share, of_50.at_most) == (of_100.share, of_100.at_most)
    assert of_500.share == 0 and of_500.at_most == pytest.approx(0.1, abs=0.02)
    said = facts(line.remarks, RemarkKind.FARM_SIGNS)
    assert (said["unknown_mass"], said["unknown_money"]) == (10, 0)
    assert {RemarkKind.FARMS_NOT_MEASURED, RemarkKind.FARMS_OF} <= set(kinds(line.remarks))


def test_without_a_share_of_llm_sites_there_is_none_of_farms() -> None:
    """The line says so of farms first, and has the reason as that of LLM sites."""
    rows = cell_rows([(10, 5)] * 40, signals=ADS)
    (of_llm,), line = rate_lines(rows), line_of(rows, {"s0.com": 200})
    assert (of_llm.share, line.share) == (None, None)
    assert kinds(line.remarks)[:2] == [RemarkKind.NO_SHARE, RemarkKind.WITHOUT_SIGNS]
    assert facts(line.remarks, RemarkKind.WITHOUT_SIGNS)["headline"] == of_llm.remarks[0].kind


def test_monetisation_is_no_evidence_of_the_writer() -> None:
    """With ads on other sites, the probability of an LLM site is the same, and so is the share of LLM sites."""
    rows, sitemaps = web()
    (before,) = rate_lines(rows, RateQuery(sitemaps={}))
    swapped = [replace(row, signals=NONE) for row in rows]
    (after,) = rate_lines(swapped, RateQuery(sitemaps={}))
    assert before == after
    assert line_of(swapped, sitemaps).share == 0


@pytest.mark.parametrize(
    ("signals", "urls", "reason", "number"),
    [
        (ADS, {}, RemarkKind.NO_SITEMAPS, 0),
        ({}, {"farm0.com": 200}, RemarkKind.NO_SIGNALS, 0),
        ({"ads:adsense": 1, "ads:gam": 1}, {"farm0.com": 200}, RemarkKind.NO_SIGNALS, 60),
    ],
)
def test_no_share_of_farms_where_a_sign_is_unknown_of_all(
    signals: dict[str, int], urls: dict[str, int], reason: RemarkKind, number: int
) -> None:
    """A log without sitemaps, or without any signal or a telling one, has no share of farms, and says of how many."""
    line = line_of(sites("llm", 20, "farm", signals) + sites("human", 40, "diary", signals), urls)
    assert (line.share, line.method) == (None, ShareState.UNKNOWN_SIGNS)
    assert facts(line.remarks, reason) == {"number": number, "sites": 60}


def test_a_group_without_any_signal_is_known_to_be_not_monetised() -> None:
    """Whether signals were measured is known from all sites: a group of sites without one has a share of 0."""
    rows, sitemaps = web()
    rows = [replace(row, sources=["rest"]) for row in rows if row.site in sitemaps]
    rows[:40] = [replace(row, signals={}, sources=["bare"]) for row in rows[:40]]
    of = {line.group: line for line in lines_of(rows, sitemaps, by="source")}
    assert (of["bare"].share, of["bare"].at_most) == (0, 0)
    assert of["rest"].farms
    known = {site: listed(site, 200) for site in sitemaps}
    (cut,) = rate_lines(rows, RateQuery(definition=FARM, sitemaps=known, cut=Cut(source="bare")))
    assert (cut.share, cut.at_most) == (0, 0)


def test_a_review_that_says_nothing_of_farms_gives_no_share_of_them() -> None:
    """Where flags do not tell the kinds apart, and too few sites with both signs have a label, there is no share."""
    rows = cell_rows([(10, 4 + n % 3) for n in range(100)], pages=10, articles=10, epoch="e", signals=NONE)
    rows[:10] = [replace(row, signals=ADS) for row in rows[:10]]
    review = Review({"": {row.site: float(place % 4 == 0) for place, row in enumerate(rows[8:48])}}, 40, 0, 86_400_000)
    query = RateQuery(definition=FARM, sitemaps={row.site: listed(row.site, 200) for row in rows}, review=review)
    (of_llm,), (line,) = rate_lines(rows, replace_query(query, definition=SITES)), rate_lines(rows, query)
    assert of_llm.method == ShareState.REVIEWED and of_llm.share == pytest.approx(0.25, abs=0.01)
    assert (line.share, line.at_most, line.method, line.low, line.high) == (None, None, ShareState.UNTOLD, 0, 1)
    assert (line.scored_sites, line.farms) == (100, [])
    assert facts(line.remarks, RemarkKind.FEW_LABELS)["number"] == 2


def test_no_share_of_farms_without_a_share_of_llm_sites() -> None:
    """Where too few sites have a scored article there is none, and the lower end is 0."""
    rows = sites("llm", 2, "farm", ADS)
    line = line_of(rows, {row.site: 200 for row in rows})
    assert (line.share, line.method, line.low) == (None, ShareState.TOO_FEW, 0)


def test_the_interval_covers_the_share_of_farms() -> None:
    """In simulated webs in which farms are more often monetised than other sites, the interval holds the true share."""
    webs, covered = (200 if LONG else 3), 0
    for seed in range(webs):
        rng = np.random.default_rng(seed)
        is_llm = rng.random(300) < 0.3
        n = np.minimum(rng.geometric(0.25, 300), 20)
        k = rng.binomial(n, np.where(is_llm, rng.beta(19, 5, 300), rng.beta(0.5, 11, 300)))
        has_ads = rng.random(300) < np.where(is_llm, 0.8, 0.3)
        rows = [
            cell_rows(
                [(int(n[i]), int(k[i]))],
                f"s{i}.com",
                pages=20,
                articles=20,
                epoch="e",
                signals=ADS if has_ads[i] else NONE,
            )[0]
            for i in range(300)
        ]
        of_web = {row.site: 300 for row in rows}
        line = line_of(rows, of_web)
        if line.low is not None and line.high is not None:
            covered += line.low <= 0.3 * 0.8 <= line.high
    assert covered >= 0.9 * webs - 1
