"""The built-in detector: a logistic regression over signed-hash word 1-2-grams, calibrated by length.

It runs on numpy alone, on any machine. It recognises the style of chat assistants, and does not find
continuations of base models. Training: lab.detector.training. Errors: docs/explanation/detectors.md, and `warning`.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from scoring.errors import BadWeights
from scoring.interface import BUILT_IN, TextScore
from scoring.lite_ngram.ngrams import vectors
from scoring.lite_ngram.weights import Calibration, Weights, unpack
from scoring.lite_ngram.words import LONGEST_CHARS, LONGEST_WORDS, has_few_function_words, normalise, tokens
from scoring.statistics.logistic import logistic
from scoring.thresholds.threshold_set import ThresholdSet

WEIGHTS_FILE = "lite-ngram.weights"
MIN_WORDS = 150
MAX_WORDS = 1000  # only the first 1,000 words of a text are read, as in the calibration
_BATCH = 64  # texts hashed at a time: few enough for the cache, enough for numpy


class ErrorRates(msgspec.Struct, frozen=True):
    """Error rates measured in the training; stored as JSON with the weights."""

    digest: str  # of the weights file
    warning: str
    flags: float | None = None  # of the human pages of a web collection, that of which the most are flagged


class PreparedText(NamedTuple):
    """A text prepared for the model, or the reason for abstaining."""

    words: list[bytes]  # tokens, punctuation included
    length: int  # words
    abstain: str = ""


def prepare(text: str) -> PreparedText:
    """Normalise, cut and tokenise a text, or give the reason for abstaining."""
    if len(text) > LONGEST_CHARS:
        return PreparedText([], 0, "too_long")
    words = normalise(text).split()
    if len(words) > LONGEST_WORDS:
        return PreparedText([], len(words), "too_long")
    if len(words) < MIN_WORDS:
        return PreparedText([], len(words), "too_short")
    kept = words[:MAX_WORDS]
    words_read = tokens(" ".join(kept))
    if has_few_function_words(words_read, len(kept)):
        return PreparedText([], len(kept), "few_function_words")
    return PreparedText(words_read, len(kept))


def log_length(words: NDArray[np.float64]) -> NDArray[np.float64]:
    """L of the calibration: ln(words / 300), words kept within the range that was calibrated."""
    return np.asarray(np.log(np.clip(words, MIN_WORDS, MAX_WORDS) / 300.0))


def probability(
    margin: NDArray[np.float64], length: NDArray[np.float64], calibration: Calibration
) -> NDArray[np.float64]:
    """Calibrated p(llm) of margins s at lengths L (Platt scaling with the length in it)."""
    logit = (
        calibration.slope * margin
        + calibration.length * length
        + calibration.slope_length * margin * length
        + calibration.offset
    )
    return logistic(logit)


class LiteNgram:
    """The built-in detector with its weights."""

    def __init__(
        self, weights: Weights, warning: str, thresholds: ThresholdSet | None = None, flags: float | None = None
    ) -> None:
        """Score with `weights`; `warning` and `flags` state their errors, `thresholds` replace their own."""
        self.weights = weights
        self.flags = flags
        self.warning = warning
        self.published = _published(weights)
        self.thresholds = thresholds or self.published[0]
        self.identity = f"{self.published[0].detector}/{self.thresholds.tag}"

    @classmethod
    def load(cls, path: Path | None = None) -> LiteNgram:
        """Load the weights at `path`, or those that ship with farmwatch, with their numbers.

        Raises BadWeights for a missing, truncated or altered file, or numbers of other weights.
        """
        folder = resources.files("scoring.data") if path is None else path.parent
        source = folder.joinpath(WEIGHTS_FILE if path is None else path.name)
        numbers = folder.joinpath(f"{source.name.removesuffix('.weights')}.json")
        try:
            weights = unpack(source.read_bytes(), str(source))
            rates = msgspec.json.decode(numbers.read_bytes(), type=ErrorRates)
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise BadWeights(f"{source} or the numbers beside it cannot be read: {error}") from error
        if rates.digest != weights.digest:
            raise BadWeights(f"{numbers} is of other weights than {source}")
        return cls(weights, rates.warning, flags=rates.flags)

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """One TextScore per text; `score` is the margin of the regression, `p_llm` the calibrated probability."""
        header, chosen = self.weights.header, self.thresholds
        scores: list[TextScore] = []
        for start in range(0, len(texts), _BATCH):
            readings = [prepare(text) for text in texts[start : start + _BATCH]]
            margin = margins([reading.words for reading in readings], self.weights.vector) + header.intercept
            length = log_length(np.array([reading.length for reading in readings], np.float64))
            p_llm = probability(margin, length, header.calibration)
            for reading, s, p in zip(readings, margin.tolist(), p_llm.tolist(), strict=True):
                if reading.abstain:
                    scores.append(TextScore(abstain=reading.abstain))
                    continue
                score, own = round(s, 6), round(p, 6)  # the flag follows from these, so a record explains it
                flag = chosen.flag(own if chosen.number == "p_llm" else score)
                shown = own if chosen.curve is None else round(chosen.curve.p_llm(score), 6)
                scores.append(TextScore(score=score, p_llm=shown, flag=flag, tokens=len(reading.words)))
        return scores


def _published(weights: Weights) -> list[ThresholdSet]:
    """The sets measured in the training of the weights; the first is the default."""
    header = weights.header
    return [
        ThresholdSet(
            name=name,
            detector=f"{BUILT_IN}/{weights.digest[:8]}",  # which stands for the measurement
            number="p_llm",
            threshold=threshold,
            llm_below=False,
            published=True,
        )
        for name, threshold in ((f"p{header.threshold:g}", header.threshold), ("careful", header.careful))
    ]


def margins(texts: Sequence[Sequence[bytes]], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inner product of each text's vector with the weights; 0 for a text without tokens."""
    starts, columns, values = vectors(texts)
    row = np.repeat(np.arange(len(texts)), np.diff(starts))
    sums: NDArray[np.float64] = np.bincount(row, values * weights[columns], len(texts)).astype(np.float64)
    return sums
