"""Joins the verdicts of two runs on the fetch id: the 2x2 table, flips by rule, and the offsets of flips.

Both topics have the pages of a site in the same partition, so partitions are joined one at a time. A verdict takes 28
bytes: 64-bit digests of its fetch id and of the text to score, its offset, and a code for the rules that failed. If a
fetch has two verdicts, the newer one counts. If the newest verdict of a fetch is by another ruleset, the fetch is left
out.

That of a fetch id includes the seed of the sample, so its order is a random order of the fetches that the seed
reproduces. A sample takes the first flips in that order. Two fetches of a partition collide with a probability of n^2 /
2^65: 3 in 10^8 for a million.
"""

from __future__ import annotations

from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from replay.compare.comparison import IN, OUT, PageTable
from replay.compare.run_pair import RunPair
from scoring.rates.canary import is_canary
from stream.log.contract import Log
from stream.processing.topic_reader import records_of
from stream.schema.projection import projection_of
from stream.schema.records import Record, Verdict
from stream.schema.vocabulary import KEPT

_OTHER = -1  # code of a verdict by another ruleset
Outcome = tuple[str, tuple[str, ...]]  # the class of a kept page, else "", and the failed rules in their order


class FlipPlace(NamedTuple):
    """A flip: its place in the random order, and the offsets of its two verdicts."""

    key: int
    partition: int
    offset_a: int
    offset_b: int


class FlipStratum(NamedTuple):
    """Flips of one kind (in, out) by the first failed rule: of A for pages let in, of B for pages thrown out."""

    kind: str
    rule: str


@dataclass
class RuleCounts:
    """Flips by rule, where the rule was the first to fail, the only one, or one of several."""

    first: Counter[str] = field(default_factory=Counter)
    only: Counter[str] = field(default_factory=Counter)
    any: Counter[str] = field(default_factory=Counter)

    def add(self, failed: tuple[str, ...], pages: int) -> None:
        self.first[failed[0]] += pages
        if len(failed) == 1:
            self.only[failed[0]] += pages
        for rule in failed:
            self.any[rule] += pages

    def of(self, rule: str, way: str) -> dict[str, int]:
        """The counts of one rule, under their field names in a `RuleChange` of this direction."""
        return {f"{way}_{name}": getattr(self, name)[rule] for name in ("first", "only", "any")}


class SharedTexts(NamedTuple):
    """Texts that both runs keep: 64-bit digests, and the places of the verdicts of B on their fetches."""

    texts: NDArray[np.uint64]
    partitions: NDArray[np.int32]
    offsets: NDArray[np.int64]


@dataclass
class VerdictJoin:
    """The joined verdicts of two runs."""

    let_in: RuleCounts = field(default_factory=RuleCounts)  # by rules of A
    thrown_out: RuleCounts = field(default_factory=RuleCounts)  # by rules of B
    flips: Counter[FlipStratum] = field(default_factory=Counter)
    places: dict[FlipStratum, list[FlipPlace]] = field(default_factory=dict)  # the first ones in the random order
    verdicts: list[int] = field(default_factory=lambda: [0, 0])  # of A and of B
    other_verdicts: list[int] = field(default_factory=lambda: [0, 0])  # by other rulesets
    changed_reasons: int = 0  # dropped by both, by different rules
    other_class: int = 0  # kept by both, but not as the same class
    other_text: int = 0  # kept by both, which score different texts
    shared_texts: list[SharedTexts] = field(default_factory=list)  # of each partition, if requested
    both_judged: Counter[tuple[bool, bool]] = field(default_factory=Counter)  # (article in A, in B) -> fetches

    @property
    def pages(self) -> PageTable:
        common = self.both_judged
        return PageTable(
            both_articles=common[True, True],
            a_only_article=common[True, False],
            b_only_article=common[False, True],
            both_dropped=common[False, False],
            only_in_a=self.verdicts[0] - common.total(),
            only_in_b=self.verdicts[1] - common.total(),
            other_class=self.other_class,
            other_text=self.other_text,
        )


@projection_of(Verdict)
class _Verdict(Record, frozen=True, kw_only=True):
    verdict: str
    first_failed: str
    failed: tuple[str, ...] = ()
    digest: str
    text_digest: str = ""


class _Column(NamedTuple):
    """The verdicts of one partition, each fetch once, ascending by key."""

    keys: NDArray[np.uint64]
    codes: NDArray[np.int32]
    offsets: NDArray[np.int64]
    texts: NDArray[np.uint64]  # digest of the scored text; 0 = dropped


def join(log: Log, runs: RunPair, *, seed: int, sample: int, with_texts: bool = False) -> VerdictJoin:
    """Join the verdicts of A and B by the rulesets of these runs; canaries are left out.

    `sample` is the number of flips per stratum whose places are kept; `with_texts` keeps the places of shared texts.
    Raises UnknownTopic, LogUnavailable, SchemaTooNew.
    """
    codes: dict[Outcome, int] = {}  # outcome -> code; there are few different outcomes
    joined = VerdictJoin()
    for partition in range(log.topics()[runs[0].names.verdicts]):
        columns = []
        for number, run in enumerate(runs):
            column = _column(log, run.names.verdicts, partition, run.newest.digest, seed, codes)
            is_own = column.codes != _OTHER
            columns.append(_Column(*(values[is_own] for values in column)))
            joined.verdicts[number] += int(is_own.sum())
            joined.other_verdicts[number] += int((~is_own).sum())
        outcomes = list(codes)
        a, b = columns
        common, in_a, in_b = np.intersect1d(a.keys, b.keys, assume_unique=True, return_indices=True)
        codes_a, codes_b = a.codes[in_a], b.codes[in_b]
        texts_a, texts_b = a.texts[in_a], b.texts[in_b]
        joined.other_text += int(((texts_a != texts_b) & (texts_a > 0) & (texts_b > 0)).sum())
        if with_texts:
            same = np.flatnonzero((texts_a == texts_b) & (texts_a > 0))
            of_partition = np.full(len(same), partition, np.int32)
            joined.shared_texts.append(SharedTexts(texts_b[same], of_partition, b.offsets[in_b[same]]))
        pairs, numbers = np.unique(codes_a.astype(np.int64) << 32 | codes_b.astype(np.int64), return_counts=True)
        for pair, number in zip(pairs.tolist(), numbers.tolist(), strict=True):
            code_a, code_b = pair >> 32, pair & 0xFFFFFFFF
            (class_a, failed_a), (class_b, failed_b) = outcomes[code_a], outcomes[code_b]
            is_article_a, is_article_b = bool(class_a), bool(class_b)
            joined.both_judged[is_article_a, is_article_b] += number
            if is_article_a == is_article_b:
                joined.changed_reasons += number * (failed_a != failed_b)
                joined.other_class += number * (class_a != class_b)
                continue
            if is_article_b:
                stratum, counts = FlipStratum(IN, failed_a[0]), joined.let_in
            else:
                stratum, counts = FlipStratum(OUT, failed_b[0]), joined.thrown_out
            counts.add(failed_a or failed_b, number)
            joined.flips[stratum] += number
            if sample:
                chosen = np.flatnonzero((codes_a == code_a) & (codes_b == code_b))
                chosen = chosen[np.argsort(common[chosen], kind="stable")[:sample]]
                places = (
                    FlipPlace(int(common[at]), partition, int(a.offsets[in_a[at]]), int(b.offsets[in_b[at]]))
                    for at in chosen
                )
                joined.places[stratum] = sorted([*joined.places.get(stratum, ()), *places])[:sample]
    return joined


def fetch_key(fetch_id: str, seed: int) -> int:
    """Place of a fetch in the random order of a seed."""
    return xxhash.xxh3_64_intdigest(fetch_id.encode(), seed)


def _column(log: Log, topic: str, partition: int, digest: str, seed: int, known: dict[Outcome, int]) -> _Column:
    keys, codes, offsets, texts = array("Q"), array("i"), array("q"), array("Q")
    for message, verdict in records_of(_Verdict, log.read(topic, partition)):
        key = fetch_key(verdict.id, seed)
        if message.key.endswith(b".invalid") and is_canary(message.key.decode(errors="replace")):
            continue
        kept = verdict.verdict if verdict.verdict in KEPT else ""
        failed = () if kept else verdict.failed or (verdict.first_failed,)
        keys.append(key)
        is_own = verdict.digest == digest
        codes.append(known.setdefault((kept, failed), len(known)) if is_own else _OTHER)
        offsets.append(message.offset)
        texts.append(xxhash.xxh3_64_intdigest(verdict.text_digest.encode()) if kept else 0)
    different, from_end = np.unique(np.array(keys, np.uint64)[::-1], return_index=True)
    last = len(keys) - 1 - from_end  # the newest verdict of a fetch
    return _Column(
        different, np.array(codes, np.int32)[last], np.array(offsets, np.int64)[last], np.array(texts, np.uint64)[last]
    )
