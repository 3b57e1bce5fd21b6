"""The verdicts of two runs joined on the fetch id: the 2x2, what each rule did, and where the flips stand in the log.

Both topics have the pages of a site in the same partition, so one partition is joined at a time. Of a verdict 20 bytes
are held: a 64-bit digest of its fetch id, its offset, and a number for which rules failed. Of two verdicts on one fetch
the newer counts; of a fetch that another ruleset judged last, none.

The digest has the sample's seed in it, so its order is a random order of the fetches, and the same whenever the seed is
the same: a sample is the first flips in that order. Two fetches of a partition have one digest with a probability of
n^2 / 2^65: 3 in 10^8 for a million.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from filters.rules.judgement import ARTICLE
from replay.compare.comparison import IN, OUT, PageTable
from scoring.rates.canary import is_canary
from stream.log.contract import Log
from stream.processing.topic_reader import records_of
from stream.schema.projection import projection_of
from stream.schema.records import Record, Verdict

_OTHER = -1  # code of a verdict by another ruleset


class VerdictOutcome(NamedTuple):
    """What a verdict says: the rules that failed, in the ruleset's order; none of an article."""

    article: bool
    failed: tuple[str, ...]


class FlipPlace(NamedTuple):
    """A flip: its place in the random order, and where its two verdicts stand."""

    key: int
    partition: int
    offset_a: int
    offset_b: int


class FlipStratum(NamedTuple):
    """Flips of one kind (in, out) by the first rule that failed: of A where the page came in, of B where it went."""

    kind: str
    rule: str


@dataclass
class RuleCounts:
    """Flips by rule: those that it was the first to fail, the only one, or one of several."""

    first: Counter[str] = field(default_factory=Counter)
    only: Counter[str] = field(default_factory=Counter)
    any: Counter[str] = field(default_factory=Counter)

    def add(self, failed: tuple[str, ...], pages: int) -> None:
        """Count pages that failed these rules."""
        self.first[failed[0]] += pages
        if len(failed) == 1:
            self.only[failed[0]] += pages
        for rule in failed:
            self.any[rule] += pages


@dataclass
class Joined:
    """What the two runs say of the same fetches."""

    pages: PageTable
    let_in: RuleCounts  # by rules of A
    thrown_out: RuleCounts  # by rules of B
    flips: dict[FlipStratum, int]
    places: dict[FlipStratum, list[FlipPlace]]  # the first ones of each stratum in the random order
    verdicts: tuple[int, int]  # of A and of B
    other_verdicts: tuple[int, int]  # by other rulesets
    changed_reasons: int  # dropped by both, and other rules failed


@projection_of(Verdict)
class _Verdict(Record, frozen=True, kw_only=True):
    """The fields of a verdict that are compared."""

    verdict: str
    first_failed: str
    failed: tuple[str, ...] = ()
    digest: str


class _Column(NamedTuple):
    """The verdicts of one partition, each fetch once, ascending by key."""

    keys: NDArray[np.uint64]
    codes: NDArray[np.int32]
    offsets: NDArray[np.int64]


class _Outcomes:
    """Numbers for outcomes: pages fail in few ways."""

    def __init__(self) -> None:
        self.known: list[VerdictOutcome] = []
        self._codes: dict[VerdictOutcome, int] = {}

    def code(self, outcome: VerdictOutcome) -> int:
        code = self._codes.setdefault(outcome, len(self.known))
        if code == len(self.known):
            self.known.append(outcome)
        return code


def join(log: Log, topics: tuple[str, str], digests: tuple[str, str], *, seed: int, sample: int) -> Joined:
    """Join the verdicts of A and B that are by the rulesets of these digests; canaries are left out.

    `sample` is how many flips of each stratum are told apart. Raises UnknownTopic, LogUnavailable, SchemaTooNew.
    """
    outcomes = _Outcomes()
    counts: Counter[tuple[bool, bool]] = Counter()
    let_in, thrown_out = RuleCounts(), RuleCounts()
    flips: Counter[FlipStratum] = Counter()
    places: dict[FlipStratum, list[FlipPlace]] = {}
    judged, others, alone, reasons = [0, 0], [0, 0], [0, 0], 0
    for partition in range(log.topics()[topics[0]]):
        columns = []
        for run in (0, 1):
            column = _column(log, topics[run], partition, digests[run], seed, outcomes)
            others[run] += int((column.codes == _OTHER).sum())
            columns.append(_Column(*(values[column.codes != _OTHER] for values in column)))
            judged[run] += len(columns[run].keys)
        a, b = columns
        common, in_a, in_b = np.intersect1d(a.keys, b.keys, assume_unique=True, return_indices=True)
        alone[0] += len(a.keys) - len(common)
        alone[1] += len(b.keys) - len(common)
        codes_a, codes_b = a.codes[in_a], b.codes[in_b]
        for code_a, code_b, number in _pairs(codes_a, codes_b):
            one, other = outcomes.known[code_a], outcomes.known[code_b]
            counts[one.article, other.article] += number
            if one.article == other.article:
                reasons += number * (one.failed != other.failed)
                continue
            kind, failed, tally = (IN, one.failed, let_in) if other.article else (OUT, other.failed, thrown_out)
            tally.add(failed, number)
            stratum = FlipStratum(kind, failed[0])
            flips[stratum] += number
            if sample:
                chosen = np.flatnonzero((codes_a == code_a) & (codes_b == code_b))
                chosen = chosen[np.argsort(common[chosen], kind="stable")[:sample]]
                found = (
                    FlipPlace(int(common[at]), partition, int(a.offsets[in_a[at]]), int(b.offsets[in_b[at]]))
                    for at in chosen
                )
                places[stratum] = sorted([*places.get(stratum, ()), *found])[:sample]
    table = PageTable(
        both_articles=counts[True, True],
        a_only_article=counts[True, False],
        b_only_article=counts[False, True],
        both_dropped=counts[False, False],
        only_in_a=alone[0],
        only_in_b=alone[1],
    )
    return Joined(
        pages=table,
        let_in=let_in,
        thrown_out=thrown_out,
        flips=dict(flips),
        places=places,
        verdicts=(judged[0], judged[1]),
        other_verdicts=(others[0], others[1]),
        changed_reasons=reasons,
    )


def fetch_key(fetch_id: str, seed: int) -> int:
    """Place of a fetch in the random order of a seed."""
    return xxhash.xxh3_64_intdigest(fetch_id.encode(), seed)


def _column(log: Log, topic: str, partition: int, digest: str, seed: int, outcomes: _Outcomes) -> _Column:
    keys, codes, offsets = array("Q"), array("i"), array("q")
    for message, verdict in records_of(_Verdict, log.read(topic, partition)):
        if _of_canary(message.key):
            continue
        article = verdict.verdict == ARTICLE
        failed = () if article else verdict.failed or (verdict.first_failed,)
        keys.append(fetch_key(verdict.id, seed))
        codes.append(outcomes.code(VerdictOutcome(article, failed)) if verdict.digest == digest else _OTHER)
        offsets.append(message.offset)
    column = _Column(np.array(keys, np.uint64), np.array(codes, np.int32), np.array(offsets, np.int64))
    order = np.argsort(column.keys, kind="stable")  # the newest of a fetch is its last
    ordered = column.keys[order]
    last = order[np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))] if len(order) else order
    return _Column(column.keys[last], column.codes[last], column.offsets[last])


def _of_canary(key: bytes) -> bool:
    return key.endswith(b".invalid") and is_canary(key.decode(errors="replace"))


def _pairs(a: NDArray[np.int32], b: NDArray[np.int32]) -> Iterator[tuple[int, int, int]]:
    """(code of A, code of B, how often) of what occurs."""
    pairs, numbers = np.unique(a.astype(np.int64) << 32 | b.astype(np.int64), return_counts=True)
    for pair, number in zip(pairs.tolist(), numbers.tolist(), strict=True):
        yield pair >> 32, pair & 0xFFFFFFFF, number
