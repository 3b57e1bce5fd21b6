"""The sequential test of a site, page by page, from what TALLY holds of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from replay.live.live_run import find_rules
from replay.settings import ReplaySettings
from scoring.sites.registry import method_of_text, site_method
from scoring.stages.site_tally import SiteTally
from stream.log.contract import Log, partition_of
from stream.schema.records import SiteState


class Step(NamedTuple):
    """What a site's test says after a page."""

    number: int
    verdict: str
    llr: float  # nats; of `deciles` the margin


class Walk(NamedTuple):
    """The test after each page, by page id, and its evidence in words."""

    steps: Mapping[str, Step]
    evidence: str


def site_walk(log: Log, config: ReplaySettings, row: SiteState) -> Walk | None:
    """The walk of a site's test; None for a site that TALLY does not hold. Raises as `Log.read_state`, NoSiteTest."""
    rules = find_rules(log, config)
    kept = rules.run.site_method
    method = method_of_text(kept) if kept else site_method(config.tally, row.detector)
    store = rules.names.tally_store
    partitions = log.topics().get(f"state.{store}", 0)
    if not partitions:
        return None
    with log.read_state(store, partition_of(row.site, partitions)) as state:
        data = state.get(row.site.encode())
    if data is None:
        return None
    evidence = SiteTally.load(data, config.tally.term_ms).evidence(row.detector, row.term)
    scores = list(evidence.values())
    steps: dict[str, Step] = {}
    for number, page in enumerate(evidence, 1):
        said = method.decide(scores[:number])
        steps[page] = Step(number, said.verdict, said.llr)
    return Walk(steps, method.evidence(method.decide(scores)))
