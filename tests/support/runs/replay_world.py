"""The log of a live farmwatch, made quickly: generated features, judged, scored and tallied by the live stages.

The live stages can continue while a replay works.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import xxhash

from farmwatch.config.config import Config, load
from filters.measure.epoch import feature_epoch
from filters.rules.ruleset import Ruleset, parse_ruleset
from filters.stages.judge import JudgeStage
from replay.engine.lifecycle import begin
from replay.engine.plan import ReplayRequest, plan
from replay.engine.runner import Ending, Replay, ReplayStatus, Tempo
from scoring.stages.score import score_key
from scoring.stages.tally import TallyStage
from stream.log.contract import At, Log, Output, partition_of
from stream.memory.log import MemoryLog
from stream.processing.heartbeat import HEADER, KEY, is_heartbeat
from stream.processing.loop import LoopSettings, StageLoop
from stream.processing.metrics import Metrics
from stream.processing.stage import Stage
from stream.schema.control import Control, ControlWriter, Scorers, exclusive, write_scorers
from stream.schema.records import Features, Hit, Record, Score, ScoreRequest, SiteState, Verdict, decode, encode
from stream.schema.runs import Alias, Cutover, Run, names_of
from stream.schema.topics import FEATURES, HITS, REPLAY_REQUESTS, SCORE_REQUESTS, SCORES, SITES, VERDICTS, all_topics
from tests.support.limits import with_limits
from tests.support.pages.page_records import text_score
from tests.support.waiting import wait_until

PARTITIONS = 3
DETECTOR = "fake/1"
OTHER_DETECTOR = "fake/2"
_TEXT = "the river rose over night and nobody slept until noon when it had gone down again"
_WORDS = _TEXT.split()


def rules(least: int) -> Ruleset:
    """A ruleset for articles of at least this many tokens."""
    return parse_ruleset(rules_text(least), f"rules-{least}")


def rules_text(least: int) -> str:
    return f'[rules.extracted]\nthreshold = "ok"\n[rules.min_tokens]\nthreshold = {least}\n'


def config_of(url: str, *flags: str) -> Config:
    """A configuration without files and environment."""
    given = [f"log.url={url}", f"log.partitions={PARTITIONS}", "metrics.port=0", *flags]
    config = load(None, given, {}).config
    return msgspec.structs.replace(config, loop=with_limits(config.loop, lag_every_s=0.2))


def features_of_pages(sites: int, pages: int, epoch: str, seed: int = 1) -> list[Features]:
    """Features of `pages` pages of each site, fetched in turns; a tenth of the texts have two addresses."""
    chance = random.Random(seed)
    found = []
    for number in range(sites * pages):
        site = f"s{number % sites}.example"
        tokens = chance.randrange(1, 100)
        text = " ".join(chance.choice(_WORDS) for _ in range(tokens)) if number % 10 else f"the same of {site}"
        found.append(
            Features(
                id=f"f{number}",
                site=site,
                page_id=f"p{number // 2 if number % 20 == 0 else number}",
                url=f"https://{site}/{number}",
                epoch=epoch,
                text=text,
                text_digest=xxhash.xxh3_128_hexdigest(text.encode()),
                measures={"tokens": float(tokens)},
                fetched_at=1000 + number,
            )
        )
    return found


def pages_later(world: LiveWorld, seed: int = 2, *, sites: int, pages: int) -> list[Features]:
    """New pages of the same sites."""
    more = features_of_pages(sites, pages, world.epoch, seed=seed)
    return [msgspec.structs.replace(page, id=f"n{page.id}", page_id=f"n{page.page_id}") for page in more]


def output(topic: str, record: Record, key: str = "", **headers: str) -> Output:
    return Output(topic, partition_of(record.site, PARTITIONS), (key or record.site).encode(), encode(record), headers)


class LiveWorld:
    """A log with a live run by `rules(least)`, fully caught up; its crawl is over unless `feed` adds to it."""

    def __init__(
        self, log: Log, config: Config, *, least: int = 20, epoch: str | None = None, ruleset: Ruleset | None = None
    ) -> None:
        """Create the topics and the row of the live run."""
        self.log = log
        self.config = config
        self.url = config.log.url
        self.ruleset = ruleset or rules(least)
        self.metrics = Metrics()
        self.epoch = epoch or feature_epoch(config.measure)
        log.create(all_topics(PARTITIONS, feature_epoch(config.measure)))
        row = Run(
            name="live", ruleset=self.ruleset.name, digest=self.ruleset.digest, detector=DETECTOR, epoch=self.epoch
        )
        put_rows(log, row, Alias(), rulesets=[(row.digest, self.ruleset.source)])
        self.fed: list[str] = []  # ids of features
        self.tempo = Tempo()  # of its replays
        self.rules = ""  # a file with another ruleset
        self._score_starts = 0
        self._scored: dict[str, list[int]] = {}
        self.score_runs(DETECTOR, OTHER_DETECTOR)

    def score_runs(self, *detectors: str) -> None:
        """Announce these as the detectors of SCORE."""
        self.detectors = detectors
        self._score_starts += 1
        write_scorers(self.log, Scorers(detectors=list(detectors), at=self._score_starts))

    def feed(self, features: Sequence[Features], *, header: bool = True) -> None:
        """Append hits and features of these pages, and then a heartbeat in each partition."""
        outputs = []
        for record in features:
            hit = Hit(id=f"h{record.id}", site=record.site, url=record.url, query_id="q", rank=1 + len(record.id))
            outputs.append(output(HITS, hit))
            headers = {"feature_epoch": record.epoch} if header else {}
            outputs.append(output(FEATURES, record, **headers))
        beats = [Output(FEATURES, partition, KEY, b"", {HEADER: "1"}) for partition in range(PARTITIONS)]
        self.log.append([*outputs, *beats])
        self.fed += [record.id for record in features]

    def carry_on(self, share_scored: float = 1.0) -> None:
        """Run the live stages to the ends of their topics; a share of the texts gets a score."""
        self.run_stage(JudgeStage(self.ruleset), "judge")
        self.score(share_scored)
        self.run_stage(TallyStage(DETECTOR, self.config.tally), "tally")

    def score(self, share: float = 1.0, topics: Sequence[str] = (SCORE_REQUESTS, REPLAY_REQUESTS)) -> int:
        """Score this share of the new requests; returns the number of new requests.

        As in SCORE, all of them count as processed, and those for another detector get no answer.
        """
        outputs, asked = [], 0
        for topic in topics:
            start = self._scored.setdefault(topic, [0] * PARTITIONS)
            for partition in range(PARTITIONS):
                for message in self.log.read(topic, partition, start[partition]):
                    start[partition] = message.offset + 1
                    if is_heartbeat(message):
                        continue
                    asked += 1
                    request = decode(ScoreRequest, message.value or b"")
                    if request.detector not in ("", *self.detectors):
                        continue
                    if int(request.text_digest[:8], 16) / 2**32 < share:
                        for detector in self.detectors:
                            made = score_of(request, detector)
                            outputs.append(output(SCORES, made, score_key(made)))
        self.log.append(outputs)
        for topic in topics:
            self.log.reset("score", topic, self._scored[topic])
        return asked

    def run_stage(self, stage: Stage, group: str) -> None:
        run_stage(self.log, stage, group, self.metrics, self.config.loop)

    def begin(self, **asked: Any) -> tuple[Run, Ruleset]:
        planned = plan(self.log, Control(self.log), self.config, ReplayRequest(**asked))
        return begin(self.log, planned), planned.ruleset

    def replay(self, *, stop: threading.Event | None = None, metrics: Metrics | None = None, **asked: Any) -> Ending:
        return self.resume(*self.begin(**asked), stop=stop or threading.Event(), metrics=metrics or Metrics())

    def resume(self, run: Run, ruleset: Ruleset, member: str = "m", **more: Any) -> Ending:
        given = {"metrics": Metrics(), "stop": threading.Event(), "full_speed": True, "tempo": self.tempo, **more}
        return Replay(self.log, self.config, run, ruleset, member, **given).run()

    def rules_file(self, least: int) -> str:
        """A file with `rules(least)`."""
        return write_rules(Path(self.url.removeprefix("sqlite:")).parent, least)

    def row(self, run: str) -> Run:
        return Control(self.log).runs[run]

    def alter(self, run: str, **fields: Any) -> None:
        """Write a run's row with other fields."""
        put_rows(self.log, msgspec.structs.replace(self.row(run), **fields))

    def outcome(self, run: str = "live") -> tuple[list[Verdict], dict[str, SiteState]]:
        """Every verdict of a run in log order, and the newest row of each site, without clock and run."""
        return verdicts_of(self.log, run), rows_of(self.log, run)

    def live_traces(self) -> dict[str, Any]:
        """State that a replay must not change: ends of the live topics, offsets of the live groups."""
        of_live = (HITS, FEATURES, VERDICTS, SITES, SCORE_REQUESTS, "decisions", "templates")
        ends = {topic: self.log.end(topic) for topic in of_live}
        offsets = {
            (group, topic): self.log.committed(group, topic)
            for group, topic in (("judge", FEATURES), ("tally", HITS), ("tally", VERDICTS), ("tally", SCORES))
        }
        return {"ends": ends, "offsets": offsets}


def live_world(
    folder: Path, sites: int, pages: int, log: Log | None = None, *, detectors: Sequence[str] = ()
) -> LiveWorld:
    """A log (default: in memory) with this many live-judged pages of this many sites, all texts scored.

    `detectors` are those of SCORE, by default both; `rules-5.toml` is in the folder.
    """
    world = LiveWorld(log or MemoryLog(), config_of(f"sqlite:{folder / 'log'}"))
    if detectors:
        world.score_runs(*detectors)
    world.feed(features_of_pages(sites, pages, world.epoch))
    world.carry_on()
    world.rules = write_rules(folder, 5)
    return world


class Working:
    """A replay in a thread, and its messages."""

    def __init__(
        self,
        world: LiveWorld,
        begun: tuple[Run, Ruleset],
        on_message: Callable[[str], None] = lambda _: None,
        **more: Any,
    ) -> None:
        self.heard: list[str] = []
        self.looks = 0  # rows of `control`
        self._stop = threading.Event()
        self._ending: Ending | None = None

        def hear(text: str) -> None:
            self.heard.append(text)
            on_message(text)

        def look(_: ReplayStatus) -> None:
            self.looks += 1

        def work() -> None:
            self._ending = world.resume(*begun, stop=self._stop, on_message=hear, **{"on_progress": look, **more})

        self._thread = threading.Thread(target=work, daemon=True)
        self._thread.start()

    @property
    def runs(self) -> bool:
        return self._thread.is_alive()

    def said(self, words: str) -> int:
        return sum(words in text for text in self.heard)

    def patiently(self, words: str, times: int = 1) -> None:
        wait_until(lambda: self.said(words) >= times, f"'{words}', {times} times", every_s=0.01)

    def sees_control(self) -> None:
        """Wait until the replay has seen the present `control`."""
        before = self.looks
        wait_until(lambda: self.looks >= before + 2, "a look at control", every_s=0.01)

    def end(self) -> Ending | None:
        self._thread.join(20)
        assert not self.runs
        return self._ending

    def stop(self) -> Ending | None:
        """End the replay as a signal does."""
        self._stop.set()
        return self.end()


def run_stage(
    log: Log, stage: Stage, group: str, metrics: Metrics | None = None, settings: LoopSettings | None = None
) -> None:
    """Run a stage until its input is processed."""
    stage.poll_s = 0.01
    inputs = list(stage.inputs)
    member = log.join(group, inputs, member="m", store=stage.store, background=stage.background)
    loop = StageLoop(stage, member, metrics=metrics or Metrics(), settings=settings or LoopSettings())
    stop = threading.Event()
    while loop.cycle(stop) or not at_end(log, group, inputs):
        pass
    stop.set()
    loop.run(stop)


def at_end(log: Log, group: str, topics: Sequence[str]) -> bool:
    """Whether a group has read all of these topics; on Kafka, markers may follow the last record."""
    ranges = {}
    for topic in topics:
        ends = log.end(topic)
        for partition, done in enumerate(log.committed(group, topic)):
            ranges[At(topic, partition)] = done or 0, ends[partition]
    return next(log.read_all(ranges), None) is None


@contextmanager
def measuring_otherwise(world: LiveWorld) -> Iterator[None]:
    """A configuration with another feature epoch, under which the tests' pages measure the same."""
    before = world.config
    measure = msgspec.structs.replace(before.measure, max_elements=before.measure.max_elements - 1)
    world.config = msgspec.structs.replace(before, measure=measure)
    try:
        yield
    finally:
        world.config = before


def requests_of(world: LiveWorld, run: str = "", topic: str = REPLAY_REQUESTS) -> list[tuple[str, str]]:
    """(site, text digest) of each request of a run, or of all runs."""
    found = []
    for partition in range(PARTITIONS):
        for message in world.log.read(topic, partition):
            if not is_heartbeat(message):
                request = decode(ScoreRequest, message.value or b"")
                if run in ("", request.run):
                    found.append((request.site, request.text_digest))
    return found


def score_of(request: ScoreRequest, detector: str = DETECTOR) -> Score:
    """The stand-in detector's score of a text, by its digest."""
    flag = int(request.text_digest[-2:], 16) % 3 == 0
    ids = request.page_id, request.id
    return text_score(request.site, request.text_digest, detector, flag, *ids, score=1.0 if flag else 0.0)


def verdicts_of(log: Log, run: str) -> list[Verdict]:
    """Every verdict of a run, without clock and run."""
    topic = names_of(run).verdicts
    return [
        msgspec.structs.replace(decode(Verdict, message.value or b""), judged_at=0, run="")
        for partition in range(log.topics()[topic])
        for message in log.read(topic, partition)
        if not is_heartbeat(message)
    ]


def rows_of(log: Log, run: str) -> dict[str, SiteState]:
    """The newest row of each site, without clock and run."""
    topic = names_of(run).sites
    found = {}
    for partition in range(log.topics()[topic]):
        for message in log.read(topic, partition):
            row = decode(SiteState, message.value or b"")
            found[row.site] = msgspec.structs.replace(row, updated_at=0, run="")
    return found


def write_rules(folder: Path, least: int) -> str:
    file = folder / f"rules-{least}.toml"
    file.write_text(rules_text(least))
    return str(file)


def put_rows(log: Log, *rows: Run | Alias | Cutover, rulesets: Sequence[tuple[str, str]] = ()) -> None:
    """Write rows of `control`."""
    with exclusive(log) as writer:
        writer.put(*rows, rulesets=rulesets)


def count_writers(monkeypatch: pytest.MonkeyPatch) -> list[Log]:
    """The logs with an update of `control`, one entry for each attempt from now on."""
    taken: list[Log] = []

    def counting(log: Log) -> AbstractContextManager[ControlWriter]:
        taken.append(log)
        return exclusive(log)

    monkeypatch.setattr("replay.runs.control_update.exclusive", counting)
    return taken
