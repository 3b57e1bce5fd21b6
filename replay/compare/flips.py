"""A reproducible sample of flips, with their verdicts and texts.

Each kind of flip is a stratum: in or out, by the first rule that failed. The strata take turns, the largest first, each
with its next page in the random order of the seed, until the sample is full: so a rule that flips few pages is seen,
too. `Stratum` has the number of flips of each, as weights.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from replay.compare.comparison import FailedRule, Flip, Stratum
from replay.compare.run_pair import Chosen
from replay.compare.verdict_join import FlipPlace, Joined
from replay.compare.verdict_join import FlipStratum as Key
from stream.log.contract import Log, Message, partition_of
from stream.processing.topic_reader import records_of
from stream.schema.records import Features, Record, Verdict

LARGEST = 1000  # flips in a sample: each is held with its text
TEXT_CAP_CHARACTERS = 200_000  # of a flip's text: what `farmwatch label` shows of one; hostile pages have megabytes
_CLOCKS_MS = 60_000  # by which the clock of a fetch may be ahead of the log's
_LOOKUPS = 32  # of times in a topic: each may read all of its times
_READERS = 16  # of a partition's verdicts: each may be a new connection
_NEAR = 1000  # records that are sooner read over than leapt over


class _Id(Record, frozen=True, kw_only=True):
    """The fetch id, which is all that most records are asked for."""


class PageText(NamedTuple):
    """The main text of a fetch up to the cap, how many characters are cut off, and the digest of the whole text."""

    text: str
    cut: int
    digest: str


def sample_of(log: Log, joined: Joined, runs: tuple[Chosen, Chosen], size: int) -> tuple[list[Stratum], list[Flip]]:
    """The strata, largest first, and `size` flips of them in turn, fewer where there are fewer. Raises as `Log.read`.

    Texts are those that B judged; where B's features are gone, those that A did. A flip of which retention has taken a
    verdict meanwhile is left out.
    """
    order = sorted(joined.flips, key=lambda key: (-joined.flips[key], key))
    turns = list(_in_turn(order, joined, size))
    of_a = _verdicts(log, runs[0].names.verdicts, [(place.partition, place.offset_a) for _, place in turns])
    of_b = _verdicts(log, runs[1].names.verdicts, [(place.partition, place.offset_b) for _, place in turns])
    found = [
        (key, (a, b))
        for key, place in turns
        if (a := of_a.get((place.partition, place.offset_a))) is not None
        and (b := of_b.get((place.partition, place.offset_b))) is not None
    ]
    texts = texts_of(log, runs[1].names.features, [verdicts[1] for _, verdicts in found])
    if runs[0].names.features != runs[1].names.features:
        missing = [verdicts[0] for _, verdicts in found if verdicts[0].id not in texts]
        texts |= texts_of(log, runs[0].names.features, missing)
    flips = [_flip(key, *verdicts, texts.get(verdicts[0].id)) for key, verdicts in found]
    taken = [key for key, _ in found]
    strata = [Stratum(kind=key.kind, rule=key.rule, flips=joined.flips[key], sampled=taken.count(key)) for key in order]
    return strata, flips


def _in_turn(order: list[Key], joined: Joined, size: int) -> Iterator[tuple[Key, FlipPlace]]:
    waiting = deque((key, deque(joined.places.get(key, ()))) for key in order)
    left = size
    while waiting and left:
        key, places = waiting.popleft()
        if places:
            yield key, places.popleft()
            waiting.append((key, places))
            left -= 1


def _verdicts(log: Log, topic: str, places: Collection[tuple[int, int]]) -> dict[tuple[int, int], Verdict]:
    """(partition, offset) -> verdict, of those that are in the log still."""
    return {
        (partition, message.offset): verdict
        for partition in sorted({partition for partition, _ in places})
        for message, verdict in records_of(
            Verdict, _records(log, topic, partition, sorted(offset for at, offset in places if at == partition))
        )
    }


def _records(log: Log, topic: str, partition: int, offsets: Sequence[int]) -> Iterator[Message]:
    """The records at these offsets, which ascend, by at most _READERS readers: only wide gaps are leapt over."""
    wanted = set(offsets)
    far = max(_NEAR, (offsets[-1] - offsets[0]) // _READERS)
    first = offsets[0]
    for offset, following in zip(offsets, (*offsets[1:], None), strict=True):
        if following is None or following - offset > far:
            read = log.read(topic, partition, first, offset + 1)
            yield from (message for message in read if message.offset in wanted)
            first = following or 0


def _flip(key: Key, a: Verdict, b: Verdict, found: PageText | None) -> Flip:
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
        text=None if found is None else found.text,
        text_cut=0 if found is None else found.cut,
        text_digest="" if found is None else found.digest,
        fetched_at=b.fetched_at,
    )


def _failed(verdict: Verdict) -> list[FailedRule]:
    outcomes = {outcome.name: outcome for outcome in verdict.rules}
    return [
        FailedRule(name=name, value=found.value, op=found.op, threshold=found.threshold)
        for name in verdict.failed
        if (found := outcomes.get(name)) is not None
    ]


def texts_of(log: Log, topic: str, verdicts: list[Verdict]) -> dict[str, PageText]:
    """Fetch id -> text of the verdict's page, of those that are in the log still.

    Features stand behind their fetch's time. So each partition is read once, from the earliest fetch that is wanted on,
    and what lies before the next wanted one is leapt over, as far as few times that are looked up tell where it begins.
    """
    found: dict[str, PageText] = {}
    if topic not in log.topics() or not verdicts:
        return found
    partitions = log.topics()[topic]
    times = sorted({verdict.fetched_at for verdict in verdicts})
    times = times[:: -(-len(times) // _LOOKUPS)]
    offsets = [log.offset_at(topic, max(0, time - _CLOCKS_MS)) for time in times]
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
                    text = features.text[:TEXT_CAP_CHARACTERS]
                    found[head.id] = PageText(text, len(features.text) - len(text), features.text_digest)
                del wanted[head.id]
                if not wanted or min(wanted.values()) > at:
                    break
            else:
                break  # the end: what is still wanted is no longer there
    return found
