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
    """Training, and pairs of language models, need packages that the rest does not.

    The message names the extra: the operator runs `pip install 'farmwatch[train]'` or `'farmwatch[gpu]'`.
    """


class TrainingRefused(ScoringError):
    """The trained detector flags too many human pages of a web source it has not seen, so no weights were written.

    The operator adds human texts of the registers that the message names, and trains again.
    """


class BadParameters(ScoringError, ValueError):
    """Parameters of a test or an interval that make no sense, such as p0 >= p1. The message names them.

    A ValueError, so that a decoder that meets them in a file or in a row says where, as of any other wrong value.
    """


class BadIdentity(ScoringError):
    """What is given as a detector's identity is none. The message says how one is formed."""


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


class Uncalibrated(ScoringError):
    """A detector without thresholds was to make site verdicts. The operator runs `farmwatch calibrate`."""


class MissingModel(ScoringError):
    """A language model of the pair is not on this machine. The message says where it was looked for and what to run."""


class UnsupportedModel(ScoringError):
    """A language model cannot be scored with: no safetensors weights, a head that is not linear, too few positions.

    The message says which; the operator takes another model, or a smaller max_tokens.
    """


class DifferentTokenizers(ScoringError):
    """Observer and performer cut a text into different tokens, so their logits cannot be compared.

    The operator takes two models of one family, such as a base model and its instruction-tuned sister.
    """


class NoDevice(ScoringError):
    """The configured device is not there. The operator corrects `device`, or mends the driver."""


class OutOfDeviceMemory(ScoringError):
    """What fitted into the device's memory before does not fit now. Worth a retry: something else may hold the memory.

    The engine takes smaller batches first. If it stays, the operator looks at who else uses the card.
    """

    retriable = True


class PoisonText(ScoringError):
    """One text fails whatever is around it: alone it does not fit into memory, or it loses the device each time.

    The stage buries its record; its neighbours are scored. Nothing to do but look at the buried text.
    """


class DeviceLost(ScoringError):
    """The device failed in the middle of a batch. Worth a retry: the next call loads the models again."""

    retriable = True


class CannotScore(ScoringError):
    """The configured detectors could not be loaded: the process ends, and says with this what is wrong."""

    fatal = True  # not the fault of a record


class DeviceGone(ScoringError):
    """The device failed several times in a row and gave nothing in between, so this process is of no more use.

    It ends, its supervisor starts another; if that fails too, the operator looks at the card and its driver.
    """

    fatal = True  # not the fault of a record: none is buried for it


class TooFewLabels(BadTrainingData):
    """There are too few labelled texts or sites to learn from; the message says how many are needed."""


class UnknownThresholds(BadThresholds):
    """No threshold set of this name is published for the detector. The operator names one that is, or a file."""


class NoSiteTest(ScoringError):
    """No numbers are known by which this detector's scores could judge sites.

    The operator calibrates it on labelled sites, sets the numbers himself, or takes another method or detector.
    """


class BadSiteNumbers(ScoringError):
    """A file of decile numbers is broken, or was learned from another detector's scores. The message names both.

    The operator makes it anew by `farmwatch train-sites`, or leaves tally.deciles out for the one that ships.
    """


class FoldFailed(ScoringError):
    """A record, or a site of a batch, cannot be tallied. The batch is tried again record by record; nobody need act.

    The record at fault then goes to the dead letters, with its own error.
    """

    retriable = True
