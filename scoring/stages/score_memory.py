"""A cache of scores: a text is read once for all of its pages, sites and batches.

The scores of recently used texts are kept. If another batch is reading a text, the caller waits.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import NamedTuple

from scoring.detectors.detector_set import TextResult

Scores = tuple[TextResult, ...]  # of one text, by each detector
Compute = Callable[[Sequence[str]], Sequence[Scores]]


class CachedScores(NamedTuple):
    """Scores by text digest, and the digests of newly read texts."""

    scores: dict[str, Scores]
    read: frozenset[str]


class ScoreMemory:
    """An LRU cache of scores by text digest, for at most `capacity` texts. Thread safe."""

    def __init__(self, capacity: int) -> None:
        """0 = no score is kept; texts that are being read are still shared."""
        self._capacity = capacity
        self._lock = threading.Lock()
        self._known: OrderedDict[str, Scores] = OrderedDict()  # the most recently used one is last
        self._coming: dict[str, Future[Scores | None]] = {}  # None: its reader failed

    def look(self, texts: Mapping[str, str], compute: Compute) -> CachedScores:
        """The scores of `texts` (digest -> text), computing the unknown ones. Raises the errors of `compute`.

        A caller publishes its results before it waits for those of others, so callers cannot deadlock.
        """
        scores: dict[str, Scores] = {}
        read: set[str] = set()
        while missing := [digest for digest in texts if digest not in scores]:
            mine: dict[str, Future[Scores | None]] = {}
            others: dict[str, Future[Scores | None]] = {}
            with self._lock:
                for digest in missing:
                    if digest in self._known:
                        self._known.move_to_end(digest)
                        scores[digest] = self._known[digest]
                    elif digest in self._coming:
                        others[digest] = self._coming[digest]
                    else:
                        mine[digest] = self._coming[digest] = Future()
            if mine:
                scores |= self._computed(mine, [texts[digest] for digest in mine], compute)
                read.update(mine)
            for digest, coming in others.items():
                if (theirs := coming.result()) is not None:
                    scores[digest] = theirs
        return CachedScores(scores, frozenset(read))

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
