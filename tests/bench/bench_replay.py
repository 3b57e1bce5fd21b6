"""A bounded replay from `features`, JUDGE and TALLY over stored records, and a bare read of the same records.

The records are features of real labelled pages if the test data exists (FARMWATCH_TEST_DATA), otherwise of generated
texts; they repeat under other sites of 20 pages, 50 of which are in progress at once. Nine in ten articles have a
score. The bare read is a member's poll and the decoding, the lower bound of a replay.

Run: python -m tests.bench.bench_replay [RECORDS [kafka]]
"""

from __future__ import annotations

import gc
import itertools
import random
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import xxhash

from filters.measure.epoch import feature_epoch
from filters.rules.judgement import judge_and_text
from filters.rules.ruleset import load_ruleset
from filters.settings import MeasureSettings
from filters.site_memory.measurer import Measurer
from filters.stages.judge import JudgeStage, requested_store
from replay.engine.runner import BATCH_BYTES, RECORDS
from replay.rows.scores import known_texts
from scoring.sites.settings import TallySettings
from scoring.sites.sprt import SprtParams
from scoring.stages.tally import TallyStage
from stream.embedded.log import EmbeddedLog
from stream.log.contract import CleanupPolicy, Log, Output, Topic, partition_of
from stream.processing.batch import decoded
from stream.processing.loop import StageLoop
from stream.processing.metrics import Metrics
from stream.processing.stage import Stage
from stream.schema.records import Features, Hit, encode
from stream.schema.runs import names_of
from stream.schema.topics import FEATURES, HITS, SCORES, all_topics
from stream.schema.vocabulary import PageClass
from tests.bench.timing import apart, argument, memory_mib
from tests.support.pages.page_records import text_score
from tests.support.paths import data_root
from tests.support.web.webs import labelled_pages

PARTITIONS = 24
SAMPLE = 300  # measured pages
SITE_PAGES, SITES_AT_ONCE = 20, 50
RUN = "bench"
NAMES = names_of(RUN)
DETECTOR = "fake/1"
_POLL_S = 0.05


class Spent(NamedTuple):
    """The cost of a phase, in seconds and MiB."""

    records: int
    wall_s: float
    cpu_s: float
    peaks: tuple[float, float]  # resident at 10% and at the end

    def line(self, what: str) -> str:
        early, late = self.peaks
        rate, of_cpu = self.records / self.wall_s, self.records / self.cpu_s
        return (
            f"  {what:12} {rate:8,.0f}/s wall, {of_cpu:8,.0f}/s of CPU; "
            f"resident peak {late:.0f} MiB, {late - early:+.0f} since 10% of the records"
        )


def base_features() -> tuple[list[Features], str]:
    """Features to repeat, and a description of their source."""
    measurer = Measurer(MeasureSettings())
    if (data_root() / "data").is_dir():
        web = labelled_pages(data_root(), every=7)
        pages = [(host, path, page.body) for host, paths in web.hosts.items() for path, page in paths.items()]
        what = "real"
    else:
        rng = random.Random(1)
        pages = [("a.example", f"/page-{number}", generated(rng)) for number in range(SAMPLE)]
        what = "generated"
    taken = itertools.islice(pages, SAMPLE)
    return [measurer.measure(f"http://{host}{path}", body, host, encoding="utf-8") for host, path, body in taken], what


def generated(rng: random.Random) -> bytes:
    """A page of HTML with a text of a thousand words."""
    words = [f"{start}{end}" for start in ("riv", "vill", "mark", "wint", "st") for end in ("er", "age", "et", "one")]
    text = "".join(f"<p>{' '.join(rng.choices(words, k=90)).capitalize()}.</p>" for _ in range(10))
    return f"<html><body><article><h1>The river</h1>{text}</article></body></html>".encode()


def many(features: list[Features], records: int) -> Iterator[Features]:
    """`records` features of different pages, those of SITES_AT_ONCE sites in turn."""
    block, rng = SITE_PAGES * SITES_AT_ONCE, random.Random(2)
    for number in range(records):
        site = f"s{number // block * SITES_AT_ONCE + number % SITES_AT_ONCE}.example"
        name = f"{number:032x}"
        one = rng.choice(features)
        yield msgspec.structs.replace(one, site=site, id=name, page_id=name, fetched_at=number)


def open_log(kind: str, where: str) -> Log:
    """A log of this kind: `where` is its folder, or broker and prefix."""
    if kind == "embedded":
        return EmbeddedLog(Path(where))
    from stream.kafka.log import KafkaLog

    address, prefix, folder = where.split(" ")
    return KafkaLog(address, prefix=prefix, state_folder=Path(folder))


def fill(kind: str, where: str, records: int, detector: str) -> tuple[str, int, float]:
    """Append features, hits and scores of `detector`.

    Returns their source, bytes of features, and share of articles.
    """
    log = open_log(kind, where)
    own = [Topic(NAMES.verdicts, PARTITIONS), Topic(NAMES.sites, PARTITIONS, CleanupPolicy.COMPACT)]
    stores = [Topic(f"state.{s}", PARTITIONS, CleanupPolicy.COMPACT) for s in (NAMES.tally_store, requested_store(RUN))]
    log.create([*all_topics(PARTITIONS, feature_epoch(MeasureSettings())), *own, *stores])
    base, what = base_features()
    ruleset = load_ruleset("default")
    articles = {f.text_digest for f in base if judge_and_text(f, ruleset)[0].verdict == PageClass.ARTICLE}
    size = 0
    outputs: list[Output] = []
    for number, features in enumerate(many(base, records)):
        place, key = partition_of(features.site, PARTITIONS), features.site.encode()
        outputs.append(Output(FEATURES, place, key, encode(features)))
        size += len(outputs[-1].value or b"")
        if number % SITE_PAGES == 0:
            hit = Hit(id=features.id, site=features.site, url=features.url, query_id=f"q{number % 100}", rank=1)
            outputs.append(Output(HITS, place, key, encode(hit)))
        if features.text_digest in articles and number % 10:
            outputs.append(_score(features, place, detector))
        if len(outputs) >= 500:
            log.append(outputs)
            outputs = []
    log.append(outputs)
    log.close()
    return what, size, len(articles) / len(base)


def _score(features: Features, place: int, detector: str) -> Output:
    digest = features.text_digest
    number = xxhash.xxh3_64_intdigest(digest.encode()) % 1000 / 1000
    ids, at = (features.page_id, features.id), features.fetched_at
    score = text_score(features.site, digest, detector, number > 0.6, *ids, score=number, fetched_at=at)
    return Output(SCORES, place, f"{features.site} {score.id}".encode(), encode(score))


def read_alone(kind: str, where: str, records: int) -> Spent:
    """A member's polls and the decoding, nothing else."""

    class Reading(Stage):
        name = "reading"
        inputs = {FEATURES: Features}  # noqa: RUF012 - as the stages have it

    log = open_log(kind, where)
    member, stage = log.join("reading", [FEATURES], member="bench"), Reading()

    def step() -> int:
        messages = member.poll(_POLL_S, RECORDS, BATCH_BYTES)
        decoded(stage, messages)
        return len(messages)

    spent = measured(step, records)
    member.close()
    log.close()
    return spent


def judge_phase(kind: str, where: str, records: int) -> tuple[Spent, str]:
    """JUDGE from the first to the last record, after the index of scores was read."""
    log = open_log(kind, where)
    started = time.perf_counter()
    known = known_texts(log, DETECTOR)
    known.load(range(PARTITIONS))
    index = f"index of scores read in {time.perf_counter() - started:.1f} s"
    stage = JudgeStage(load_ruleset("default"), run=RUN, known=known, replays=True, detector=DETECTOR)
    spent = staged(log, stage, NAMES.judge_group, records)
    log.close()
    return spent, index


def tally_phase(kind: str, where: str) -> Spent:
    """TALLY over hits, verdicts and scores; all are counted, and on Kafka a few markers."""
    log = open_log(kind, where)
    settings = TallySettings(sprt=SprtParams())
    stage = TallyStage(DETECTOR, settings, RUN, names=NAMES, decides=False)
    total = sum(sum(log.end(topic)) for topic in stage.inputs)
    spent = staged(log, stage, NAMES.tally_group, total)
    log.close()
    return spent


def staged(log: Log, stage: Stage, group: str, records: int) -> Spent:
    stage.poll_s, stage.max_records = _POLL_S, RECORDS
    member = log.join(group, list(stage.inputs), member="bench", store=stage.store, background=stage.background)
    metrics, stop = Metrics(), threading.Event()
    loop = StageLoop(stage, member, metrics=metrics, max_records=RECORDS, max_bytes=BATCH_BYTES)

    def seen() -> float:
        samples = (sample for family in metrics.registry.collect() for sample in family.samples)
        return sum(
            s.value for s in samples if s.name == "farmwatch_log_records_total" and s.labels["direction"] == "in"
        )

    before = 0.0

    def step() -> int:
        nonlocal before
        loop.cycle(stop)
        now = seen()
        read, before = now - before, now
        return int(read)

    spent = measured(step, records)
    member.close()
    return spent


def measured(step: Callable[[], int], records: int) -> Spent:
    """Step until no more records come; time begins with the first record."""
    gc.set_threshold(10_000)  # as in a stage's process
    while not (done := step()):
        pass
    wall, cpu = time.perf_counter(), time.process_time()
    begun, early = done, 0.0
    last = wall, cpu
    idle = 0
    while idle < 5:
        more = step()
        done += more
        idle = 0 if more else idle + 1
        if more:
            last = time.perf_counter(), time.process_time()
        if not early and done >= records / 10:
            early = memory_mib("VmHWM")
    return Spent(done - begun, last[0] - wall, last[1] - cpu, (early, memory_mib("VmHWM")))


def main() -> None:
    records = argument(1, 100_000)
    kind = "kafka" if "kafka" in sys.argv else "embedded"
    with tempfile.TemporaryDirectory() as folder:
        where = folder
        if kind == "kafka":
            from tests.support.kafka_broker import broker

            where = f"{broker()} bench{uuid.uuid4().hex[:8]}. {folder}"
        what, size, kept = apart(fill, kind, where, records, DETECTOR)
        print(
            f"{records:,} features of {what} pages, {size / records / 1024:.1f} KiB each, {kept:.0%} articles; {kind}"
        )
        bare = apart(read_alone, kind, where, records)
        print(bare.line("bare reading"), flush=True)
        judged, index = apart(judge_phase, kind, where, records)
        print(judged.line("JUDGE"), f"({index})", flush=True)
        tallied = apart(tally_phase, kind, where)
        print(tallied.line("TALLY"), f"({tallied.records:,} records)")
    pages, wall, cpu = records, judged.wall_s + tallied.wall_s, judged.cpu_s + tallied.cpu_s
    print(f"  both phases  {pages / wall:8,.0f} pages/s wall, {pages / cpu:8,.0f} of CPU")
    share = bare.cpu_s / judged.cpu_s
    print(f"  of JUDGE's CPU {share:.0%} is reading; JUDGE takes {1 / share:.1f} times the bare reading")


if __name__ == "__main__":
    main()
