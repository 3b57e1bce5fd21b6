"""Definitions of the share, clusters that widen its interval, and the effect of unjudged sites."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from scoring.estimate.clusters import WeightedSites, agreement, domains_of
from scoring.estimate.definitions import BY_LABELS, OF_RESULTS, OF_ROWS
from scoring.estimate.remarks import RemarkKind
from scoring.estimate.reviewed_share import Review
from scoring.rates.direct_share import direct_share, share_of_rows
from scoring.rates.split_rates import RateLine, RateQuery, rate_lines
from stream.schema.records import SiteState
from tests.support.remarks import facts, kinds
from tests.support.site_rows import cell_rows, results_of
from tests.support.sizes import LONG

WEBS = 20 if LONG else 2  # of each number of queries


def web(rng: np.random.Generator, operators: int, subdomains: int, share: float, **more: int) -> list[SiteState]:
    """Operators with this many sites each, all LLM or all human."""
    rows: list[SiteState] = []
    for operator in range(operators):
        is_llm = rng.random() < share
        for number in range(subdomains):
            n = min(int(rng.geometric(0.25)), 20)
            k = int(rng.binomial(n, rng.beta(19, 5) if is_llm else rng.beta(0.5, 11)))
            known = {"pages": n, "articles": n, "hits": 1} | more
            rows += cell_rows([(n, k)], f"s{number}.operator{operator}.com", **known)
    return rows


def line_of(rows: list[SiteState], definition: str = "sites") -> RateLine:
    """The line of all sites."""
    results = results_of(rows) if definition in OF_RESULTS else None
    (line,) = rate_lines(rows, RateQuery(definition=definition, results=results))
    return line


def ends(rows: list[SiteState]) -> tuple[float, float]:
    """The interval of the share."""
    found, _ = share_of_rows(rows)
    assert found.low is not None and found.high is not None
    return found.low, found.high


def test_domains_are_those_of_the_public_suffix_list() -> None:
    """The public suffix list defines a site's domain; without the list it is the last two labels."""
    domains = {
        "a.example.com": "example.com",
        "b.example.com": "example.com",
        "x.blogspot.com": "x.blogspot.com",
        "y.blogspot.com": "y.blogspot.com",
        "one.co.uk": "one.co.uk",
        "www.two.co.uk": "two.co.uk",
        "s.net": "s.net",
    }
    assert list(domains_of(lambda: iter(domains))) == list(domains.values())


def test_four_hundred_subdomains_of_one_operator_are_no_four_hundred_draws() -> None:
    """The design effect is near 10 for operators with 10 equal sites, and near 1 for single sites."""
    rng = np.random.default_rng(3)
    for subdomains, least, most in ((10, 5, 14), (1, 1, 1.3)):
        sites = WeightedSites.of(web(rng, 60, subdomains, 0.3), "sites")
        _, fit = direct_share(sites.cells)
        assert fit is not None
        assert least <= agreement(sites, fit.moves(sites.rows)).effect <= most


@pytest.mark.slow
def test_clustered_intervals_cover_the_share_of_operators() -> None:
    """For 40 operators with 20 sites each, the interval covers in 9 of 10 webs; unclustered, in fewer than 8."""
    covered, alone = 0, 0
    for seed in range(10):
        rows = web(np.random.default_rng(seed), 40, 20, 0.3)
        low, high = ends(rows)
        plain, _ = direct_share(WeightedSites.of(rows, "sites").cells)
        assert plain.low is not None and plain.high is not None
        covered += low <= 0.3 <= high
        alone += plain.low <= 0.3 <= plain.high
    assert covered >= 9
    assert alone < 8


def of_queries(rng: np.random.Generator, queries: int, sites: int = 30) -> list[SiteState]:
    """Independent operators for each query, with another share of LLM sites per query: 30% on average."""
    rows = []
    for query in range(queries):
        for row in web(rng, sites, 1, rng.beta(0.9, 2.1)):
            rows.append(replace(row, site=f"q{query}{row.id}".replace("s0.", ""), queries=[f"q{query}"]))
    return rows


@pytest.mark.slow
def test_few_queries_widen_the_interval() -> None:
    """For 3, 5 and 8 different queries, the interval covers in 5 of 6 webs; the text has the number of queries.

    At 95%, it does so with a probability of .97; at 50%, of .11.
    """
    covered = 0
    for queries in (3, 5, 8):
        for seed in range(WEBS):
            found, _ = share_of_rows(of_queries(np.random.default_rng(seed), queries))
            assert found.low is not None and found.high is not None
            covered += found.low <= 0.3 <= found.high
            assert (queries, "queries") in [(r.facts.get("clusters"), r.facts.get("unit")) for r in found.remarks]
    assert covered / (3 * WEBS) >= 5 / 6


def test_one_operator_with_nearly_all_sites_is_no_number() -> None:
    """If nearly all sites belong to one or two operators, there is no share."""
    rng = np.random.default_rng(3)
    farm = web(rng, 1, 400, 1.0)
    others = [replace(row, site=f"other{n}.net") for n, row in enumerate(web(rng, 5, 1, 0.0))]
    two = [replace(row, site=f"s{n}.paper.net") for n, row in enumerate(web(rng, 1, 200, 0.0))]
    for rows, domains, sites in (([*farm, *others], 6, 400), ([*farm[:200], *two], 2, 200)):
        line = line_of(rows)
        assert (line.share, line.method) == (None, "too wide")
        wanted = {
            "clusters": domains,
            "unit": "registrable domains",
            "largest": "operator0.com",
            "largest_sites": sites,
        }
        assert facts(line.remarks, RemarkKind.CLUSTERS_NEEDED) == wanted
    line = line_of(farm)
    assert (line.share, line.method) == (None, "kinds not told apart")
    assert RemarkKind.OFTEN_FLAGGED in kinds(line.remarks)


def test_sites_of_one_query_are_what_it_finds() -> None:
    """The share of one query's sites is marked as such and not widened."""
    rows = of_queries(np.random.default_rng(1), 1, 200)
    found, _ = share_of_rows(rows)
    assert found.share is not None and found.design_effect == 1
    assert found.remarks[0].facts["one_query"] and found.remarks[0].facts["sites"] == 200


def test_sites_of_one_query_agree() -> None:
    """Sites that one query returned are a cluster too."""
    rng = np.random.default_rng(5)
    alone = [replace(row, site=f"x{n}.com") for n, row in enumerate(web(rng, 40, 8, 0.3))]
    asked = [replace(row, queries=[f"q{n // 8}"]) for n, row in enumerate(alone)]
    widths = [high - low for low, high in map(ends, (alone, asked))]
    assert widths[1] > 1.5 * widths[0]


def test_what_counts_decides_the_share() -> None:
    """If LLM sites are few results of rank 1, their share is half of sites and less of results."""
    rows = []
    for n in range(60):
        many = SiteState(id=f"l{n}", site=f"s{n}.farm{n // 6}.com", ruleset="r", scored=9, flagged=8, articles=30)
        few = SiteState(id=f"h{n}", site=f"paper{n}.com", ruleset="r", scored=9, flagged=0, articles=10)
        rows += [replace(many, best_rank=1, hits=1), replace(few, best_rank=63, hits=9)]
    shares = {definition: line_of(rows, definition) for definition in (*OF_ROWS, *OF_RESULTS)}
    assert {name: line.definition for name, line in shares.items()} == {name: name for name in shares}
    found = {name: line.share for name, line in shares.items()}
    expected = {"sites": 0.5, "domains": 10 / 70, "results": 0.1, "ranked-results": 0.4}
    assert found == pytest.approx(expected, abs=0.06)
    assert all(line.scored_sites == 120 for line in shares.values())
    units = {name: line.remarks[0].facts.get("units") for name, line in shares.items()}
    assert units == {"sites": None, "domains": 70, "results": 600, "ranked-results": 600}


def test_labels_tell_any_from_every_article() -> None:
    """Labels give the share of sites with any, half or all articles by a language model.

    Without labels it is unknown.
    """
    rows = web(np.random.default_rng(1), 200, 1, 0.3)
    scored = sorted(row.site for row in rows)[:100]
    review = Review(
        {"": {site: (number % 4) / 3 for number, site in enumerate(scored)}}, 100, 86_400_000, 2 * 86_400_000
    )
    lines = {name: rate_lines(rows, RateQuery(definition=name, review=review))[0] for name in ("sites", *BY_LABELS)}
    found = {name: line.share for name, line in lines.items()}
    assert found == pytest.approx({"sites": 0.5, "any-article": 0.75, "every-article": 0.25}, abs=0.06)
    labelled = {"number": 100, "at_ms": 86_400_000, "until_ms": 2 * 86_400_000, "labellers": 1}
    assert all(facts(line.remarks, RemarkKind.LABELLED) == labelled for line in lines.values())
    for none in (None, Review({"": {scored[0]: 1.0}}, 1, 0, 1)):
        line = rate_lines(rows, RateQuery(definition="any-article", review=none))[0]
        assert (line.share, line.low, line.method, line.scored_sites) == (None, None, "too few labels", 200)
        assert kinds(line.remarks) == [RemarkKind.NO_SHARE, RemarkKind.NO_LABELS]


def test_the_bounds_hold_whatever_those_not_judged_are() -> None:
    """The bounds hold for none to all of the sites without a scored article, which are counted by reason."""
    rows = web(np.random.default_rng(1), 60, 1, 0.3)
    rows += cell_rows([(0, 0)] * 10, "e{}.com")
    rows += cell_rows([(0, 0)] * 20, "d{}.com", pages=5, dropped_by={"min_tokens": 3, "language": 2})
    rows += cell_rows([(0, 0)] * 10, "a{}.com", pages=5, articles=5, abstained=5)
    line = line_of(rows)
    assert line.not_judged == {"no article": 20, "no page": 10, "detector abstained": 10}
    robots = rate_lines(rows, RateQuery(no_page={f"e{n}.com": "refused by robots.txt" for n in range(4)}))[0].not_judged
    assert robots == {"no article": 20, "detector abstained": 10, "no page": 6, "refused by robots.txt": 4}
    foreign = cell_rows([(0, 0)], pages=5, dropped_by={"language": 5})
    assert line_of(foreign).not_judged == {"another language": 1}
    assert line.low is not None and line.high is not None
    assert line.bound_low == pytest.approx(line.low * 60 / 100)
    assert line.bound_high == pytest.approx((line.high * 60 + 40) / 100)
    for reason, sites in line.not_judged.items():
        low, high = line.not_judged_bounds[reason]
        assert low == pytest.approx(line.low * 60 / (60 + sites))
        assert high == pytest.approx((line.high * 60 + sites) / (60 + sites))
    assert line_of(rows, "results").bound_low is None and line_of(rows, "results").not_judged_bounds == {}
    assert line_of([]).bound_low is None
