"""Several detectors side by side over the same texts, so that a change of detector can be looked at before it is made.

Scores of two detectors are never pooled. Two measures of one pair of models share its engine, and its readings.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from operator import attrgetter

import msgspec

from scoring.errors import BadParameters, PoisonText, PooledDetectors
from scoring.interface import Detector, TextScore
from scoring.pair.detector import PairDetector

Said = TextScore | Exception
"""A detector's score of a text; an exception for a text that must be dead-lettered."""
_WARM_UP = (
    "The first text that a detector reads costs more than all that come after it, and nobody should wait for it. "
)


class Work(msgspec.Struct, frozen=True):
    """Counts since the start, of all detectors together; memory as it is now."""

    tokens: int = 0
    padding: int = 0
    out_of_memory: int = 0
    lost: int = 0  # losses of a device
    poison: int = 0
    used_bytes: int = 0
    peak_bytes: int = 0
    total_bytes: int = 0
    batch_tokens: int = 0  # budget of a device's batch, the smallest: halved when memory is short


class Panel:
    """Detectors of different identities over the same texts. Calls may come from several threads."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        """Raises BadParameters for none, PooledDetectors where two have one identity."""
        if not detectors:
            raise BadParameters("no detector was given")
        self.identities = [detector.identity for detector in detectors]
        for identity in self.identities:
            if self.identities.count(identity) > 1:
                raise PooledDetectors(
                    f"two detectors are {identity} and {identity}: their scores could not be told apart"
                )
        self.numbers = [compared(detector) for detector in detectors]
        """Of each detector: from a score to the number that its threshold is compared with."""
        self._detectors = detectors
        pairs = {id(d.engine): d.engine for d in detectors if isinstance(d, PairDetector)}
        self._engines = list(pairs.values())
        self._lock = threading.Lock()
        self._tokens = self._poison = self._calls = 0

    def score(self, texts: Sequence[str]) -> list[tuple[Said, ...]]:
        """Per text, in order, the score of each detector, in the order of `identities`.

        Raises the errors of a call as a whole: DeviceLost (worth a retry), DeviceGone.
        """
        read = {id(engine): engine.read(texts) for engine in self._engines}
        columns: list[Sequence[Said]] = []
        for detector in self._detectors:
            if isinstance(detector, PairDetector):
                columns.append([detector.judge(result) for result in read[id(detector.engine)]])
                continue
            scores = detector.score(texts)
            columns.append(scores)
            with self._lock:
                self._tokens += sum(scored.tokens for scored in scores)
                self._calls += 1
        with self._lock:
            self._poison += sum(isinstance(result, PoisonText) for results in read.values() for result in results)
        return list(zip(*columns, strict=True))

    def warm_up(self) -> None:
        """Score something with each: this compiles kernels and does the other work of a first use."""
        for engine in self._engines:
            engine.warm_up()
        for detector in self._detectors:
            if not isinstance(detector, PairDetector):
                detector.score([_WARM_UP * 20])

    def work(self) -> Work:
        """The counts so far; may be called from any thread."""
        stats = [engine.stats for engine in self._engines]
        return Work(
            self._tokens + sum(s.tokens for s in stats),
            sum(s.padding for s in stats),
            sum(s.out_of_memory for s in stats),
            sum(s.losses for s in stats),
            self._poison,
            sum(s.memory.used_bytes for s in stats),
            sum(s.memory.peak_bytes for s in stats),
            max((s.memory.total_bytes for s in stats), default=0),
            min((s.batch_tokens for s in stats), default=0),
        )

    def advanced(self) -> int:
        """Batches of the engines and calls of other detectors; may be called from any thread."""
        return self._calls + sum(engine.batches for engine in self._engines)

    def loaded(self) -> bool:
        return all(engine.loaded for engine in self._engines)

    def close(self) -> None:
        """Stop the engines after the batch that is on the device."""
        for engine in self._engines:
            engine.close()


def compared(detector: object) -> Callable[[TextScore], float | None]:
    """The number of a score that this detector's threshold is compared with: its p_llm, or its score."""
    thresholds = getattr(detector, "thresholds", None)
    if thresholds is None:
        return lambda scored: scored.score if scored.p_llm is None else scored.p_llm
    return attrgetter(thresholds.number)
