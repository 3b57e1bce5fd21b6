"""TALLY folds a batch site by site: rows equal those of single records, and only the failing record fails."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scoring.interface import PageScore, SiteVerdict
from scoring.sites.registry import SiteMethod, site_method
from scoring.sites.settings import TallySettings
from scoring.stages.site_tally import SiteTally
from scoring.stages.tally import TallyStage
from stream.log.contract import Commit, Log, Output, StateChange, Topic
from stream.log.sql_state import MemoryState
from stream.memory.log import MemoryLog
from stream.processing.loop import LoopSettings, StageLoop
from stream.processing.metrics import Meter, Metrics
from stream.processing.stage import Context
from stream.processing.state import KeyedState
from stream.schema.records import Decision, Hit, Record, Score, SiteState, Verdict, decode, encode
from stream.schema.runs import names_of
from stream.schema.topics import DECISIONS, HITS, SCORES, SITES, VERDICTS, all_topics
from tests.support.limits import with_limits
from tests.support.logs.tally_desk import DETECTOR, SPRT, hit, page, score
from tests.support.sizes import LONG

pytestmark = pytest.mark.slow

SETTINGS = TallySettings(sprt=SPRT)
SITES_KNOWN = ("a.example", "b.example", "c.example")
RUN = "r1"
NAMES = names_of(RUN)
QUICK = with_limits(LoopSettings(), linger_s=0.0, backoff_s=0.001)


@st.composite
def sites(draw: st.DrawFn) -> list[Record]:
    """Records of three sites in order of arrival: pages fetched again, shared texts, repeated hits."""
    found: list[Record] = []
    for _ in range(draw(st.integers(1, 40))):
        number, text = draw(st.integers(0, 6)), f"t{draw(st.integers(0, 8))}"
        kind = draw(st.sampled_from("hpppsss"))
        record: Record
        if kind == "h":
            record = hit(number, draw(st.integers(0, 9)), draw(st.sampled_from("ab")), at=number)
        elif kind == "p":
            record = page(number, article=draw(st.integers(0, 4)) > 0, text=text, visit=draw(st.integers(1, 3)))
        else:
            record = score(text, draw(st.none() | st.booleans()), draw(st.sampled_from([DETECTOR, DETECTOR, "fake/2"])))
        found.append(msgspec.structs.replace(record, site=draw(st.sampled_from(SITES_KNOWN))))
    return found


TOPIC_OF = {Hit: HITS, Verdict: VERDICTS, Score: SCORES}


def outputs(records: Iterable[Record], verdicts: str = VERDICTS) -> Iterator[Output]:
    """The records by topic, in order."""
    for record in records:
        topic = verdicts if isinstance(record, Verdict) else TOPIC_OF[type(record)]
        yield Output(topic, 0, record.site.encode(), encode(record), {"run": "live", "feature_epoch": "e"})


def memory_log() -> MemoryLog:
    """A log of one partition with the topics of the live run and of RUN."""
    log = MemoryLog(clock=lambda: 7)
    create(log)
    return log


def create(log: Log) -> None:
    """The topics of the live run and of RUN."""
    own = (NAMES.verdicts, NAMES.sites, f"state.{NAMES.tally_store}")
    log.create([*all_topics(1, "e"), *(Topic(name, 1) for name in own)])


@contextmanager
def loop_of(log: Log, stage: TallyStage, metrics: Metrics | None = None) -> Iterator[StageLoop]:
    """The stage's loop as a member of its run's group."""
    stage.poll_s = 0.001
    member = log.join(
        names_of(stage.run).tally_group,
        list(stage.inputs),
        member="one",
        store=stage.store,
        background=stage.background,
    )
    with closing(member):
        yield StageLoop(stage, member, metrics=metrics or Metrics(), settings=QUICK, clock=lambda: 7)


def work(log: Log, stage: TallyStage, metrics: Metrics | None = None) -> None:
    """Run the stage over all records."""
    with loop_of(log, stage, metrics) as loop:
        idle = 0
        while idle < 4:  # nor is a rolled-back batch a commit
            idle = 0 if loop.cycle(threading.Event()) else idle + 1


def in_batches(records: Sequence[Record], sizes: Iterable[int]) -> MemoryLog:
    """The live stage's outputs for batches of these sizes."""
    log = memory_log()
    stage = TallyStage(DETECTOR, SETTINGS)
    with loop_of(log, stage) as loop:
        loop.cycle(threading.Event())
        waiting = list(outputs(records))
        for size in sizes:
            log.append(waiting[:size])
            del waiting[:size]
            loop.cycle(threading.Event())
    return log


def last_rows(log: Log, topic: str = SITES) -> dict[str, SiteState]:
    """The last row of each site."""
    rows = [decode(SiteState, message.value) for message in log.read(topic, 0) if message.value]
    return {row.site: row for row in rows}


def newest(log: Log, topic: str = SITES) -> dict[str, SiteState]:
    """The last row of each site, without its time and run."""
    return {site: msgspec.structs.replace(row, updated_at=0, run="") for site, row in last_rows(log, topic).items()}


def updated(log: Log, topic: str) -> dict[str, tuple[int, str]]:
    """The time of the last change of each site's row, and its verdict."""
    return {site: (row.updated_at, row.verdict) for site, row in last_rows(log, topic).items()}


def counted(metrics: Metrics, label: str) -> Counter[str]:
    """Records that were counted, by a label."""
    found: Counter[str] = Counter()
    for sample in (sample for family in metrics.registry.collect() for sample in family.samples):
        if sample.value and sample.name == "farmwatch_stage_records_total":
            found[sample.labels[label]] += int(sample.value)
    return found


def decided(log: Log) -> list[Decision]:
    """All decisions."""
    return [decode(Decision, message.value) for message in log.read(DECISIONS, 0) if message.value]


@settings(max_examples=40 if LONG else 12)
@given(sites(), st.randoms(use_true_random=False))
def test_a_batch_leaves_the_rows_that_its_records_leave_one_by_one(records: list[Record], rng: random.Random) -> None:
    """Any batching gives the same last rows, tallies and decided sites, and at most one decision per site."""
    sizes = [rng.randint(1, 9) for _ in records]
    together, alone = in_batches(records, [*sizes, len(records)]), in_batches(records, [1] * len(records))
    assert newest(together) == newest(alone)
    assert stored(together) == stored(alone)
    sites_decided = [decision.site for decision in decided(together)]
    assert len(set(sites_decided)) == len(sites_decided)
    assert set(sites_decided) <= {decision.site for decision in decided(alone)}


def stored(log: MemoryLog) -> dict[bytes, object]:
    """TALLY's state without the reasons of decisions, which depend on batch boundaries."""
    found: dict[bytes, object] = {}
    for key, value in log.scan_state("tally", 0):
        if b"\0" in key:
            found[key] = value
        else:
            tally = SiteTally.load(value, SETTINGS.term_ms)
            tally.stopped = ""
            found[key] = tally.dump()
    return found


@settings(max_examples=40 if LONG else 12)
@given(sites(), st.randoms(use_true_random=False))
def test_a_replay_leaves_the_rows_of_the_live_run(records: list[Record], rng: random.Random) -> None:
    """A replay with hits and verdicts before scores gives the same rows as live."""
    live = in_batches(records, [rng.randint(1, 9) for _ in records] + [len(records)])
    replay = replayed(records, memory_log())
    assert newest(replay, NAMES.sites) == newest(live)
    assert decided(replay) == [] and newest(replay) == {}


def replayed(records: Sequence[Record], log: Log) -> Log:
    """The log after these records are replayed under RUN."""
    log.append(list(outputs(records, NAMES.verdicts)))
    work(log, TallyStage(DETECTOR, SETTINGS, RUN, names=NAMES, decides=False))
    return log


def articles(site: str, count: int = 6) -> list[Record]:
    """Enough flagged articles of a site to decide it."""
    records = [record for n in range(count) for record in (page(n), score(f"t{n}", True))]
    return [msgspec.structs.replace(record, site=site) for record in records]


def test_the_run_decides_once_it_is_live() -> None:
    """A replay does not mark sites as decided, so that a live run over its state decides at a site's next record."""
    with closing(MemoryLog()) as log:
        create(log)
        replayed(articles("a.example") + articles("b.example"), log)
        assert {row.verdict for row in newest(log, NAMES.sites).values()} == {"llm"}
        assert decided(log) == []
        log.append(list(outputs([msgspec.structs.replace(hit(1), site="a.example")])))
        work(log, TallyStage(DETECTOR, SETTINGS, RUN, names=names_of(RUN, is_live=True)))
        assert [(d.site, d.reason) for d in decided(log)] == [("a.example", "decided_llm")]
        assert {message.headers["run"] for message in log.read(NAMES.sites, 0)} == {RUN}


class Trap:
    """A site method that fails for the score 666."""

    def __init__(self, method: SiteMethod) -> None:
        self.name, self.digest, self.evidence = method.name, method.digest, method.evidence
        self._method = method

    def decide(self, pages: Sequence[PageScore]) -> SiteVerdict:
        """Judge, or fail."""
        if any(page.score == 666 for page in pages):
            raise ValueError("a number that no detector gives")
        return self._method.decide(pages)


@pytest.mark.parametrize("place", [0, 5, 11])
def test_a_record_that_fails_in_a_batch_is_buried_alone(place: int) -> None:
    """The rows are those of the other records, each counted once; the dead letter names the record and its error."""
    good = [*articles("a.example"), *articles("b.example", 3)]
    bad = msgspec.structs.replace(score("bad", True, number=666), site="a.example")
    page_of_bad = msgspec.structs.replace(page(9, text="bad"), site="a.example")
    log, metrics = memory_log(), Metrics()
    stage = TallyStage(DETECTOR, SETTINGS, method=Trap(site_method(SETTINGS, DETECTOR)))  # type: ignore[arg-type]
    log.append(list(outputs([page_of_bad])))
    work(log, stage, metrics)
    log.append(list(outputs([*good[:place], bad, *good[place:]])))
    work(log, stage, metrics)
    good = [page_of_bad, *good]
    assert newest(log) == newest(in_batches(good, [1] * len(good)))
    (letter,) = log.read("dead-letters", 0)
    assert letter.value == encode(bad) and "no detector gives" in letter.headers["error"]
    assert counted(metrics, "result") == {"article": 10, "score": 9}
    log.append(list(outputs(articles("c.example"))))
    rounds = len(list(log.read(SITES, 0)))
    work(log, stage)
    assert len(list(log.read(SITES, 0))) == rounds + 1, "the next batch is folded again"


def test_a_site_whose_tally_cannot_be_read_stops_no_other() -> None:
    """The records of an unreadable site are dead-lettered; another site in the batch is tallied."""
    log = memory_log()
    with loop_of(log, TallyStage(DETECTOR, SETTINGS)) as loop:
        loop.cycle(threading.Event())
        log.append(list(outputs([msgspec.structs.replace(hit(1), site="a.example")])))
        loop.cycle(threading.Event())
    spoil(log, b"a.example")
    log.append(list(outputs([*articles("a.example", 1), *articles("b.example", 2)])))
    work(log, TallyStage(DETECTOR, SETTINGS))
    assert newest(log)["b.example"].articles == 2
    assert len(list(log.read("dead-letters", 0))) == 2


def spoil(log: MemoryLog, key: bytes) -> None:
    """Put invalid bytes into the state."""
    member = log.join("tally", [HITS, VERDICTS, SCORES], member="one", store="tally")
    while 0 not in member.assignment():
        member.poll(0.001, 1, 1)
    member.commit(Commit(state={0: [StateChange(key, b"\xc1")]}))
    member.close()


@pytest.mark.parametrize("others", [True, False])
def test_rows_and_decisions_are_of_the_stage_s_own_ruleset(others: bool) -> None:
    """A score that a replay requested carries its run and ruleset; the live run's rows and counts keep their own."""
    log, metrics = memory_log(), Metrics()
    records = [Output(o.topic, o.partition, o.key, o.value, {"ruleset": "d1"}) for o in outputs(articles("a.example"))]
    asked = {"run": "strict", "ruleset": "d9"} if others else {}
    log.append([Output(o.topic, 0, o.key, o.value, {**o.headers, **asked}) for o in records])
    work(log, TallyStage(DETECTOR, SETTINGS), metrics)
    for topic in (SITES, DECISIONS):
        headers = [message.headers for message in log.read(topic, 0)]
        assert headers and {(of["run"], of["ruleset"]) for of in headers} == {("live", "d1")}
    assert set(counted(metrics, "run")) == {"first"}


CANARY = "novels.5f0c2a91d3b7e604.6.20405.llm.canary.invalid"


@pytest.mark.parametrize(("flag", "verdict"), [(True, "llm"), (None, "unclassifiable")])
def test_a_canary_is_as_old_as_its_pages(flag: bool | None, verdict: str) -> None:
    """A canary's row has the time of its newest fetch, decided or not, in a replay and live.

    Other rows have the current time.
    """
    records = [
        msgspec.structs.replace(record, site=site)
        for site in (CANARY, "a.example")
        for n in range(6)
        for record in (page(n, visit=n + 1), score(f"t{n}", flag))
    ]
    replay = updated(replayed(records, memory_log()), NAMES.sites)
    assert replay == {CANARY: (6, verdict), "a.example": (7, verdict)}
    live = memory_log()
    live.append(list(outputs(records)))
    work(live, TallyStage(DETECTOR, SETTINGS))
    assert updated(live, SITES) == {CANARY: (6, verdict), "a.example": (7, verdict)}


def test_a_canary_of_which_a_replay_knows_no_page_is_no_new_one() -> None:
    """A canary with scores but no page in the replay has an old time: scores may be older than the first page."""
    log = replayed([msgspec.structs.replace(score("t1", True), site=CANARY)], memory_log())
    assert updated(log, NAMES.sites) == {CANARY: (0, "unclassifiable")}


def test_a_score_that_comes_late_makes_no_old_round_new() -> None:
    """Late scores of old canaries after a cutover change their rows but not the rows' times."""
    early = [msgspec.structs.replace(page(n, visit=n + 1), site=CANARY) for n in range(6)]
    late = [msgspec.structs.replace(score(f"t{n}", True), site=CANARY) for n in range(6)]
    log = replayed(early, memory_log())
    assert updated(log, NAMES.sites) == {CANARY: (6, "unclassifiable")}
    log.append(list(outputs(late, NAMES.verdicts)))
    work(log, TallyStage(DETECTOR, SETTINGS, RUN, names=names_of(RUN, is_live=True)))
    assert updated(log, NAMES.sites) == {CANARY: (6, "llm")}


class Away(Exception):
    """A transient error."""

    retriable = True


def test_a_batch_that_is_rolled_back_is_folded_once() -> None:
    """If a batch fails after its sites were judged, it is repeated, and the first attempt counts nothing."""
    records = articles("a.example") + articles("b.example", 2)
    failures = [Away("once"), Away("twice")]

    def canaries(contexts: Mapping[int, Context]) -> None:
        if contexts[0].outputs and failures:
            raise failures.pop()

    log, metrics = memory_log(), Metrics()
    log.append(list(outputs(records)))
    work(log, TallyStage(DETECTOR, SETTINGS, canaries=canaries), metrics)
    assert not failures
    assert newest(log) == newest(in_batches(records, [1] * len(records)))
    assert counted(metrics, "run").total() == len(records)


def test_what_is_lost_before_the_end_of_a_batch_is_not_judged() -> None:
    """Records that were folded and rolled back leave no row in the next tick."""
    stage, state = TallyStage(DETECTOR, SETTINGS), KeyedState(MemoryState())
    stage.process(page(1), None, Context(0, state, Meter(), 1))
    stage.lost([0])
    after = Context(0, KeyedState(MemoryState()), Meter(), 2)
    stage.tick({0: after})
    assert after.outputs == [] and not list(after.state.changes())
