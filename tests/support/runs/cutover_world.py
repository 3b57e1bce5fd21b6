"""A world for cutovers on either log: numbered features, rulesets, and replays."""

from __future__ import annotations

import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from crawler.frontier.page_log import page_headers
from crawler.web.urls import page_id
from farmwatch.config.config import Config, load
from farmwatch.config.opening import open_configured
from farmwatch.config.topic_limits import create_topics
from filters.measure.epoch import feature_epoch
from filters.rules.ruleset import Ruleset, load_ruleset
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from filters.stages.judge import JudgeStage
from replay.engine.lifecycle import begin
from replay.engine.plan import ReplayRequest, plan
from replay.engine.runner import Ending, Replay, Tempo
from replay.live.live_run import ensure_live_run
from replay.runs.phases import topics_of
from scoring.stages.tally import TallyStage
from stream.log.contract import Log, Output, partition_of
from stream.memory.log import MemoryLog
from stream.processing.metrics import Metrics
from stream.processing.stage import Stage
from stream.schema.control import Control
from stream.schema.records import Features, Hit, Verdict, decode, encode
from stream.schema.roles import Role
from stream.schema.runs import Run, RunNames, RunStatus
from stream.schema.topics import FEATURES, HITS, PAGES
from tests.support.front_door import PARTITIONS, article_html
from tests.support.kafka_broker import broker
from tests.support.pages.extraction_here import extract_here
from tests.support.pages.page_records import fetched_page
from tests.support.processes.roles_here import roles_at_work
from tests.support.runs.replay_world import at_end, put_rows, run_stage

DETECTOR = "some-detector/1/x"
OTHER = "notes"  # a ruleset that differs from the default one


@cache
def _measured(words: int) -> Features:
    return Measurer(MeasureSettings()).measure("http://a.example/garden", article_html(words), "a.example", page_id="p")


@dataclass
class CutoverWorld:
    """A log, its configuration, and its records."""

    log: Log
    config: Config
    put: list[str] = field(default_factory=list)  # ids of features, in the order in which they were appended
    tempo: Tempo = field(default_factory=Tempo)  # of its replays

    def features(self, number: int, site: str = "") -> None:
        """Append this many features records of ten sites; every third page is too short for an article."""
        outputs = []
        for _ in range(number):
            place = len(self.put)
            name = site or f"s{place % 10}.example"
            url = f"http://{name}/{place}"
            features = msgspec.structs.replace(
                _measured(3 if place % 3 == 0 else 400), id=f"f{place}", site=name, url=url, page_id=page_id(url)
            )
            partition = partition_of(name, PARTITIONS)
            hit = Hit(id=f"h{place}", site=name, url=url)
            outputs.append(Output(HITS, partition, name.encode(), encode(hit)))
            outputs.append(Output(FEATURES, partition, name.encode(), encode(features)))
            self.put.append(features.id)
        self.log.append(outputs)

    def pages(self, number: int) -> None:
        """Append this many pages of ten sites, with their hits; every third page is too short for an article."""
        outputs = []
        for place in range(len(self.put), len(self.put) + number):
            name, url = f"s{place % 10}.example", f"http://s{place % 10}.example/{place}"
            page = fetched_page(url, article_html(3 if place % 3 == 0 else 220), id=f"f{place}")
            partition, key = partition_of(name, PARTITIONS), name.encode()
            outputs.append(Output(HITS, partition, key, encode(Hit(id=f"h{place}", site=name, url=url))))
            outputs.append(Output(PAGES, partition, key, encode(page), page_headers(page)))
            self.put.append(page.id)
        self.log.append(outputs)

    def begin_live(self) -> Run:
        return ensure_live_run(self.log, self.config, by="test").run

    def begin(self, name: str, ruleset: str = OTHER, **fields: Any) -> Run:
        rules = load_ruleset(ruleset)
        given = {"epoch": feature_epoch(self.config.measure), **fields}
        run = Run(name=name, ruleset=rules.name, digest=rules.digest, detector=DETECTOR, **given)
        self.log.create(topics_of(run, PARTITIONS))
        put_rows(self.log, run, rulesets=[(rules.digest, rules.source)])
        return run

    def replay(self, run: Run) -> None:
        """Judge and tally all records as the run, and mark it as done."""
        names = run.names()
        self.work(names.judge_group, JudgeStage(load_ruleset(run.ruleset), run=run.name, names=names))
        self.work(names.tally_group, TallyStage(DETECTOR, run=run.name, names=names, decides=False))
        put_rows(self.log, msgspec.structs.replace(run, state=RunStatus.DONE))

    def plan_run(self, name: str, **asked: str) -> tuple[Run, Ruleset]:
        planned = plan(self.log, self.control(), self.config, ReplayRequest(ruleset=OTHER, name=name, **asked))
        return begin(self.log, planned), planned.ruleset

    def resume(self, run: Run, ruleset: Ruleset, **more: Any) -> Ending:
        given = {"metrics": Metrics(), "stop": threading.Event(), "full_speed": True, "tempo": self.tempo, **more}
        return Replay(self.log, self.config, run, ruleset, "replay-1", **given).run()

    def work(self, group: str, stage: Stage) -> None:
        """Run a stage until its group is at the ends."""
        run_stage(self.log, stage, group)

    def at_end(self, group: str, topics: list[str]) -> bool:
        return at_end(self.log, group, topics)

    def verdicts(self, names: RunNames) -> list[Verdict]:
        found = (m for partition in range(PARTITIONS) for m in self.log.read(names.verdicts, partition))
        return [decode(Verdict, message.value) for message in found if message.value]

    def judged(self, names: RunNames) -> Counter[str]:
        return Counter(verdict.id for verdict in self.verdicts(names))

    def passed(self, group: str) -> set[str]:
        found = set()
        for partition, offset in enumerate(self.log.committed(group, FEATURES)):
            for message in self.log.read(FEATURES, partition, 0, offset or 0):
                found.add(decode(Features, message.value or b"").id)
        return found

    def control(self) -> Control:
        return Control(self.log)

    @contextmanager
    def live(self, *roles: Role) -> Iterator[dict[Role, Metrics]]:
        """The roles in threads of this process, drained at the end; returns their metrics."""
        metrics = {role: Metrics() for role in roles}
        with roles_at_work(self.config, metrics):
            yield metrics


def config_of(url: str, *flags: str) -> Config:
    """A small configuration; the detector needs no file."""
    numbers = "tally.sprt={p0=0.1, p1=0.6}"
    settings = [f"log.url={url}", f"log.partitions={PARTITIONS}", "metrics.port=0", f"tally.detector={DETECTOR}"]
    return load(None, [*settings, numbers, "score.detectors=lite-ngram", *flags], {}).config


class _Shared(MemoryLog):
    """A log that several roles of one process share."""

    def close(self) -> None:
        """Does nothing: other roles use the log."""


@contextmanager
def cutover_world(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[CutoverWorld]:
    """A world on a log of that kind: memory, embedded, kafka. Its MEASURE extracts in this process."""
    extract_here(monkeypatch)
    if kind == "kafka":
        place = [f"kafka:{broker()}", f"log.prefix=c{uuid.uuid4().hex[:8]}.", f"log.state_folder={folder / 'state'}"]
    else:
        place = [f"sqlite:{folder / 'log'}"]
    config = config_of(*place)
    if kind == "memory":
        shared = _Shared()
        monkeypatch.setattr("farmwatch.daemon.roles.open_configured", lambda _: shared)
        log: Log = shared
    else:
        log = open_configured(config)
    create_topics(log, config)
    try:
        yield CutoverWorld(log, config)
    finally:
        log.close()
