"""Runs several detectors on the same texts, to compare them before a switch.

Scores of two detectors are never pooled. Two measures of one pair of models share its engine and its readings.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from operator import attrgetter

import msgspec

from scoring.engine.detector import EngineDetector
from scoring.errors import BadParameters, PoisonText, PooledDetectors
from scoring.interface import Detector, DetectorCounts, TextScore

TextResult = TextScore | Exception
"""A detector's score of a text; an exception for a text that must be dead-lettered."""
_WARM_UP = "The first text that a detector reads takes longer than all later ones, so this one is read at the start. "


class DetectorSet:
    """Several detectors for the same texts; those on one pair share its engine. Thread safe."""

    def __init__(self, detectors: Sequence[Detector]) -> None:
        """Raises BadParameters without detectors, PooledDetectors if two have the same identity."""
        if not detectors:
            raise BadParameters("no detector was given")
        self.identities = [detector.identity for detector in detectors]
        for identity in self.identities:
            if self.identities.count(identity) > 1:
                raise PooledDetectors(f"two detectors are {identity}: their scores could not be told apart")
        self.numbers = [number_of(detector) for detector in detectors]
        """Per detector: the function from a score to the number compared with its threshold."""
        self._detectors = detectors
        self._engines = {id(of.engine): of.engine for of in detectors if isinstance(of, EngineDetector)}
        self._lock = threading.Lock()
        self._tokens = self._poison = self._calls = 0

    def score(self, texts: Sequence[str]) -> list[tuple[TextResult, ...]]:
        """Score each text, in order, with each detector, in the order of `identities`.

        Raises DeviceLost (worth a retry) or DeviceGone for the call as a whole.
        """
        read = {key: engine.read(texts) for key, engine in self._engines.items()}
        columns: list[Sequence[TextResult]] = []
        for detector in self._detectors:
            if isinstance(detector, EngineDetector):
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
        """Score a sample text with each detector, to compile kernels and do other work of a first use."""
        for engine in self._engines.values():
            engine.warm_up()
        for detector in self._detectors:
            if not isinstance(detector, EngineDetector):
                detector.score([_WARM_UP * 20])

    def work(self) -> DetectorCounts:
        """The counts so far; may be called from any thread."""
        works = [engine.work for engine in self._engines.values()] or [DetectorCounts()]
        counted = {name: sum(getattr(work, name) for work in works) for name in ("padding", "out_of_memory", "lost")}
        tokens = sum(work.tokens for work in works) + self._tokens
        return msgspec.structs.replace(works[0], **counted, tokens=tokens, poison=self._poison)

    def advanced(self) -> int:
        return self._calls + sum(engine.batches for engine in self._engines.values())

    def loaded(self) -> bool:
        return all(engine.loaded for engine in self._engines.values())

    def close(self) -> None:
        """Stop the engines after the batches that are on the device."""
        for engine in self._engines.values():
            engine.close()


def number_of(detector: object) -> Callable[[TextScore], float | None]:
    """The function from a score to the number compared with this detector's threshold: p_llm or score."""
    thresholds = getattr(detector, "thresholds", None)
    if thresholds is None:
        return lambda scored: scored.score if scored.p_llm is None else scored.p_llm
    return attrgetter(thresholds.number)
