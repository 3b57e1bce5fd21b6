"""The share of search results by week and engine: two engines that answer twelve queries in eight weeks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from farmwatch.crawl.deeper_queries import deeper_queries
from farmwatch.share.live_share import LiveShare
from scoring.estimate.definitions import RESULTS
from scoring.rates.cuts import Cut
from scoring.rates.results import RankedHit, Results
from scoring.rates.split_rates import RateQuery, rate_lines
from stream.log.contract import Output, partition_of
from stream.opening import open_log
from stream.processing.metrics import Metrics
from stream.schema.records import Hit, SiteState, decode, encode
from stream.schema.topics import HITS
from stream.text.times import DAY_MS, day_ms
from stream.text.user_errors import Exit
from tests.support.front_door import DETECTOR, Runner
from tests.support.runs.live_rows import CONFIG, LIVE, METHOD, new_log, row
from tests.support.runs.two_runs import PARTITIONS, RULESETS, A, begin, put_run, site
from tests.support.web.console_browser import visited

MONDAY, WEEKS, RANKS = date(2026, 9, 7), range(8), 12
QUERIES = [f"q{number:02}" for number in range(12)]
OF_RANK = 2 * len(QUERIES)  # results of a week
EVERY = RANKS * OF_RANK
NOW_MS = day_ms(MONDAY + timedelta(weeks=WEEKS.stop)) - 1
WEEK_NAMES = [f"2026-W{37 + week}" for week in WEEKS]


def name_at(week: int, engine: str, query: str, rank: int) -> str:
    """At ranks 1 to `week` LLM sites, the odd ones of that week alone; below them sites by people, always the same."""
    if rank <= week:
        return f"l{rank}.farm{rank}{query}{week if rank % 2 else ''}.com"
    return f"h{rank}.{engine}paper{rank}{query}.com"


def results_of(week: int, most: int = RANKS) -> Iterator[Hit]:
    """The results of a search on a Monday; both engines name the same LLM sites."""
    at = day_ms(MONDAY + timedelta(weeks=week)) + 1
    for engine in ("alpha", "beta"):
        for query in QUERIES:
            for rank in range(1, most + 1):
                name = name_at(week, engine, query, rank)
                yield Hit(
                    id=f"{week} {engine} {query} {rank}",
                    site=name,
                    url=f"https://{name}/",
                    source="searxng",
                    engine=engine,
                    query_id=query,
                    rank=rank,
                    fetched_at=at,
                )


HIT_LIST = [hit for week in WEEKS for hit in results_of(week)]


def is_llm(name: str) -> bool:
    return name.startswith("l")


def rows() -> list[SiteState]:
    """Ten scored articles of each site, all or none of them flagged, and what TALLY knows of its hits."""
    made = []
    for name in sorted({hit.site for hit in HIT_LIST}):
        own = [hit for hit in HIT_LIST if hit.site == name]
        counts = {"pages": 10, "articles": 10, "scored": 10, "flagged": 10 * is_llm(name), "hits": len(own)}
        of_search: dict[str, Any] = {
            "sources": ["searxng"],
            "queries": sorted({hit.query_id for hit in own}),
            "days": sorted({hit.fetched_at // DAY_MS for hit in own}),
            "best_rank": min(hit.rank for hit in own),
        }
        made.append(site(name, "undecided", **counts, **of_search))
    return made


def held_by_llm(hits: Iterator[Hit]) -> float:
    """The part of the weight 1 / log2(1 + rank) that LLM sites hold."""
    weights = [(1 / math.log2(1 + hit.rank), is_llm(hit.site)) for hit in hits]
    return sum(weight for weight, llm in weights if llm) / sum(weight for weight, _ in weights)


def new_results(week: int) -> int:
    """Results of sites that no week before named: at first all, then of LLM sites the odd ranks and the next."""
    return EVERY if week == WEEKS.start else OF_RANK * sum(rank % 2 == 1 or rank == week for rank in range(1, week + 1))


def outputs(hits: list[Hit], partitions: int) -> list[Output]:
    return [Output(HITS, partition_of(hit.site, partitions), hit.site.encode(), encode(hit)) for hit in hits]


@pytest.fixture
def url(tmp_path: Path, no_weights: None) -> str:
    """A live run, with the hits, of which a crash repeated some."""
    url = f"sqlite:{tmp_path / 'log'}"
    log = open_log(url)
    begin(log)
    put_run(log, A, RULESETS[A], [], rows(), live=True, detector=DETECTOR)
    log.append(outputs([*HIT_LIST, *results_of(WEEKS.start)], PARTITIONS))
    log.close()
    return url


def test_weeks_have_the_share_of_their_results_by_rank(farmwatch: Runner, url: str, tmp_path: Path) -> None:
    """Each week counts its own results once, with its first ten, and new sites apart from those known before."""
    out = farmwatch("rate", "--of", "ranked-results", "--by", "week", "--json", "--log", url)
    lines = {line["group"]: line for line in out.lines}
    assert list(lines) == WEEK_NAMES
    for week, line in zip(WEEKS, lines.values(), strict=True):
        assert (line["results"], line["scored_results"], line["definition"]) == (EVERY, EVERY, "ranked-results")
        assert line["first_ten"]["results"] == 10 * OF_RANK
        assert line["share"] == pytest.approx(held_by_llm(results_of(week)), abs=0.02)
        assert line["first_ten"]["share"] == pytest.approx(held_by_llm(results_of(week, 10)), abs=0.03)
        assert line["low"] <= line["share"] < line["high"]
        new = new_results(week)
        assert (line["new"]["results"], line["returning"]["results"]) == (new, EVERY - new)
    table = farmwatch("rate", "--of", "ranked-results", "--by", "week", "--log", url).out
    assert all(name in table for name in WEEK_NAMES)
    answer, picture = visited(url, tmp_path, "/answer", "/results.svg", of="ranked-results", by="week")
    assert answer.text.count("<figure>") == 4
    assert "2026-10-26" in picture.text


def test_engines_and_cuts_are_of_results(farmwatch: Runner, url: str) -> None:
    """A result has the engine that gave it, and --rank, --from and --to choose results."""
    of = ("rate", "--of", "results", "--by", "engine", "--json", "--log", url)
    assert {line["group"]: line["results"] for line in farmwatch(*of).lines} == dict.fromkeys(
        ("alpha", "beta"), len(WEEKS) * EVERY / 2
    )
    for line in farmwatch(*of, "--rank", "1-5", "--from", "2026-10-26", "--to", "2026-11-01").lines:
        assert (line["results"], line["scored_sites"]) == (5 * OF_RANK / 2, 60)
        assert (line["new"]["results"], line["returning"]["results"]) == (36, 24)
    ran = farmwatch(*of[:3], "--by", "rank", "--engine", "beta", "--rank", "1-3", *of[5:])
    assert [line["results"] for line in ran.lines] == [len(WEEKS) * 3 * OF_RANK / 2]
    assert "only these results: engine beta, rank 1-3" in ran.err
    assert farmwatch("rate", "--engine", "beta", "--log", url).code == Exit.USAGE
    assert farmwatch("rate", "--by", "engine", "--log", url).code == Exit.USAGE


def test_results_by_query_are_those_of_the_query() -> None:
    """A query counts its own results, and without a window or a day none of its sites is new."""
    hits = (decode(RankedHit, encode(hit)) for hit in HIT_LIST)
    results = Results(hits, "query", Cut(), {})
    lines = rate_lines(rows(), RateQuery(by="query", results=results, now_ms=NOW_MS, definition=RESULTS))
    assert [(line.group, line.results, line.new) for line in lines] == [
        (query, len(WEEKS) * EVERY / 12, None) for query in QUERIES
    ]


def test_splits_of_sites_count_all_results_of_their_sites() -> None:
    """By CMS, a site is in a group with all of its results."""
    hits = (decode(RankedHit, encode(hit)) for hit in HIT_LIST)
    query = RateQuery(by="cms", results=Results(hits, "cms", Cut(), {}), now_ms=NOW_MS, definition=RESULTS)
    assert [(line.group, line.results) for line in rate_lines(rows(), query)] == [("unknown", len(WEEKS) * EVERY)]


def test_queries_with_many_llm_results_are_searched_deeper() -> None:
    """LLM sites hold 7 of the first ten results in the last week; 5 results with a scored article are needed."""
    log = new_log()
    of_first = [hit for hit in results_of(7) if hit.query_id != "q00" or hit.rank > 7 or hit.engine == "beta"]
    of_one = [msgspec.structs.replace(hit, query_id="few") for hit in results_of(7, 4) if hit.query_id == "q01"][:4]
    log.append(outputs([*results_of(6), *of_first, *of_one], 2))
    log.append([row(of.site, "undecided", scored=of.scored, flagged=of.flagged) for of in rows()])
    since_ms = day_ms(MONDAY + timedelta(weeks=7))

    def deeper(above: float, source: str = "searxng") -> frozenset[str]:
        return deeper_queries(log, CONFIG.rate, source, since_ms, NOW_MS, above)

    assert deeper(0.6) == {*QUERIES} - {"q00"}
    assert deeper(0.8) == deeper(0.6, "brave") == frozenset()


def test_the_results_of_the_last_week_are_gauges() -> None:
    """The gauges have the last 7 days by rank: each part with its interval and its number of results."""
    log, metrics = new_log(), Metrics()
    log.append(outputs(HIT_LIST, 2))
    names = ("pages", "articles", "scored", "flagged", "hits", "days", "queries", "best_rank")
    log.append([row(of.site, "undecided", **{name: getattr(of, name) for name in names}) for of in rows()])
    LiveShare(log, CONFIG.rate, metrics, LIVE, METHOD, lambda: NOW_MS / 1000).update_result_gauges()
    found = {
        (sample.name, sample.labels["part"], sample.labels.get("bound", "")): sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name.startswith("farmwatch_results_")
    }
    parts = {"all": EVERY, "first_ten": 10 * OF_RANK, "new": new_results(7), "returning": EVERY - new_results(7)}
    assert {part: found["farmwatch_results_scored", part, ""] for part in parts} == parts
    low, point, high = (found["farmwatch_results_share", "all", bound] for bound in ("low", "point", "high"))
    assert low < point < high and point == pytest.approx(held_by_llm(results_of(7)), abs=0.02)
