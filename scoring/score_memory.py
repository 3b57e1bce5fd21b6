"""Which texts have been scored: a text is read once, however many pages, sites and batches it stands in.

The scores of the texts used last are kept. A text that another batch is at work on is waited for, not read again.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from scoring.detectors.panel import Said

Scores = tuple[Said, ...]  # of one text, by each detector
Compute = Callable[[Sequence[str]], Sequence[Scores]]


class CachedScores(NamedTuple):
    """Scores by text digest, and the digests of the texts that were read for it."""

    scores: dict[str, Scores]
    read: frozenset[str]


class ScoreMemory:
    """Scores by text digest, those of `capacity` texts at most; calls may come from several threads."""

    def __init__(self, capacity: int) -> None:
        """0 = nothing is kept; texts that are being read are shared nevertheless."""
        self._capacity = capacity
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Scores] = OrderedDict()  # the one used last stands last
        self._coming: dict[str, Future[Scores | None]] = {}  # None: its reader failed, whoever waits reads it himself

    def look(self, texts: Mapping[str, str], compute: Compute) -> CachedScores:
        """The scores of `texts` (digest -> text), computing what is not known. Raises what `compute` raises.

        What is computed here is there for others before this waits for what they compute, so nobody waits in a circle.
        """
        scores: dict[str, Scores] = {}
        read: set[str] = set()
        while missing := [digest for digest in texts if digest not in scores]:
            mine, others = self._claim(missing, scores)
            if mine:
                scores.update(self._computed(mine, [texts[digest] for digest in mine], compute))
                read.update(mine)
            for digest, coming in others.items():
                come = coming.result()
                if come is not None:
                    scores[digest] = come
        return CachedScores(scores, frozenset(read))

    def _claim(
        self, digests: Sequence[str], scores: dict[str, Scores]
    ) -> tuple[dict[str, Future[Scores | None]], dict[str, Future[Scores | None]]]:
        """Fill in what is known; of the rest, what the caller is to compute, and what others are at work on."""
        mine: dict[str, Future[Scores | None]] = {}
        others: dict[str, Future[Scores | None]] = {}
        with self._lock:
            for digest in digests:
                known = self._known.get(digest)
                if known is not None:
                    self._known.move_to_end(digest)
                    scores[digest] = known
                elif digest in self._coming:
                    others[digest] = self._coming[digest]
                else:
                    mine[digest] = self._coming[digest] = Future()
        return mine, others

    def _computed(
        self, mine: Mapping[str, Future[Scores | None]], texts: Sequence[str], compute: Compute
    ) -> dict[str, Scores]:
        computed: dict[str, Scores] = {}
        try:
            computed = dict(zip(mine, compute(texts), strict=True))
        finally:
            with self._lock:
                for digest in mine:
                    del self._coming[digest]
                for digest, scores in computed.items():
                    if not any(isinstance(said, Exception) for said in scores):
                        self._known[digest] = scores
                while len(self._known) > self._capacity:
                    self._known.popitem(last=False)
            for digest, coming in mine.items():
                coming.set_result(computed.get(digest))
        return computed
