"""Two detectors on the same simulated sites: they part where one of them drifts, and not otherwise."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from dashboards.alerts import ALERTS
from farmwatch.share.live_share import LiveShare
from replay.runs.lookup import second_runs
from scoring.interface import PageScore
from scoring.rates.canary import CanaryName
from scoring.sites.sprt import SiteTest, SprtParams
from stream.log.contract import CleanupPolicy, Output, Topic
from stream.memory.log import MemoryLog
from stream.processing.metrics import Metrics
from stream.schema.control import Control, exclusive
from stream.schema.records import SiteState, encode
from stream.schema.runs import Alias, Run, RunStatus
from tests.support.runs.live_rows import CONFIG, IN_FORCE, LIVE, METHOD, new_log

SECOND = Run(name="second", ruleset=IN_FORCE.name, digest=IN_FORCE.digest, detector="y/1", epoch="e")
NOW_MS = 1_000_000
AS_KNOWN = (0.03, 0.85)  # share of flagged pages of human and of LLM sites, by the second detector on the canaries
PAGES, CANARIES = 20, 50


class World(NamedTuple):
    """What the second detector flags of the crawled sites' pages, and how many sites there are."""

    human: float = AS_KNOWN[0]
    llm: float = AS_KNOWN[1]
    sites: int = 600
    share: float = 0.2


def simulated(world: World, seed: int) -> MemoryLog:
    """A log with the rows of both runs: crawled sites that are left when the first detector decides, and canaries."""
    rng, log = np.random.default_rng(seed), new_log()
    log.create([Topic(SECOND.names().sites, 2, CleanupPolicy.COMPACT)])
    with exclusive(log) as control:
        control.put(LIVE.run, SECOND, Alias(run="live"))
    rows = []
    for number in range(world.sites):
        llm = bool(rng.random() < world.share)
        flags = pages(rng, (0.03, 0.8)[llm], (world.human, world.llm)[llm], min(int(rng.geometric(0.15)), PAGES))
        used = SiteTest(SprtParams()).decide([PageScore(flag) for flag in flags[0]]).pages_used
        rows += both(f"s{number}.d{number}.example", flags[:, :used])
    for place, truth in enumerate(("human", "llm")):
        for number in range(CANARIES):
            name = CanaryName(f"{truth}{number}", f"{number:016x}", PAGES, 1, truth).site
            rows += both(name, pages(rng, (0.03, 0.8)[place], AS_KNOWN[place], PAGES))
    log.append(rows)
    return log


def pages(rng: np.random.Generator, first: float, second: float, count: int) -> NDArray[np.bool_]:
    """Flags [2, pages] by both detectors; sites differ in how often each flags them."""
    shares = [rng.beta(9 * share, 9 * (1 - share)) for share in (first, second)]
    return np.array([rng.random(count) < share for share in shares])


def both(site: str, flags: NDArray[np.bool_]) -> list[Output]:
    """The rows of a site in both runs."""
    rows = []
    for run, of in zip((LIVE.run, SECOND), flags, strict=True):
        row = SiteState(
            id=site,
            site=site,
            detector=run.detector,
            ruleset=run.ruleset,
            digest=run.digest,
            run=run.name,
            method=METHOD[0],
            method_digest=METHOD[1],
            verdict="undecided",
            pages=len(of),
            articles=len(of),
            scored=len(of),
            flagged=int(of.sum()),
            updated_at=NOW_MS,
        )
        rows.append(Output(run.names(is_live=run.name == "live").sites, 0, site.encode(), encode(row)))
    return rows


def gaps(log: MemoryLog) -> dict[str, float]:
    """The gauges of the gap, by kind, that TALLY's process of the live run sets."""
    metrics = Metrics()
    LiveShare(log, CONFIG.rate, metrics, LIVE, METHOD, lambda: NOW_MS / 1000).update_gauges()
    return {
        sample.labels["kind"]: sample.value
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "farmwatch_detectors_gap" and sample.labels["detector"] == "y/1"
    }


def fires(found: dict[str, float]) -> bool:
    """Whether the condition of the alert holds for these gauges."""
    (alert,) = [alert for alert in ALERTS if alert.name == "DetectorsPart"]
    assert alert.signal == "max by (run, detector, kind) (farmwatch_detectors_gap @live)" and alert.is_ == ">"
    return any(gap > float(alert.than) for gap in found.values())


@pytest.mark.parametrize("world", [World(), World(sites=4_000), World(share=0.6), World(sites=4_000, share=0.03)])
def test_detectors_that_measure_as_on_known_sites_do_not_part(world: World) -> None:
    """Without a drift both gaps are there and below 0, also for many sites, whose interval is narrow."""
    for seed in range(3):
        found = gaps(simulated(world, seed))
        assert found.keys() == {"share", "flags"}
        assert not fires(found), (seed, found)


@pytest.mark.parametrize(
    "world",
    [World(llm=0.3, share=0.3), World(human=0.2), World(llm=0.4, sites=4_000)],
    ids=["newer generators", "another register", "many sites"],
)
def test_a_drift_of_one_detector_fires(world: World) -> None:
    """Where the second detector finds fewer LLM pages, or flags more human ones, than on known sites, they part."""
    for seed in range(3):
        found = gaps(simulated(world, seed))
        assert fires(found), (seed, found)


def test_too_few_sites_or_canaries_say_nothing() -> None:
    """With 20 sites there is no gap of the flags, whatever they are."""
    assert "flags" not in gaps(simulated(World(llm=0.1, human=0.5, sites=20), 1))


def test_second_runs_follow_the_live_one_for_another_detector() -> None:
    """Runs of another ruleset, of the same detector, that end or were cancelled, are none."""
    log = new_log()
    changes: list[dict[str, Any]] = [
        {"detector": "x/1"},
        {"digest": "f" * 64},
        {"stop": {"features": [1, 1]}},
        {"state": RunStatus.CANCELLED},
    ]
    others = [msgspec.structs.replace(SECOND, name=f"o{n}", **change) for n, change in enumerate(changes)]
    with exclusive(log) as control:
        control.put(LIVE.run, SECOND, *others, Alias(run="live"))
    assert [run.name for run in second_runs(Control(log))] == ["second"]
    assert second_runs(Control(new_log())) == []
