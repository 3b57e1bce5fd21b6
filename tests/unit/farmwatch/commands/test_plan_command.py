"""`farmwatch crawl plan`: the cost of further sites, and the interval of the printed share with them."""

from __future__ import annotations

import json
import math
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from crawler.settings import CrawlSettings
from farmwatch.crawl.plan import LEAST_SITES, SiteFigures, plan_of
from scoring.estimate.reviewed_share import Review
from scoring.rates.split_rates import RateLine, RateQuery, rate_lines
from stream.log.contract import Output, partition_of
from stream.opening import open_log
from stream.processing.heartbeat import HEADER, travelling
from stream.schema.records import Page, SiteState, encode
from stream.schema.topics import PAGES, SITES
from stream.text.user_errors import Exit
from tests.support.front_door import DETECTOR, PARTITIONS, Runner

MEASURED = SiteFigures(sites=1, requests=10.0, scored=0.8, pace=2.0)


def rows(number: int, rng: np.random.Generator) -> list[SiteState]:
    """Sites with up to 15 articles, 30% of them LLM sites, by their names."""
    made = []
    for n in range(number):
        scored, is_llm = int(rng.integers(3, 16)), rng.random() < 0.3
        flagged = int(rng.binomial(scored, rng.beta(9, 1.5) if is_llm else rng.beta(0.5, 12)))
        name = f"s{n}.{'llm' if is_llm else 'human'}{n}.net"
        made.append(
            SiteState(
                id=name,
                site=name,
                verdict="undecided",
                detector=DETECTOR,
                digest="d",
                ruleset="r",
                pages=scored,
                articles=scored,
                scored=scored,
                flagged=flagged,
                queries=[f"q{n}"],
                hits=1,
            )
        )
    return made


def line_of(sites: list[SiteState], labelled: int = 0) -> RateLine:
    """The line that `farmwatch rate` prints of these rows, of which the first are labelled."""
    labels = {"zoe": {row.site: float(".llm" in row.site) for row in sites[:labelled]}}
    (line,) = rate_lines(sites, RateQuery(review=Review(labels, labelled, 0, 10**15, 0) if labelled else None))
    return line


def half(line: RateLine) -> float:
    """The half width of its interval."""
    return ((line.high or 0) - (line.low or 0)) / 2


@pytest.mark.parametrize(("labelled", "cautious"), [(0, 0.0), (1 / 2, 0.06), (1 / 4, 0.33)])
def test_the_planned_half_width_is_that_of_the_estimator(labelled: float, cautious: float) -> None:
    """A plan by the first 200 sites agrees with the interval of all 800: on average, up to three standard errors.

    A single plan may be off by a fifth, because the interval that it begins with is. By few labels it is cautious: by
    a third with 50 of them, a twentieth with 100. Of the further sites as many must be labelled as of the first ones.
    """
    rng, ratios = np.random.default_rng(7), []
    for _ in range(24):
        every = rows(800, rng)
        now = line_of(every[:200], round(200 * labelled))
        planned = plan_of(now, MEASURED, CrawlSettings(), 0.95, 750, 0.0)
        then = line_of(every, planned.labelled or 0)
        assert planned.half_width_now == pytest.approx(half(now)) and then.labelled == 800 * labelled
        ratios.append(math.log(planned.half_width / half(then)))
    error = 3 * np.std(ratios) / math.sqrt(len(ratios))
    assert -error < np.mean(ratios) < cautious + error and np.std(ratios) < 0.3


def test_the_sites_of_a_half_width_bring_it() -> None:
    """Both ways of asking agree; sites without a scored article are counted in; a reached width takes no site."""
    line = line_of(rows(200, np.random.default_rng(1)))
    wanted = plan_of(line, MEASURED, CrawlSettings(), 0.95, 0, half(line) / 2)
    assert wanted.sites == 200 * 3 / 0.8
    assert plan_of(line, MEASURED, CrawlSettings(), 0.95, wanted.sites, 0.0).half_width == pytest.approx(half(line) / 2)
    reached = plan_of(line, MEASURED, CrawlSettings(), 0.95, 0, 0.45)
    assert (reached.sites, reached.requests, reached.pace_s) == (0, 0, None)


def test_the_time_follows_the_politeness_and_the_pace() -> None:
    """Few sites: the delay between the requests to one host; many: the pace so far."""
    line, crawl = line_of(rows(40, np.random.default_rng(1))), CrawlSettings(delay_s=100.0)
    few, many = (plan_of(line, MEASURED, crawl, 0.95, sites, 0.0) for sites in (1, 100_000))
    assert few.pace_s == 1000.0
    assert (many.requests, many.pace_s) == (1_000_000, 500_000.0)


def test_without_a_log_the_best_case_and_averages_are_named(farmwatch: Runner, tmp_path: Path) -> None:
    """10,000 sites are at best ±1.0%, 3 tell nothing; averages say where they were measured; no time is invented."""
    assert "of the share no half width below 50%" in farmwatch("crawl", "plan", "--sites", "3").out
    ran = farmwatch("crawl", "plan", "--sites", "10000")
    assert ran.code == Exit.OK and "half width of 1.0% at best" in ran.out
    assert "measured elsewhere: averages of docs/explanation/sites.md" in ran.out and "time      unknown" in ran.out
    found = farmwatch("crawl", "plan", "--half-width", "1%", "--json").json
    assert (found["sites"], found["half_width_now"], found["pace_s"]) == (9604, None, None)


def put(url: str, number: int, pages: int = 9) -> None:
    """Sites with their rows, each with so many pages, two seconds apart, and one URL that was not asked, and
    heartbeats."""
    outputs = []
    for n, row in enumerate(rows(number, np.random.default_rng(3))):
        key, partition = row.site.encode(), partition_of(row.site, PARTITIONS)
        outputs.append(Output(SITES, partition, key, encode(row)))
        for visit in range(pages + 1):
            page = Page(
                id=f"{n}-{visit}",
                page_id=f"{n}-{visit}",
                site=row.site,
                url=f"https://{row.site}/{visit}",
                fetched_at=1_780_000_000_000 + 2000 * (n * pages + visit),
                outcome="fetched" if visit < pages else "refused",
            )
            outputs.append(Output(PAGES, partition, key, encode(page)))
    outputs += [travelling(PAGES, n % PARTITIONS, {HEADER: "1"}) for n in range(3000)]
    with closing(open_log(url)) as log:
        log.append(outputs)


def test_the_log_replaces_the_averages(farmwatch: Runner, finished: str, tmp_path: Path) -> None:
    """The half width is that of the printed share; open sites are no verdicts; a file's known sites are left out."""
    put(finished, 120)
    rate = json.loads(farmwatch("rate", "--json", "--log", finished).out.splitlines()[-1])  # of these sites' versions
    asked = ("crawl", "plan", "--log", finished)
    found = farmwatch(*asked, "--sites", "10000", "--json").json
    assert rate["undecided"] >= 120
    with closing(open_log(finished)) as log:
        held = sum(size.bytes for size in log.sizes(list(log.topics())).values())
    assert found["figures"]["disk_bytes"] == pytest.approx(held / found["figures"]["sites"])  # heartbeats are no pages
    assert found["half_width_now"] == pytest.approx((rate["high"] - rate["low"]) / 2)
    assert found["scored_sites_now"] == rate["scored_sites"]
    figures = found["figures"]
    assert figures["requests"] == pytest.approx(9, abs=0.2)
    assert figures["pace"] == pytest.approx(0.5, rel=0.2) and figures["sites"] >= 120
    said = farmwatch(*asked, "--sites", "10000").out.splitlines()
    assert said[0].startswith("10,000 further sites would bring the 95% interval of the share to a half width of")
    assert len(said) <= 8
    assert farmwatch(*asked, "--half-width", "40%").out == "no further site is needed\n"
    hits = tmp_path / "hits.csv"
    known = farmwatch("sites", "--json", "--log", finished).out.splitlines()[-1]
    hits.write_text(f"url\nhttps://{json.loads(known)['site']}/a\nhttps://new.example/\nhttps://new.example/b\n")
    assert farmwatch(*asked, "--hits", hits, "--json").json["sites"] == 1
    hits.write_text(f"url\nhttps://{json.loads(known)['site']}/a\n")
    assert farmwatch(*asked, "--hits", hits).out == "no further site: the log has all sites of the files\n"


def test_a_small_log_says_that_it_is_too_small(farmwatch: Runner, finished: str) -> None:
    """With few sites, their number and the needed one stand beside the best case."""
    put(finished, 5)
    out = " ".join(farmwatch("crawl", "plan", "--sites", "100", "--log", finished).out.split())
    assert "at best" in out and f"{LEAST_SITES} are needed for a plan from its own figures" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--half-width", "0.7"), "--half-width 0.7: give a share above 0 and below 0.5"),
        (("--half-width", "nan"), "--half-width nan: give a share above 0"),
        ((), "give one of --sites, --hits and --half-width"),
        (("--sites", "5", "--half-width", "5%"), "give one of --sites, --hits and --half-width"),
    ],
)
def test_bad_requests_are_refused(farmwatch: Runner, arguments: tuple[str, ...], said: str) -> None:
    """With exit code 2 and what is possible."""
    ran = farmwatch("crawl", "plan", *arguments)
    assert (ran.code, ran.out) == (Exit.USAGE, "") and said in ran.err
