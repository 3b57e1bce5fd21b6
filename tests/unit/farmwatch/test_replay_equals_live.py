"""What live says under a ruleset and what a replay says under it: every labelled page and the sample web, each log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest
import zstandard

from crawler.urls import host_of, page_id
from farmwatch.comparing.comparer import Asked, compare
from farmwatch.labelled import LabelledPage
from farmwatch.runs.engine import Ending
from filters.measure_stage import MeasureStage
from filters.ruleset import load_ruleset
from stream.embedded_log import EmbeddedLog
from stream.log import Log
from stream.memory_log import MemoryLog
from stream.records import Features, Hit, Page, SiteState, Verdict
from stream.topics import HITS, PAGES
from tests.extraction_here import extract_here
from tests.replay_world import LiveWorld, config_of, measuring_otherwise, output
from tests.stream.worlds import KafkaWorld
from tests.webs import HTML_HEADERS, sample_web

pytestmark = [pytest.mark.data]

LIVE, OTHER = "default", "notes"
_CONFIG = config_of("sqlite:nowhere", "measure.time_limit_s=60")
Outcome = tuple[list[Verdict], dict[str, SiteState]]


class Given(NamedTuple):
    """What the logs are filled with."""

    labelled: list[Features]
    web: list[Page]


@pytest.fixture(scope="module")
def given(labelled: list[LabelledPage], shared: Path) -> Given:
    """Features of every labelled page, and every page of the sample web, which is still to be measured."""
    pages: list[Page] = []
    for host, paths in sample_web(shared).hosts.items():
        for path, response in paths.items():
            if response.headers == HTML_HEADERS:
                url, body = f"http://{host}{path}", zstandard.ZstdCompressor(level=1).compress(response.body)
                number = f"w{len(pages)}"
                pages.append(Page(id=number, site=host_of(url), page_id=page_id(url), url=url, body=body, fetched_at=5))
    return Given([page.features for page in labelled], pages)


def live_under(ruleset: str, log: Log, given: Given) -> LiveWorld:
    """A log on which the live stages have measured, judged and tallied all of it, every text scored."""
    world = LiveWorld(log, _CONFIG, ruleset=load_ruleset(ruleset))
    world.feed(given.labelled)
    world.log.append([output(PAGES, page) for page in given.web])
    world.log.append([output(HITS, Hit(id=f"h{page.id}", site=page.site, url=page.url, rank=1)) for page in given.web])
    world.run_stage(MeasureStage(_CONFIG.measure), "measure")
    world.carry_on()
    return world


@pytest.fixture(scope="module")
def expected(given: Given) -> dict[str, Outcome]:
    """Ruleset -> what live comes to under it, on a log of its own, in memory."""
    with pytest.MonkeyPatch.context() as patch:
        extract_here(patch)
        return {ruleset: live_under(ruleset, MemoryLog(), given).outcome() for ruleset in (LIVE, OTHER)}


@pytest.fixture(scope="module")
def embedded(given: Given, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWorld]:
    """Live on the embedded log."""
    log = EmbeddedLog(tmp_path_factory.mktemp("equals") / "log")
    with pytest.MonkeyPatch.context() as patch:
        extract_here(patch)
        yield live_under(LIVE, log, given)
    log.close()


@pytest.fixture
def kafka(given: Given, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveWorld]:
    """Live on Kafka."""
    extract_here(monkeypatch)
    made = KafkaWorld(tmp_path)
    yield live_under(LIVE, made.log, given)
    made.close()


@pytest.mark.parametrize("kind", ["embedded", pytest.param("kafka", marks=pytest.mark.kafka)])
def test_a_replay_under_the_live_ruleset(
    kind: str, given: Given, expected: dict[str, Outcome], request: pytest.FixtureRequest
) -> None:
    """Record by record it is what live said, on this log and on every log; `compare` finds them identical.

    Nothing of live has moved for it.
    """
    world: LiveWorld = request.getfixturevalue(kind)
    live, before = world.outcome(), world.live_traces()
    assert live == expected[LIVE]
    assert len(live[0]) == len(given.labelled) + len(given.web)
    assert world.replay(ruleset=LIVE, name="same") is Ending.DONE
    assert world.row("same").source == "features"
    assert world.outcome("same") == live
    found = compare(world.log, "live", "same", Asked(sample=20, seed=0, resamples=100), world.config.rate, now_ms=0)
    assert (found.identical, found.sample) == (True, [])
    assert found.pages.both_articles + found.pages.both_dropped == len(live[0])
    known = [one for one in found.changes if one.difference is not None]
    assert {(one.low, one.difference, one.high) for one in known} == {(0, 0, 0)}
    assert world.live_traces() == before


def test_a_replay_under_another_ruleset(embedded: LiveWorld, given: Given, expected: dict[str, Outcome]) -> None:
    """Record by record it is what live would have said, once the missing scores are in; also measured anew, from pages.

    Of pages there are those of the sample web.
    """
    before = embedded.live_traces()
    assert embedded.replay(ruleset=OTHER, name="other") is Ending.DONE
    assert embedded.score() > 0
    assert embedded.replay(name="other") is Ending.DONE
    assert embedded.outcome("other") == expected[OTHER] != expected[LIVE]
    with measuring_otherwise(embedded):
        assert embedded.replay(ruleset=OTHER, name="anew") is Ending.DONE
    row = embedded.row("anew")
    assert row.source == "pages"
    assert row.epoch != embedded.epoch
    verdicts, rows = embedded.outcome("anew")
    sites = {page.site for page in given.web}
    of_web = [verdict for verdict in expected[OTHER][0] if verdict.site in sites]
    assert verdicts == [msgspec.structs.replace(verdict, epoch=row.epoch) for verdict in of_web]
    assert rows.items() >= {site: expected[OTHER][1][site] for site in sites}.items()
    assert embedded.live_traces() == before
