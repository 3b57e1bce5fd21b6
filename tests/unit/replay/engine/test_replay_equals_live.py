"""Verdicts of live and of a replay under one ruleset: labelled pages and a part of the sample web, on the embedded log.

With FARMWATCH_LONG all labelled pages and half of the sample web.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import zstandard

from crawler.web.urls import host_of, page_id
from farmwatch.labels.labelled_pages import LabelledPage
from filters.rules.ruleset import load_ruleset
from filters.stages.measure import MeasureStage
from replay.compare.comparer import ComparisonRequest, compare
from replay.engine.runner import Ending
from stream.embedded.log import EmbeddedLog
from stream.log.contract import Log
from stream.memory.log import MemoryLog
from stream.schema.records import Features, Hit, Page, SiteState, Verdict
from stream.schema.topics import HITS, PAGES
from tests.support.pages.extraction_here import extract_here
from tests.support.runs.replay_world import LiveWorld, config_of, measuring_otherwise, output
from tests.support.sizes import LONG
from tests.support.web.webs import HTML_HEADERS, sample_web

pytestmark = [pytest.mark.data, pytest.mark.xdist_group("labelled"), pytest.mark.slow]

SITES = 30 if LONG else 5  # of the sample web
LIVE, OTHER = "default", "notes"
_CONFIG = config_of("sqlite:nowhere", "measure.time_limit_s=60")
Outcome = tuple[list[Verdict], dict[str, SiteState]]


class Given(NamedTuple):
    labelled: list[Features]
    labelled_pages: list[Page]  # the source of these features
    web: list[Page]
    torn: set[str]  # sites of several sources are left out: live knew the pages of one source only


@pytest.fixture(scope="module")
def given(labelled: list[LabelledPage], shared: Path) -> Given:
    """The labelled pages with their features, and pages of the sample web, not yet measured."""
    pages: list[Page] = []
    for host, paths in sample_web(shared, SITES).hosts.items():
        for path, response in paths.items():
            if response.headers == HTML_HEADERS:
                url, body = f"http://{host}{path}", zstandard.ZstdCompressor(level=1).compress(response.body)
                number = f"w{len(pages)}"
                pages.append(Page(id=number, site=host_of(url), page_id=page_id(url), url=url, body=body, fetched_at=5))
    sources: dict[str, set[str]] = {}
    for one in labelled:
        sources.setdefault(one.features.site, set()).add(one.label.source)
    return Given(
        [one.features for one in labelled],
        [stored(one, shared) for one in labelled],
        pages,
        {site for site, of in sources.items() if len(of) > 1},
    )


def stored(page: LabelledPage, shared: Path) -> Page:
    """The page as a crawl stores it."""
    label = page.label
    body = (shared / "data" / "pages" / label.source / "html" / f"{label.id}.html.zst").read_bytes()
    return Page(id=label.id, site=page.features.site, page_id=label.id, url=label.url, encoding="utf-8", body=body)


def live_under(ruleset: str, log: Log, given: Given, labelled_pages: Sequence[Page] = ()) -> LiveWorld:
    """A log where the live stages have measured, judged and tallied everything, with a score for each text.

    MEASURE has passed the labelled pages, because their features are already there.
    """
    world = LiveWorld(log, _CONFIG, ruleset=load_ruleset(ruleset))
    world.feed(given.labelled)
    world.log.append([output(PAGES, page) for page in labelled_pages])
    world.log.reset("measure", PAGES, world.log.end(PAGES))
    world.log.append([output(PAGES, page) for page in given.web])
    world.log.append([output(HITS, Hit(id=f"h{page.id}", site=page.site, url=page.url, rank=1)) for page in given.web])
    world.run_stage(MeasureStage(_CONFIG.measure), "measure")
    world.carry_on()
    return world


@pytest.fixture(scope="module")
def expected(given: Given) -> dict[str, Outcome]:
    """Ruleset -> result of live under it, on its own log in memory."""
    with pytest.MonkeyPatch.context() as patch:
        extract_here(patch)
        return {ruleset: live_under(ruleset, MemoryLog(), given).outcome() for ruleset in (LIVE, OTHER)}


@pytest.fixture(scope="module")
def embedded(given: Given, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWorld]:
    """Live on the embedded log, with the labelled pages."""
    log = EmbeddedLog(tmp_path_factory.mktemp("equals") / "log")
    with pytest.MonkeyPatch.context() as patch:
        extract_here(patch)
        yield live_under(LIVE, log, given, given.labelled_pages)
    log.close()


def test_a_replay_under_the_live_ruleset(given: Given, expected: dict[str, Outcome], embedded: LiveWorld) -> None:
    """Each record equals that of live, on this log and in memory; `compare` reports them as identical.

    The replay changed nothing of live.
    """
    world = embedded
    live, before = world.outcome(), world.live_traces()
    assert live == expected[LIVE]
    assert len(live[0]) == len(given.labelled) + len(given.web)
    assert world.replay(ruleset=LIVE, name="same") is Ending.DONE
    assert world.row("same").source == "features"
    assert world.outcome("same") == live
    found = compare(
        world.log, "live", "same", ComparisonRequest(sample=20, seed=0, resamples=100), world.config.rate, now_ms=0
    )
    assert (found.identical, found.sample) == (True, [])
    assert found.pages.both_articles + found.pages.both_dropped == len(live[0])
    known = [one for one in found.changes if one.difference is not None]
    assert {(one.low, one.difference, one.high) for one in known} == {(0, 0, 0)}
    assert world.live_traces() == before


def test_a_replay_from_pages(given: Given, expected: dict[str, Outcome], embedded: LiveWorld) -> None:
    """Measured again from pages, each record equals that of live, and that of a replay from features."""
    world = embedded
    before = world.live_traces()
    with measuring_otherwise(world):
        assert world.replay(ruleset=LIVE, name="anew") is Ending.DONE
    row = world.row("anew")
    assert row.source == "pages"
    assert row.epoch != world.epoch
    pages = [*given.web, *given.labelled_pages]
    sites = {page.site for page in pages} - given.torn
    verdicts = [verdict for verdict in world.outcome("anew")[0] if verdict.site in sites]
    live = [msgspec.structs.replace(said, epoch=row.epoch) for said in expected[LIVE][0] if said.site in sites]
    assert verdicts == live
    assert len(verdicts) > 0.9 * len(pages)
    rows = world.outcome("anew")[1]
    live_rows = expected[LIVE][1]
    assert {site: rows[site] for site in sites} == {
        site: msgspec.structs.replace(live_rows[site], epoch=row.epoch if live_rows[site].epoch else "")
        for site in sites
    }
    assert world.live_traces() == before


def test_a_replay_under_another_ruleset(embedded: LiveWorld, expected: dict[str, Outcome]) -> None:
    """After the missing scores each record equals that of live under this ruleset."""
    before = embedded.live_traces()
    assert embedded.replay(ruleset=OTHER, name="other") is Ending.DONE
    assert embedded.score() > 0
    assert embedded.replay(name="other") is Ending.DONE
    assert embedded.outcome("other") == expected[OTHER] != expected[LIVE]
    assert embedded.live_traces() == before
