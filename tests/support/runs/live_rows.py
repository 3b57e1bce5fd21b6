"""Rows of sites as the live run of a log in memory has them, and a clock for its maintenance."""

from __future__ import annotations

from typing import Any

from farmwatch.config.config import Config, load
from filters.rules.ruleset import load_ruleset
from replay.runs.run_rules import RunRules
from stream.log.contract import Output
from stream.memory.log import MemoryLog
from stream.schema.records import SiteState, encode
from stream.schema.runs import Run
from stream.schema.topics import SITES, all_topics

CONFIG: Config = load(None, ["log.partitions=2"], {}).config
METHOD = ("sprt", "0123abcd")
IN_FORCE = load_ruleset(CONFIG.judge.ruleset)
LIVE = RunRules(
    Run(name="live", ruleset=IN_FORCE.name, digest=IN_FORCE.digest, detector="x/1", epoch="e"), IN_FORCE.source
)
YEAR_S = 365 * 86_400.0


class Clock:
    """A clock that the test sets, in seconds."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def new_log() -> MemoryLog:
    log = MemoryLog()
    log.create(all_topics(2, "e"))
    return log


def row(site: str, verdict: str, detector: str = "x/1", method: tuple[str, str] = METHOD, **more: Any) -> Output:
    """The row of a site by the ruleset in force."""
    versions = {"ruleset": IN_FORCE.name, "digest": IN_FORCE.digest, "method": method[0], "method_digest": method[1]}
    fields = {"detector": detector, "sources": ["file"], **versions, **more}
    return Output(SITES, 0, site.encode(), encode(SiteState(id=site, site=site, verdict=verdict, **fields)))
