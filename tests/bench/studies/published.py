"""The series by day of publication on simulated webs: bias and coverage, the table of docs/explanation/dates.md.

Run by `python -m tests.bench.studies.published [webs a row, default 200]`. A web has human sites, sites that turn on a
day of 2023 or 2024, and LLM sites that begin then; a domain has one to three sites. Each site has 1 to 6 dated articles
a year. Those of before ChatGPT are control pages at half of the sites. Of a human writer's pages a Beta of mean .045 is
flagged, of a model's one of mean .8; the sites of a domain have the same writer. The truth is the share of the year's
articles by a model in a web of 5,000 domains. Beside the interval that of a plain bootstrap over domains, with p0
resampled and Se known.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from scoring.rates.published import YEAR, published_periods
from scoring.rates.split_rates import RateQuery
from stream.schema.records import SiteState
from tests.bench.timing import argument

YEARS = range(2018, 2026)
TURNS = (2023, 2024)
HUMAN, LLM, AGREE = 0.045, 0.8, 10.0  # means of the flagged shares, and a + b of their Betas


class Year(NamedTuple):
    """Articles of a site in a year: by anyone, by a model, and flagged."""

    articles: int
    llm: int
    flagged: int


class Web(NamedTuple):
    rows: list[SiteState]
    truth: dict[str, float]  # year -> share of its articles by a model
    sums: dict[str, list[list[int]]]  # year -> control flags and pages, flags and pages of each domain


def web(domains: int, changed: float, rng: np.random.Generator) -> Web:
    """A web in which this part of the domains turns, or begins with a model, in one of TURNS."""
    rows: list[SiteState] = []
    of_domains: list[list[dict[int, Year]]] = []
    for number in range(domains):
        turn = int(rng.choice(TURNS)) if rng.random() < changed else 9999
        first = turn if turn < 9999 and rng.random() < 0.5 else int(rng.integers(2016, 2024))
        human, llm = (rng.beta(mean * AGREE, (1 - mean) * AGREE) for mean in (HUMAN, LLM))
        of_domains.append([])
        for place in range(int(rng.integers(1, 4))):
            years = {}
            for year in (year for year in YEARS if year >= first):
                n = int(rng.integers(1, 7))
                years[year] = Year(n, n * (year >= turn), int(rng.binomial(n, llm if year >= turn else human)))
            if years:
                of_domains[-1].append(years)
                rows.append(_row(f"s{place}.d{number}.example", years, is_control=number % 2 == 0))
    truth, sums = {}, {}
    for year in YEARS:
        found = [[site.get(year, Year(0, 0, 0)) for site in sites] for sites in of_domains]
        total = sum(of.articles for sites in found for of in sites)
        truth[str(year)] = sum(of.llm for sites in found for of in sites) / total if total else 0.0
        sums[str(year)] = [
            [*_controls(sites, number), sum(of.flagged for of in years), sum(of.articles for of in years)]
            for number, (sites, years) in enumerate(zip(of_domains, found, strict=True))
        ]
    return Web(rows, truth, sums)


def _controls(sites: list[dict[int, Year]], number: int) -> tuple[int, int]:
    old = [of for years in sites for year, of in years.items() if year <= 2021 and number % 2 == 0]
    return sum(of.flagged for of in old), sum(of.articles for of in old)


def _row(site: str, years: dict[int, Year], *, is_control: bool) -> SiteState:
    old = [of for year, of in years.items() if year <= 2021] if is_control else []
    return SiteState(
        id=site,
        site=site,
        digest="d",
        ruleset="default",
        detector="x/1",
        scored=sum(of.articles for of in years.values()),
        flagged=sum(of.flagged for of in years.values()),
        control_scored=sum(of.articles for of in old),
        control_flagged=sum(of.flagged for of in old),
        quarters={f"{year}-Q1": [of.articles, of.flagged] for year, of in years.items()},
    )


class Error(NamedTuple):
    """The error of one year's share, and whether each interval holds the truth."""

    error: float  # NaN: no share is published
    is_within: bool
    width: float
    is_within_plain: bool


def errors(domains: int, changed: float, webs: int, seed: int = 1) -> Iterator[tuple[str, Error]]:
    """Year and error, of some webs."""
    rng = np.random.default_rng(seed)
    expected = web(5000, changed, rng).truth
    for _ in range(webs):
        made = web(domains, changed, rng)
        for period in published_periods(made.rows, RateQuery(by=YEAR)):
            truth = expected[period.name]
            if period.low is None or period.high is None:
                yield period.name, Error(math.nan, False, 1.0, False)
                continue
            error = math.nan if period.share is None else period.share - truth
            within = period.low - 1e-9 <= truth <= period.high + 1e-9
            yield (period.name, Error(error, within, period.high - period.low, _plain(made, period.name, truth, rng)))


def _plain(made: Web, year: str, truth: float, rng: np.random.Generator) -> bool:
    sums = np.array(made.sums[year], float)
    drawn = rng.multinomial(len(sums), np.full(len(sums), 1 / len(sums)), 500) @ sums
    a, b = drawn[:, 0] / np.maximum(drawn[:, 1], 1), drawn[:, 2] / np.maximum(drawn[:, 3], 1)
    low, high = np.quantile(np.clip((b - a) / (LLM - a), 0, 1), [0.025, 0.975])
    return bool(low - 1e-9 <= truth <= high + 1e-9)


def main() -> None:
    """Print the table."""
    webs = argument(1, 200)
    print("domains  changed  year   bias    coverage  width   plain bootstrap")
    for domains in (30, 100, 400):
        for changed in (0.1, 0.4):
            found: dict[str, list[Error]] = {}
            for year, error in errors(domains, changed, webs):
                found.setdefault(year, []).append(error)
            for year in ("2019", "2021", "2023", "2025"):
                of = np.nanmean(np.array(found[year], float), axis=0)
                print(f"{domains:7}  {changed:7}  {year}  {of[0]:+.3f}   {of[1]:.3f}     {of[2]:.3f}   {of[3]:.3f}")


if __name__ == "__main__":
    main()
