"""The scope of an audit: a run with its groups and steps, and records with their offsets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import msgspec

from replay.runs.lookup import FIRST_RUN, find_run, measuring_run
from replay.runs.topology import reads_of_live
from scoring.stages.site_pages import JudgedPage
from stream.log.contract import Log
from stream.schema.control import Control
from stream.schema.records import Record, ScoreRequest
from stream.schema.runs import Run, RunNames
from stream.schema.topics import HITS, PAGES
from stream.text.user_errors import NotFound

R = TypeVar("R", bound=Record)

CRAWLED, MEASURED, JUDGED, SCORED, TALLIED = LIVE_STEPS = (
    "hits -> pages",
    "pages -> features",
    "features -> verdicts",
    "articles -> scores",
    "sites -> rows",
)
RUN_STEPS = (JUDGED, SCORED, TALLIED)


@dataclass(frozen=True, slots=True)
class StoredRecord(Generic[R]):
    """A record with its offset and time on its topic."""

    record: R
    offset: int
    timestamp_ms: int
    by_replay: bool = False  # of a verdict


class Requests:
    """Score requests by fetch and text, and by site and text: a replay requests a text once per site."""

    def __init__(self) -> None:
        self.of_fetch: Counter[str] = Counter()
        self._found: dict[tuple[str, str, bool], tuple[str, StoredRecord[ScoreRequest]]] = {}

    def add(self, topic: str, request: StoredRecord[ScoreRequest]) -> None:
        """Add a request of the topic."""
        record = request.record
        self.of_fetch[record.id] += 1
        self._found[record.id, record.text_digest, True] = topic, request
        self._found[record.site, record.text_digest, False] = topic, request

    def of(self, article: JudgedPage) -> tuple[str, StoredRecord[ScoreRequest]] | None:
        """The topic and request that an article waits for."""
        of_fetch = self._found.get((article.id, article.text_digest, True))
        return of_fetch or self._found.get((article.site, article.text_digest, False))


@dataclass(frozen=True, slots=True)
class AuditScope:
    """The audited run."""

    run: Run
    is_live: bool
    names: RunNames
    steps: Sequence[str]
    is_only_run: bool  # the log has no other run

    @property
    def groups(self) -> Mapping[str, str]:
        """Stage -> group, of the stages that serve one run."""
        names = self.names
        return {"measure": names.measure_group, "judge": names.judge_group, "tally": names.tally_group}

    @property
    def reads(self) -> Mapping[str, Sequence[str]]:
        """Stage -> topics that it reads while the run is live."""
        of_group = {group: stage for stage, group in self.groups.items()}
        return {of_group.get(group, group): topics for group, topics in reads_of_live(self.names).items()}

    @property
    def own_reads(self) -> Mapping[str, Sequence[str]]:
        """Stage -> topics, of the audited stages; all stages if the run is live."""
        own = {"judge", "tally", *(("measure",) if self.run.remeasures else ())}
        return {stage: topics for stage, topics in self.reads.items() if self.is_live or stage in own}

    @property
    def works_for(self) -> Mapping[str, str]:
        """Stage -> name of the run that it serves; other stages serve all runs."""
        run = self.run.name
        return {"measure": measuring_run(self.names.features), "judge": run, "tally": run}

    def step_of(self, topic: str) -> str:
        """The step that reads records of the topic."""
        into = {HITS: CRAWLED, PAGES: MEASURED, self.names.features: JUDGED, self.names.verdicts: SCORED}
        step = into.get(topic, SCORED if topic.startswith("score.") else TALLIED)
        return step if step in self.steps else TALLIED


def find_scope(log: Log, control: Control, name: str) -> AuditScope:
    """The scope for this run (default: the live run). Raises NotFound if it is unknown or has no topics."""
    run = find_run(control, name) if name else control.live or FIRST_RUN
    is_live = run.name == control.alias.run
    names = run.names(is_live=is_live)
    missing = [topic for topic in (names.features, names.verdicts, names.sites) if topic not in log.topics()]
    if missing:
        raise NotFound(f"run {run.shown} has no topic {missing[0]} yet: nothing to audit")
    steps = LIVE_STEPS if is_live else (MEASURED, *RUN_STEPS) if run.remeasures else RUN_STEPS
    return AuditScope(run, is_live, names, steps, len(control.runs) <= 1)


_UNREAD = msgspec.Raw(b"\xc0")
_HEAVY = (
    *("body", "text", "blocks", "rules", "failed", "measures", "quality", "structure"),
    *("headers", "title", "snippet", "query"),
)


def slim(record: R) -> R:
    """The record without its large fields, to save memory."""
    heavy = {
        name: _UNREAD if isinstance(value, msgspec.Raw) else type(value)()
        for name in _HEAVY
        if (value := getattr(record, name, None))
    }
    return msgspec.structs.replace(record, **heavy) if heavy else record
