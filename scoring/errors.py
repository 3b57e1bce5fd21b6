"""The errors of scoring. Each docstring says what the operator does."""

from __future__ import annotations

from stream.text.user_errors import Exit, FarmwatchError


class ScoringError(FarmwatchError):
    """Any failure of detectors, training or tallies. No retry: the same input fails in the same way."""


class UnknownDetector(ScoringError):
    """The configuration names a detector that does not exist. The operator uses one of the listed names."""

    exit = Exit.USAGE


class BadWeights(ScoringError):
    """A weights file is truncated, altered, or of another format. The operator reinstalls farmwatch or trains again."""


class BadTrainingData(ScoringError):
    """A training file has a broken line, lacks a field, or has too few texts. The operator corrects the named file."""


class TooFewLabels(BadTrainingData):
    """Too few labelled texts or sites to learn from. The operator labels as many as the message says."""

    exit = Exit.PROBLEM


class TrainingRefused(ScoringError):
    """The trained detector flags too many human pages of a web source it has not seen; no weights were written.

    The operator adds human texts of the registers that the message names, and trains again.
    """

    exit = Exit.PROBLEM


class BadParameters(ScoringError, ValueError):
    """Parameters of a test or an interval are invalid, such as p0 >= p1. The operator corrects the named ones.

    A ValueError, so that a decoder adds the place to the message.
    """

    exit = Exit.USAGE


class BadIdentity(ScoringError):
    """A string is not a detector's identity. The message has the right form."""


class PooledDetectors(ScoringError):
    """Scores, verdicts or rows of two detectors would be counted together. The operator counts them separately."""


class BadThresholds(ScoringError):
    """A threshold set is broken, or belongs to another detector.

    The operator corrects `score.thresholds`, or calibrates the detector.
    """


class UnknownThresholds(BadThresholds):
    """No threshold set of this name is published for the detector. The operator names a published one, or a file."""

    exit = Exit.USAGE


class CalibrationRefused(ScoringError):
    """Labelled texts give no threshold: too few, of one label, or inseparable. The operator labels more."""


class Uncalibrated(ScoringError):
    """A detector without thresholds cannot make site verdicts. The operator calibrates it."""


class MissingModel(ScoringError):
    """A language model is not on this machine. The message names the searched place."""


class NotDownloaded(MissingModel):
    """A model of the hub is not in the cache of this machine. The operator downloads it, or sets a folder."""


class UnsupportedModel(ScoringError):
    """A language model cannot be used for scores, alone or with the other one of the pair.

    The operator uses another model, such as a base model and its instruction-tuned sister, or a smaller max_tokens.
    """


class NoDevice(ScoringError):
    """The configured device is missing. The operator corrects `score.pair.device`, or repairs the driver."""


class OutOfDeviceMemory(ScoringError):
    """A batch that fitted before does not fit now, even in smaller parts.

    The operator looks for other users of the GPU.
    """

    retriable = True


class PoisonText(ScoringError):
    """A text alone does not fit into memory, or loses the device each time. The stage dead-letters its record."""


class DeviceLost(ScoringError):
    """The device failed in the middle of a batch. The next call loads the models again."""

    retriable = True


class CannotScore(ScoringError):
    """The configured detectors could not be loaded: the process ends with the reason."""

    fatal = True  # not the fault of a record


class DeviceGone(ScoringError):
    """The device failed several times in a row without a scored text in between: the process ends.

    Its supervisor starts another. If that fails too, the operator checks the GPU and its driver.
    """

    fatal = True  # not the fault of a record, so that none is dead-lettered


class NoSiteTest(ScoringError):
    """There are no numbers with which this detector's scores judge sites by flags.

    The operator calibrates it on labelled sites, sets the numbers, or uses another method or detector.
    """


class NoDeciles(NoSiteTest):
    """No decile numbers ship for this detector. The operator trains some, or uses another method."""


class BadSiteNumbers(ScoringError):
    """A file of decile numbers is broken, or was learned from another detector's scores.

    The operator trains other numbers, or unsets tally.deciles for the file that ships.
    """


class UnreadableMethod(BadSiteNumbers):
    """The site method of a run is of another version. The operator uses that version, or replays again."""


class FoldFailed(ScoringError):
    """A record, or a site of a batch, cannot be tallied. The batch is retried record by record; no action is needed."""

    retriable = True
