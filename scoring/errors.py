"""What can go wrong in scoring, and what the operator does about it."""

from __future__ import annotations


class ScoringError(Exception):
    """Any failure of detectors, training or tallies. Not worth a retry: the same input fails the same way."""

    retriable = False


class UnknownDetector(ScoringError):
    """The configuration names a detector that this farmwatch does not have. The operator takes one of those listed."""


class BadWeights(ScoringError):
    """A weights file is truncated, altered, or of another format.

    The operator installs farmwatch anew (for the built-in weights), or trains again by `farmwatch train-detector`.
    """


class BadTrainingData(ScoringError):
    """A training file cannot be used: a broken line, a missing field, or too few texts of a label.

    The message names file and line; the operator mends the file.
    """


class MissingExtra(ScoringError):
    """Training needs packages that scoring does not. The operator runs `pip install 'farmwatch[train]'`."""


class TrainingRefused(ScoringError):
    """The trained detector flags too many human pages of a web source it has not seen, so no weights were written.

    The operator adds human texts of the registers that the message names, and trains again.
    """


class BadParameters(ScoringError):
    """Parameters of a test or an interval that make no sense, such as p0 >= p1. The message names them."""


class PooledDetectors(ScoringError):
    """Scores, verdicts or rows of several detectors were to be counted together, which means nothing.

    The message names both. The operator counts each by itself.
    """


class BadThresholds(ScoringError):
    """A threshold set cannot be used: its file is broken, its name unknown, or it belongs to another detector.

    The message names file and field. The operator mends `score.thresholds`, or runs `farmwatch calibrate`.
    """


class CalibrationRefused(ScoringError):
    """Labelled texts from which no threshold can be had: too few, of one label, or the detector cannot tell them apart.

    The message says how many of each kind there are and how many are needed. The operator labels more.
    """
