"""Threshold sets: the score at which a detector's flag turns from human to llm.

A set belongs to one detector. Its digest is part of the identity under which scores are kept, so that flags of two
thresholds are never pooled. Calibration writes sets from labelled texts. The authors of Binoculars published
two for one pair, Falcon-7B as observer and its instruct sibling as performer, in bfloat16 and on the first 512 tokens
(arXiv 2401.12070, and their code): `accuracy` with the best F1, `low-fpr` at a false-positive rate of .01 %.
docs/explanation/calibration.md has their errors on real pages.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from scoring.errors import BadThresholds, UnknownThresholds
from scoring.sites.family import not_as_measured
from scoring.sites.sprt import SprtParams
from stream.text.whole_files import write_whole

_NAME = re.compile("[a-z0-9][a-z0-9.-]{0,31}")


class Curve(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Platt scaling: logit p_llm = slope * number + offset, fitted at equal weights of both labels."""

    slope: float
    offset: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.slope) and math.isfinite(self.offset)):
            raise ValueError(f"slope and offset are numbers, not {self.slope} and {self.offset}")

    def p_llm(self, number: float) -> float:
        """Probability that a text with this number is by a model, if half of all texts were."""
        from scoring.statistics.logistic import logistic  # numpy, only when a probability is needed

        return float(logistic(self.slope * number + self.offset))


class Measured(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was measured at a threshold: another one has other errors."""

    threshold: float
    flags: float  # share of human texts that is flagged


class ThresholdSet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A detector's threshold, curve and site test. Raises ValueError for a bad name or number."""

    name: str  # up to 32 of a-z 0-9 - . without a leading dash or dot: the operator's name for it
    detector: str  # the identity without its threshold set, such as "binoculars/<pair>/bfloat16/512"
    number: Literal["score", "p_llm"] = "score"  # the compared number
    threshold: float
    llm_below: bool  # True: strictly below is llm (Binoculars); False: strictly above
    curve: Curve | None = None  # p_llm from the score; None = no p_llm of its own
    site_test: SprtParams | None = None  # measured on labelled sites; None = the detector's default
    published: bool = False  # True: came with the detector, not measured by the operator
    measured_on: str = ""  # the texts behind the numbers, in words; "" = unknown
    measured: Measured | None = None  # None: its errors are unknown

    def __post_init__(self) -> None:
        if not valid_name(self.name):
            raise ValueError(f"name is up to 32 of a-z, 0-9, - and ., not {self.name!r}")
        if not math.isfinite(self.threshold):
            raise ValueError(f"threshold is a number, not {self.threshold}")
        if self.curve is not None and self.number == "p_llm":
            raise ValueError("curve gives p_llm from the score, so number is score")

    def flag(self, number: float) -> bool:
        return number < self.threshold if self.llm_below else number > self.threshold

    @property
    def digest(self) -> str:
        """SHA-256 of everything that changes a flag, a probability or a site verdict; 8 hex digits."""
        numbers = msgspec.to_builtins(self)
        del numbers["measured_on"], numbers["measured"]
        return hashlib.sha256(msgspec.json.encode(numbers)).hexdigest()[:8]

    def with_errors(self, flags: float, measured_on: str) -> ThresholdSet:
        """This set with the share of human texts that it flags, measured on these."""
        measured = Measured(threshold=self.threshold, flags=flags)
        return msgspec.structs.replace(self, measured_on=measured_on, measured=measured)

    @property
    def tag(self) -> str:
        """Last part of the identity: the name, and the digest of a set that was not published."""
        return self.name if self.published else f"{self.name}-{self.digest}"


def valid_name(name: str) -> bool:
    """Whether this is a valid name: it becomes a part of identities, and of file names."""
    return _NAME.fullmatch(name) is not None


_SLASHES = 3  # of a base: binoculars / pair / dtype / max_tokens
_PUBLISHED = {"accuracy": 0.9015310749276843, "low-fpr": 0.8536432310785527}
_LARGEST_BYTES = 1 << 20  # a set has a few hundred bytes; a larger file is something else


def published_for(base: str) -> list[ThresholdSet]:
    """The sets that are published for a detector of this base, by name; none for most."""
    if base.count("/") != _SLASHES or not_as_measured(base):
        return []
    return [
        ThresholdSet(name=name, detector=base, threshold=threshold, llm_below=True, published=True)
        for name, threshold in sorted(_PUBLISHED.items())
    ]


def load_thresholds(name_or_path: str, base: str, own: Sequence[ThresholdSet] = ()) -> ThresholdSet:
    """The set that `score.thresholds` names for the detector of this base: a published name, or a file.

    `own` sets came with the detector's weights. A name with a slash or the ending .json is a file. Raises BadThresholds
    with the fault and the action.
    """
    if "/" not in name_or_path and not name_or_path.endswith(".json"):
        sets = [*published_for(base), *(one for one in own if one.detector == base)]
        published = {known.name: known for known in sets}
        if name_or_path in published:
            return published[name_or_path]
        why = not_as_measured(base) if name_or_path in _PUBLISHED else ""
        names = f"; published are {', '.join(published)}" if published else ""
        raise UnknownThresholds(
            f"no threshold set {name_or_path!r} is published for {base}{why and f' ({why})'}{names}"
        )
    thresholds = read_thresholds(Path(name_or_path))
    if thresholds.detector != base:
        raise BadThresholds(f"{name_or_path}: thresholds of {thresholds.detector}, not of {base}")
    return thresholds


def read_thresholds(path: Path) -> ThresholdSet:
    """The set in a file, for any detector. Raises BadThresholds.

    The errors of one are unknown if its threshold was edited since they were measured.
    """
    try:
        with path.open("rb") as file:
            thresholds = msgspec.json.decode(file.read(_LARGEST_BYTES), type=ThresholdSet)
    except OSError as error:
        raise BadThresholds(f"{path}: cannot be read: {error.strerror}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise BadThresholds(f"{path}: no threshold set: {error}") from error
    if thresholds.published:
        raise BadThresholds(f"{path}: published sets come with the program, not from a file: set published to false")
    if thresholds.measured is None or thresholds.measured.threshold != thresholds.threshold:
        return msgspec.structs.replace(thresholds, measured_on="", measured=None)
    return thresholds


def write_thresholds(path: Path, thresholds: ThresholdSet, *, force: bool = False) -> None:
    """Write a set as readable JSON, in one step. Raises FileExistsError without `force`, and OSError."""
    body = msgspec.json.format(msgspec.json.encode(thresholds, order="sorted"), indent=2) + b"\n"
    write_whole(path, body, force=force)
