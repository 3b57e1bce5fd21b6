"""The fits behind `lite-ngram`, by scikit-learn: imported here only, and only when a model is trained."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.detector.texts import CROP_WORDS, TrainingText, balanced_weights, calibration_crop, training_crop
from lab.extras import require_sklearn
from scoring.lite_ngram.detector import log_length, margins, probability
from scoring.lite_ngram.ngrams import BUCKETS, vectors
from scoring.lite_ngram.weights import Calibration
from scoring.lite_ngram.words import tokens

C = 3.0
CROPS = 6  # of each text: six crops use more of a text than one
WEB_WEIGHT = 6.0  # human web pages are the use case; unseen registers benefit too
RARITY = 0.25  # see `rarity`; 0 = no scaling, 0.5 = root of the inverse document frequency
_RAREST = 1e-3  # n-grams rarer than one text in a thousand have one factor
_NO_PENALTY = 1e6
_BATCH = 1024  # texts hashed at a time, for memory

Floats = NDArray[np.float64]
Keep = Callable[[TrainingText], bool]
Crop = Callable[[Sequence[str], random.Random], list[str]]


class Model(NamedTuple):
    """A fitted regression; `calibration` comes from the dev texts after the fit."""

    vector: Floats
    intercept: float
    threshold: float  # a text is flagged above this probability
    calibration: Calibration = Calibration(1, 0, 0, 0)

    def margins(self, texts: Sequence[Sequence[str]]) -> Floats:
        return margins([tokens(" ".join(words)) for words in texts], self.vector) + self.intercept

    def flags(self, texts: Sequence[Sequence[str]]) -> NDArray[np.bool_]:
        length = log_length(np.array([len(words) for words in texts], np.float64))
        return np.asarray(probability(self.margins(texts), length, self.calibration) > self.threshold)


class Crops(NamedTuple):
    """Crops of texts, hashed."""

    matrix: Any  # scipy.sparse.csr_matrix, a row for each
    length: Floats  # L of each, see log_length
    samples: list[TrainingText]  # the text of each

    @classmethod
    def of(cls, samples: Sequence[TrainingText], crop: Crop, times: int, seed: int) -> Crops:
        from scipy import sparse

        rng = random.Random(seed)  # noqa: S311  # reproducible, no secret
        repeated = [sample for sample in samples for _ in range(times)]
        stretches = [crop(sample.words, rng) for sample in repeated]
        parts = []
        for start in range(0, len(stretches), _BATCH):
            batch = [tokens(" ".join(words)) for words in stretches[start : start + _BATCH]]
            starts, columns, values = vectors(batch)
            parts.append(sparse.csr_matrix((values, columns, starts), shape=(len(batch), BUCKETS)))
        length = log_length(np.array([len(words) for words in stretches], np.float64))
        return cls(sparse.vstack(parts, format="csr"), length, repeated)

    def rows(self, keep: Keep) -> tuple[NDArray[np.int64], list[TrainingText]]:
        """Places and texts of the crops whose text `keep` accepts."""
        places = [place for place, sample in enumerate(self.samples) if keep(sample)]
        return np.array(places, np.int64), [self.samples[place] for place in places]


class Trainer:
    """Fits on subsets of one set of training crops, and calibrates on subsets of one set of calibration crops."""

    def __init__(
        self, training: Sequence[TrainingText], dev: Sequence[TrainingText], seed: int, threshold: float
    ) -> None:
        """Crop and hash once. Raises MissingExtra without scikit-learn."""
        require_sklearn()
        from sklearn import linear_model

        self.training, self.dev = training, dev
        self._regression = linear_model.LogisticRegression
        self._threshold = threshold
        self._training = Crops.of(training, training_crop, CROPS, seed)
        self._dev = Crops.of(dev, calibration_crop, CROPS, seed + 1)
        self._openings = Crops.of([*training, *dev], lambda words, _: list(words[: CROP_WORDS[1]]), 1, seed)
        self._place = {id(sample): place for place, sample in enumerate(self._openings.samples)}

    def fit(self, keep: Keep = lambda _: True) -> Model:
        """Fit on the texts that `keep` takes: logistic loss, L2, C = 3, balanced weights, columns scaled by rarity."""
        rows, samples = self._training.rows(keep)
        matrix = self._training.matrix[rows]
        scale = rarity(matrix)
        regression = self._regression(C=C, solver="liblinear", tol=1e-3, random_state=0)
        regression.fit(
            matrix.multiply(scale).tocsr(),
            [sample.llm for sample in samples],
            sample_weight=balanced_weights(samples, WEB_WEIGHT),
        )
        vector = np.asarray(regression.coef_[0] * scale, np.float64)
        return Model(vector, float(regression.intercept_[0]), self._threshold)

    def calibrated(self, model: Model, keep: Keep = lambda _: True) -> Model:
        """The model with length-aware Platt scaling on the dev crops that `keep` accepts."""
        rows, samples = self._dev.rows(keep)
        margin = np.asarray(self._dev.matrix[rows] @ model.vector + model.intercept)
        length = self._dev.length[rows]
        platt = self._regression(C=_NO_PENALTY, max_iter=1000)
        platt.fit(
            np.stack([margin, length, margin * length], axis=1),
            [sample.llm for sample in samples],
            sample_weight=balanced_weights(samples),
        )
        numbers = (round(float(value), 6) for value in (*platt.coef_[0], platt.intercept_[0]))
        return model._replace(calibration=Calibration(*numbers))

    def fit_calibrated(self, keep: Keep) -> Model:
        return self.calibrated(self.fit(keep), keep)

    def margins(self, model: Model, samples: Sequence[TrainingText]) -> Floats:
        return np.asarray(self._openings.matrix[self._places(samples)] @ model.vector + model.intercept)

    def flagged(self, model: Model, samples: Sequence[TrainingText]) -> float:
        """Share of these openings that is flagged; 0 if there are none."""
        length = self._openings.length[self._places(samples)]
        flags = probability(self.margins(model, samples), length, model.calibration) > model.threshold
        return float(np.mean(flags)) if len(flags) else 0.0

    def _places(self, samples: Sequence[TrainingText]) -> NDArray[np.int64]:
        return np.array([self._place[id(sample)] for sample in samples], np.int64)


def rarity(matrix: Any) -> Floats:
    """Factors of the buckets before the fit, [BUCKETS]: each is its share of the texts to the power -1/4.

    Under L2 a weight costs its square, so the scale of a column is the prior width of its weight. Unscaled, frequent
    n-grams are cheap and learn the generators and registers of the training texts; scaled down, they leave more to the
    many rare n-grams. The scaling is multiplied into the weights afterwards.
    """
    share = np.bincount(matrix.indices, minlength=BUCKETS) / matrix.shape[0]
    scale = np.clip(share, _RAREST, 1.0) ** -RARITY
    return np.asarray(scale / np.sqrt((share * scale**2).sum() / share.sum()))
