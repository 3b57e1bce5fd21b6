"""The fits behind `lite-ngram`: on all texts of a training, or without those of a source or a generator."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.detector.newton import fit_logistic
from lab.detector.texts import TrainingText, balanced_weights, calibration_crop, training_crop
from lab.extras import require_sklearn
from scoring.lite_ngram.detector import MAX_WORDS, log_length, margins, probability
from scoring.lite_ngram.ngrams import BUCKETS, vectors
from scoring.lite_ngram.weights import Calibration
from scoring.lite_ngram.words import tokens

PENALTY = 1 / (3 * 6 * 17157)  # of the squared weights, beside the mean loss
CROPS = 2  # of each text
WEB_WEIGHT = 2.0  # human web pages are the use case; unseen registers benefit too
RARITY = 0.25  # see `rarity`; 0 = no scaling, 0.5 = root of the inverse document frequency
_RAREST = 1e-3  # n-grams rarer than one text in a thousand have one factor
_FEWEST_CROPS = 2  # of a bucket with a weight
_TOLERANCE = 1e-9  # of the gradient: so low that the weights agree to more digits than are kept
_NO_PENALTY = 1e-9
_CALIBRATION_PLACES = 6
_BATCH = 1024  # texts hashed at a time, for memory

Floats = NDArray[np.float64]
Keep = Callable[[TrainingText], bool]
Crop = Callable[[Sequence[str], random.Random], list[str]]


class Model(NamedTuple):
    """A fitted regression; `calibration` comes from the dev texts after the fit."""

    vector: Floats
    intercept: float
    calibration: Calibration = Calibration(1, 0, 0, 0)

    def margins(self, texts: Sequence[Sequence[str]]) -> Floats:
        return margins([tokens(" ".join(words)) for words in texts], self.vector) + self.intercept

    def p_llm(self, texts: Sequence[Sequence[str]]) -> Floats:
        """Calibrated probabilities, from all words given."""
        length = log_length(np.array([len(words) for words in texts], np.float64))
        return probability(self.margins(texts), length, self.calibration)


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
            parts.append(sparse.csr_matrix((values, columns.astype(np.int32), starts), shape=(len(batch), BUCKETS)))
        matrix = sparse.vstack(parts, format="csr")
        matrix.sum_duplicates()
        length = log_length(np.array([len(words) for words in stretches], np.float64))
        return cls(matrix, length, repeated)

    def rows(self, keep: Keep) -> tuple[NDArray[np.int64], list[TrainingText]]:
        """Places and texts of the crops whose text `keep` accepts."""
        places = [place for place, sample in enumerate(self.samples) if keep(sample)]
        return np.array(places, np.int64), [self.samples[place] for place in places]


class Trainer:
    """Fits on subsets of one set of training crops, and calibrates on subsets of one set of calibration crops."""

    def __init__(self, training: Sequence[TrainingText], dev: Sequence[TrainingText], seed: int) -> None:
        """Crop and hash once. Raises MissingExtra without the extra `train`."""
        require_sklearn()
        self.training, self.dev = training, dev
        self._training = Crops.of(training, training_crop, CROPS, seed)
        self._dev = Crops.of(dev, calibration_crop, CROPS, seed + 1)
        self._openings = Crops.of([*training, *dev], lambda words, _: list(words[:MAX_WORDS]), 1, seed)
        self._place = {id(sample): place for place, sample in enumerate(self._openings.samples)}

    def fit(self, keep: Keep = lambda _: True) -> Model:
        """Fit on the texts that `keep` takes: logistic loss, L2, balanced weights, columns scaled by rarity."""
        rows, samples = self._training.rows(keep)
        matrix = self._training.matrix[rows]
        llm, weights = _labels(samples), balanced_weights(samples, WEB_WEIGHT)
        return Model(*fit_logistic(matrix, llm, weights, rarity(matrix), penalty=PENALTY, tolerance=_TOLERANCE))

    def calibrated(self, model: Model, keep: Keep = lambda _: True) -> Model:
        """The model with length-aware Platt scaling on the dev crops that `keep` accepts."""
        from scipy import sparse

        rows, samples = self._dev.rows(keep)
        margin, length = self._dev.matrix[rows] @ model.vector + model.intercept, self._dev.length[rows]
        matrix = sparse.csr_matrix(np.stack([margin, length, margin * length], axis=1))
        platt = fit_logistic(
            matrix,
            _labels(samples),
            balanced_weights(samples),
            np.ones(matrix.shape[1]),
            penalty=_NO_PENALTY,
            tolerance=_TOLERANCE,
        )
        numbers = (round(float(one), _CALIBRATION_PLACES) for one in (*platt.vector, platt.intercept))
        return model._replace(calibration=Calibration(*numbers))

    def fit_calibrated(self, keep: Keep) -> Model:
        return self.calibrated(self.fit(keep), keep)

    def margins(self, model: Model, samples: Sequence[TrainingText]) -> Floats:
        """Margins of the texts as the detector reads them: at most their first 1,000 words."""
        return np.asarray(self._openings.matrix[self._places(samples)] @ model.vector + model.intercept)

    def p_llm(self, model: Model, samples: Sequence[TrainingText]) -> Floats:
        """Calibrated probabilities of the same."""
        length = self._openings.length[self._places(samples)]
        return probability(self.margins(model, samples), length, model.calibration)

    def _places(self, samples: Sequence[TrainingText]) -> NDArray[np.int64]:
        return np.array([self._place[id(sample)] for sample in samples], np.int64)


def _labels(samples: Sequence[TrainingText]) -> NDArray[np.bool_]:
    return np.array([sample.llm for sample in samples], bool)


def rarity(matrix: Any) -> Floats:
    """Factors of the buckets before the fit, [BUCKETS]: each is its share of the crops to the power -1/4.

    Under L2 a weight costs its square, so the scale of a column is the prior width of its weight. Unscaled, frequent
    n-grams are cheap and learn the generators and registers of the training texts; scaled down, they leave more to the
    many rare n-grams. The scaling is multiplied into the weights afterwards. Buckets in fewer than two crops get 0.
    """
    crops = np.bincount(matrix.indices, minlength=BUCKETS)
    share = crops / matrix.shape[0]
    scale = 1 / np.sqrt(np.sqrt(np.clip(share, _RAREST, 1.0)))  # roots are the same on every processor, powers are not
    scale /= np.sqrt((share * scale**2).sum() / share.sum())
    return np.asarray(np.where(crops < _FEWEST_CROPS, 0.0, scale))
