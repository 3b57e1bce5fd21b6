"""A reproducible sample of flips, with their verdicts and texts.

Each kind of flip is a stratum: in or out, by the first rule that failed. The strata take turns, the largest first, each
with its next page in the random order of the seed, until the sample is full. So rules with few flips are represented
too. `Stratum` has the number of flips of each, as weights.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Collection
from typing import NamedTuple

from filters.rules.judgement import judge_and_text
from filters.rules.ruleset import parse_ruleset
from replay.compare.comparison import FailedRule, Flip, Stratum
from replay.compare.run_pair import RunPair
from replay.compare.verdict_join import FlipPlace, VerdictJoin
from replay.compare.verdict_join import FlipStratum as Key
from stream.log.contract import Log, partition_of
from stream.processing.topic_reader import messages_at, records_of
from stream.schema.control import Control
from stream.schema.records import Features, Record, Verdict
from stream.schema.vocabulary import PageClass

MAX_SAMPLE = 1000  # flips; each is in memory with its text
TEXT_CAP_CHARACTERS = 200_000  # of a text, as in `farmwatch review label`; hostile pages have megabytes
_CLOCK_SKEW_MS = 60_000  # between a fetch and the log
_LOOKUPS = 32  # of offsets by time: each may read all times of a topic
_READERS = 16  # reads of a partition: each may be a new connection
_MIN_SKIP = 1000  # records; a shorter gap is read


class _Id(Record, frozen=True, kw_only=True):
    """The fetch id alone: most records are read for it only."""


class PageText(NamedTuple):
    """The main text of a fetch up to the cap, the number of characters cut off, and the digest of the whole text.

    Of a page that its ruleset keeps by segments, it is the text of these.
    """

    text: str
    cut: int
    digest: str


def sample_of(log: Log, joined: VerdictJoin, runs: RunPair, size: int) -> tuple[list[Stratum], list[Flip]]:
    """The strata, largest first, and up to `size` flips of them in turn. Raises as `Log.read`.

    Texts are those that B judged; if the features of B expired, those of A. Flips with an expired verdict are left out.
    """
    order = sorted(joined.flips, key=lambda key: (-joined.flips[key], key))
    waiting = deque((key, deque(joined.places.get(key, ()))) for key in order)
    turns: list[tuple[Key, FlipPlace]] = []
    while waiting and len(turns) < size:
        key, places = waiting.popleft()
        if places:
            turns.append((key, places.popleft()))
            waiting.append((key, places))
    of_a = verdicts_at(log, runs[0].names.verdicts, [(place.partition, place.offset_a) for _, place in turns])
    of_b = verdicts_at(log, runs[1].names.verdicts, [(place.partition, place.offset_b) for _, place in turns])
    pairs = [
        (key, (a, b))
        for key, place in turns
        if (a := of_a.get((place.partition, place.offset_a))) is not None
        and (b := of_b.get((place.partition, place.offset_b))) is not None
    ]
    texts = texts_of(log, runs[1].names.features, [verdicts[1] for _, verdicts in pairs])
    if runs[0].names.features != runs[1].names.features:
        missing = [verdicts[0] for _, verdicts in pairs if verdicts[0].id not in texts]
        texts |= texts_of(log, runs[0].names.features, missing)
    flips = [_flip(key, *verdicts, texts.get(verdicts[0].id)) for key, verdicts in pairs]
    taken = [key for key, _ in pairs]
    strata = [Stratum(kind=key.kind, rule=key.rule, flips=joined.flips[key], sampled=taken.count(key)) for key in order]
    return strata, flips


def verdicts_at(log: Log, topic: str, places: Collection[tuple[int, int]]) -> dict[tuple[int, int], Verdict]:
    """(partition, offset) -> verdict, of those still in the log."""
    found = {}
    for partition in sorted({partition for partition, _ in places}):
        offsets = sorted(offset for at, offset in places if at == partition)
        near = max(_MIN_SKIP, (offsets[-1] - offsets[0]) // _READERS)
        for message, verdict in records_of(Verdict, messages_at(log, topic, partition, offsets, near)):
            found[partition, message.offset] = verdict
    return found


def _flip(key: Key, a: Verdict, b: Verdict, page: PageText | None) -> Flip:
    text, cut, digest = page or (None, 0, "")
    return Flip(
        fetch_id=b.id,
        url=b.url,
        site=b.site,
        page_id=b.page_id,
        kind=key.kind,
        rule=key.rule,
        verdict_a=a.verdict,
        verdict_b=b.verdict,
        failed_a=_failed(a),
        failed_b=_failed(b),
        text=text,
        text_cut=cut,
        text_digest=digest,
        fetched_at=b.fetched_at,
    )


def _failed(verdict: Verdict) -> list[FailedRule]:
    outcomes = {outcome.name: outcome for outcome in verdict.rules}
    return [
        FailedRule(name=name, value=outcome.value, op=outcome.op, threshold=outcome.threshold)
        for name in verdict.failed
        if (outcome := outcomes.get(name)) is not None
    ]


def texts_of(log: Log, topic: str, verdicts: list[Verdict]) -> dict[str, PageText]:
    """Fetch id -> text of the page, of those still in the log.

    Features are appended after the time of their fetch. So each partition is read once, starting at the earliest wanted
    fetch. Long stretches before the next wanted fetch are skipped, with the offsets of a few times.
    """
    texts: dict[str, PageText] = {}
    by_segments = {verdict.id: verdict.digest for verdict in verdicts if verdict.verdict == PageClass.SEGMENTS}
    sources = Control(log).rulesets if by_segments else {}
    rulesets = {digest: parse_ruleset(sources[digest], digest) for digest in {*by_segments.values()} & sources.keys()}
    if topic not in log.topics() or not verdicts:
        return texts
    partitions = log.topics()[topic]
    times = sorted({verdict.fetched_at for verdict in verdicts})
    times = times[:: -(-len(times) // _LOOKUPS)]
    offsets = [log.offset_at(topic, max(0, time - _CLOCK_SKEW_MS)) for time in times]
    starts: dict[int, dict[str, int]] = {}
    for verdict in verdicts:
        partition = partition_of(verdict.site, partitions)
        before = bisect_right(times, verdict.fetched_at) - 1
        starts.setdefault(partition, {})[verdict.id] = offsets[before][partition]
    for partition, wanted in starts.items():
        at = 0
        while wanted:
            at = max(at, min(wanted.values()))
            for message, head in records_of(_Id, log.read(topic, partition, at)):
                at = message.offset + 1
                if head.id not in wanted:
                    continue
                for _, features in records_of(Features, [message]):
                    whole, digest = features.text, features.text_digest
                    if ruleset := rulesets.get(by_segments.get(head.id, "")):
                        verdict, whole = judge_and_text(features, ruleset)
                        digest = verdict.text_digest
                    text = whole[:TEXT_CAP_CHARACTERS]
                    texts[head.id] = PageText(text, len(whole) - len(text), digest)
                del wanted[head.id]
                if not wanted or min(wanted.values()) > at:
                    break
            else:
                break  # the end: the remaining texts expired
    return texts
