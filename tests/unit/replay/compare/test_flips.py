"""The sample of flips: reproducible, with every kind of flip, and with the texts that the log has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from replay.compare.comparer import ComparisonRequest, compare
from replay.compare.comparison import IN, OUT, Comparison
from replay.compare.verdict_join import fetch_key
from scoring.rates.settings import RateSettings
from stream.log.contract import Log, Message, Topic
from stream.memory.log import MemoryLog
from stream.schema.records import Features
from stream.schema.runs import features_of
from stream.schema.topics import FEATURES
from tests.support.runs.two_runs import RULESETS, A, B, begin, page, put_features, put_run

SHORT, GERMAN, REPEATS = 40, 8, 2  # pages that flip, by what flips them
PAGES = [
    page(n, 70 if n < SHORT else 500, site=f"s{n % 7}.example", text=f"Text {n}. " * 30) for n in range(SHORT + 20)
] + [
    *(page(100 + n, language="de", site=f"s{n % 7}.example") for n in range(GERMAN)),
    *(page(200 + n, repeats=0.9, site=f"s{n}.example") for n in range(REPEATS)),
]


def filled(pages: Sequence[Features] = PAGES, texts: Sequence[Features] | None = None, log: Log | None = None) -> Log:
    """A log with two runs over the same pages, with their features unless `texts` are given."""
    log = log or MemoryLog()
    begin(log)
    put_features(log, pages if texts is None else texts)
    for name in (A, B):
        put_run(log, name, RULESETS[name], pages)
    return log


@pytest.fixture
def log() -> Log:
    return filled()


def compared(log: Log, sample: int, seed: int = 0) -> Comparison:
    return compare(log, A, B, ComparisonRequest(sample, seed, 100), RateSettings(), 10_000)


def test_every_kind_of_flip_has_its_turn(log: Log) -> None:
    """Kinds take turns, the largest first, until the sample is full; an exhausted kind leaves its turns to others."""
    found = compared(log, 9)
    assert [(one.kind, one.rule, one.flips, one.sampled) for one in found.strata] == [
        (OUT, "min_tokens", SHORT, 4),
        (IN, "language", GERMAN, 3),
        (OUT, "duplicate_share", REPEATS, 2),
    ]
    sampled = Counter((flip.kind, flip.rule) for flip in found.sample)
    assert sampled == {(one.kind, one.rule): one.sampled for one in found.strata}


def test_a_seed_gives_one_sample(log: Log) -> None:
    """The same seed gives the same pages in order; a larger sample contains the smaller.

    Within a kind, the pages with the smallest keys are taken, from any partition: so another seed gives other pages.
    """
    first, again, larger = (compared(log, size, 5).sample for size in (12, 12, 24))
    assert first == again == larger[:12]
    flips = [flip.fetch_id for flip in first if flip.rule == "min_tokens"]
    expected = sorted((features.id for features in PAGES[:SHORT]), key=lambda fetch: fetch_key(fetch, 5))
    assert flips == expected[: len(flips)] != [flip.fetch_id for flip in compared(log, 12, 2).sample][: len(flips)]


def test_a_flip_has_its_reasons_and_its_text(log: Log) -> None:
    """Each page has both verdicts, the failing rules with value and condition, and the judged text."""
    by_fetch = {features.id: features for features in PAGES}
    for flip in compared(log, 100).sample:
        features = by_fetch[flip.fetch_id]
        assert (flip.url, flip.site, flip.page_id) == (features.url, features.site, features.page_id)
        assert (flip.text, flip.text_digest) == (features.text, features.text_digest)
        assert {flip.verdict_a, flip.verdict_b} == {"article", "dropped"}
        failed = flip.failed_a if flip.kind == IN else flip.failed_b
        assert failed[0].name == flip.rule
        assert (failed[0].op, failed[0].threshold) == {
            "min_tokens": (">=", 100),
            "language": ("in", ["en"]),
            "duplicate_share": ("<=", 0.3),
        }[flip.rule]
        value = features.measures[{"min_tokens": "tokens"}.get(flip.rule, flip.rule)]
        assert failed[0].value == value


def test_expired_texts_are_none() -> None:
    """A page with expired features is in the sample without a text, the others with theirs."""
    log = filled(texts=[features for features in PAGES if not features.id.endswith("1")])
    sample = compared(log, 100).sample
    assert len(sample) == SHORT + GERMAN + REPEATS
    assert all((flip.text is None) == flip.fetch_id.endswith("1") for flip in sample)
    assert all(flip.text_digest == "" for flip in sample if flip.text is None)


def test_texts_are_those_that_b_judged() -> None:
    """If B measured again, its texts are shown; where they are missing, those of A."""
    log = MemoryLog()
    begin(log)
    topic = features_of(B)
    put_features(log, PAGES)
    put_run(log, A, RULESETS[A], PAGES)
    anew = [page(n, 70, site=f"s{n % 7}.example", text=f"Anew {n}.") for n in range(SHORT)]
    log.create([Topic(topic, log.topics()["features"])])
    put_features(log, anew[:-1], topic)
    put_run(log, B, RULESETS[B], anew, features=topic, remeasures=True, epoch="e2")
    found = compared(log, 100)
    texts = {flip.fetch_id: flip.text for flip in found.sample}
    assert texts["fetch-3"] == "Anew 3."
    assert texts[f"fetch-{SHORT - 1}"] == PAGES[SHORT - 1].text


def test_features_between_sampled_pages_are_skipped() -> None:
    """Features are read from the time of a fetch on, not all of them; late ones are found too."""
    now = [0]
    log = _Counting(clock=lambda: now[0])
    begin(log)
    hours = [msgspec.structs.replace(features, fetched_at=3_600_000 * n) for n, features in enumerate(PAGES)]
    late = hours[3]  # as an import is: measured when all others were
    for features in (*hours[:3], *hours[4:], late):
        now[0] = max(now[0], features.fetched_at + 5_000)
        put_features(log, [features])
    for name in (A, B):
        put_run(log, name, RULESETS[name], hours)
    few = compared(log, 3).sample
    texts = {features.id: features.text for features in PAGES}
    assert [flip.text for flip in few] == [texts[flip.fetch_id] for flip in few]
    assert log.features_read < len(PAGES) / 2
    assert all(flip.text for flip in compared(log, 100).sample)


def test_texts_and_verdicts_are_found_in_few_passes() -> None:
    """With a sample of any size, few times are looked up, and nearby verdicts are read in one pass."""
    pages = [page(n, 70, site=f"s{n % 7}.example", text=f"Text {n}.") for n in range(300)]
    filled(pages, log=(log := _Counting()))
    compared(log, 0)
    before = log.readers[f"verdicts.{A}"]
    sample = compared(log, 300).sample
    assert {flip.fetch_id: flip.text for flip in sample} == {features.id: features.text for features in pages}
    assert 0 < log.looked_up <= 32
    # the same as without a sample, and one reader of each partition
    assert log.readers[f"verdicts.{A}"] - before == before + log.topics()[FEATURES]


def test_a_huge_text_is_cut_and_says_by_how_much(log: Log) -> None:
    """Texts have a cap, with the number of cut characters and the digest of the whole."""
    huge = page(900, 70, text="x" * 200_007)
    put_features(log, [huge])
    for name in (A, B):
        put_run(log, name, RULESETS[name], [huge])
    sample = {flip.fetch_id: flip for flip in compared(log, 100).sample}
    flip = sample.pop(huge.id)
    assert (flip.text, flip.text_cut, flip.text_digest) == ("x" * 200_000, 7, huge.text_digest)
    assert all(other.text_cut == 0 for other in sample.values())


class _Counting(MemoryLog):
    """Counts the features read, the readers of each topic, and the times looked up."""

    features_read = 0
    looked_up = 0

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.readers: Counter[str] = Counter()

    def offset_at(self, topic: str, time_ms: int) -> list[int]:
        self.looked_up += 1
        return super().offset_at(topic, time_ms)

    def read(self, topic: str, partition: int, start: int = 0, stop: int | None = None) -> Iterator[Message]:
        self.readers[topic] += 1
        for message in super().read(topic, partition, start, stop):
            self.features_read += topic == FEATURES
            yield message
