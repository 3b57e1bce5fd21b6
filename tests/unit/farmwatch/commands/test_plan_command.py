"""`farmwatch crawl plan`: from queries and a wanted half width to sites, requests, time, disk and device hours."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from crawler.settings import CrawlSettings
from farmwatch.crawl.sizing import SiteFigures, sizing_of
from scoring.estimate.intervals import wilson
from scoring.rates.settings import RateSettings
from stream.log.contract import Output, partition_of
from stream.opening import open_log
from stream.schema.records import SiteState, encode
from stream.schema.topics import SITES
from stream.text.user_errors import Exit
from tests.support.front_door import DETECTOR, PARTITIONS, Runner


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    """A file with 200 queries."""
    file = tmp_path / "queries.txt"
    file.write_text("".join(f"how to do thing {number}\n" for number in range(200)))
    return file


def test_the_sites_suffice_for_the_wanted_half_width() -> None:
    """The widest interval, of a share of one half, is narrow enough with these sites and not with fewer."""
    sized = sizing_of(1, 0.05, SiteFigures(), CrawlSettings(), RateSettings())
    n = sized.classifiable_sites or 0
    enough, few = (wilson(sites / 2, sites, 1.96).half_width for sites in (n, n - 10))
    assert enough <= 0.05 < few
    assert sized.sites == -(-n * 100 // 31)


def test_the_time_follows_the_politeness() -> None:
    """Many sites: by the requests at once; few sites: by the delay between the requests to one host."""
    crawl = CrawlSettings(max_in_flight=10, delay_s=100.0)
    many = sizing_of(1, 0.02, SiteFigures(), crawl, RateSettings())
    assert many.days == pytest.approx((many.requests or 0) / 10 / 86_400)
    few = sizing_of(1, 0.4, SiteFigures(), crawl, RateSettings())
    assert few.days == pytest.approx(100 * (6.7 + 3) / 86_400)


def test_a_plan_without_a_log_has_assumptions(farmwatch: Runner, queries: Path) -> None:
    """The queries suffice. A pair without a speed is unknown."""
    ran = farmwatch("crawl", "plan", queries, "--half-width", "0.05")
    assert ran.code == Exit.OK
    assert "queries    130; the file has 200\n" in ran.out
    pair = ("--set", 'score.detectors=["binoculars"]')
    assert "unknown for 8,670 texts" in farmwatch("crawl", "plan", queries, "--half-width", "0.05", *pair).out
    timed = farmwatch("crawl", "plan", queries, "--half-width", "0.05", *pair, "--texts-per-s", "10", "--json")
    assert timed.json["device_hours"] == pytest.approx(8670 / 36_000)


def test_too_few_queries_are_a_problem(farmwatch: Runner, queries: Path) -> None:
    """Exit code 1, and the number that would do."""
    ran = farmwatch("crawl", "plan", queries, "--half-width", "0.03")
    assert ran.code == Exit.PROBLEM and "queries    354; the file has 200: too few\n" in ran.out


def test_the_log_replaces_the_assumptions(farmwatch: Runner, finished: str, queries: Path) -> None:
    """From 100 visited sites on: their share with a verdict, their pages and texts, and the sites of a query."""
    outputs = []
    for number in range(120):
        site = f"s{number}.example"
        verdict = "llm" if number % 4 == 0 else "human" if number % 4 == 1 else "unclassifiable"
        row = SiteState(
            id=site, site=site, verdict=verdict, detector=DETECTOR, digest="d", ruleset="r", pages=9, articles=8,
            scored=8, flagged=8 * (number % 4 == 0), queries=[f"q{number % 30}"], hits=1,
        )  # fmt: skip
        outputs.append(Output(SITES, partition_of(site, PARTITIONS), site.encode(), encode(row)))
    with closing(open_log(finished)) as log:
        log.append(outputs)
    found = farmwatch("crawl", "plan", queries, "--half-width", "0.05", "--log", finished, "--json").json
    figures = found["figures"]
    assert (figures["classifiable"], figures["sites"]) == (0.5, 122)
    assert figures["pages"] == pytest.approx(9, abs=0.2) and figures["sites_a_query"] == pytest.approx(122 / 30)
    assert found["classifiable_sites"] > 60


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--half-width", "0.7"), "--half-width 0.7: give a number above 0 and below 0.5"),
        (("--half-width", "nan"), "--half-width nan: give a number above 0"),
        (("--texts-per-s", "0"), "--texts-per-s 0: give a number above 0"),
    ],
)
def test_bad_numbers_are_refused(farmwatch: Runner, queries: Path, arguments: tuple[str, ...], said: str) -> None:
    """With exit code 2 and the range."""
    ran = farmwatch("crawl", "plan", queries, *arguments)
    assert (ran.code, ran.out) == (Exit.USAGE, "") and said in ran.err
