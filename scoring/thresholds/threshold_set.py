"""A threshold set: the score at which a detector's flag turns from human to llm.

A few sets are published with a detector (`scoring.thresholds.published`); `farmwatch calibrate` writes the others from
labelled texts. A set belongs to one detector. Its digest is part of the identity under which scores are kept, so that
flags of two thresholds are never pooled.
"""

from __future__ import annotations

import hashlib
import math
import re
from typing import Literal

import msgspec

from scoring.sites.sprt import SprtParams

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
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()[:8]

    @property
    def tag(self) -> str:
        """Last part of the identity: the name, and the digest of a set that was not published."""
        return self.name if self.published else f"{self.name}-{self.digest}"


def valid_name(name: str) -> bool:
    """Whether this is a valid name: it becomes a part of identities, and of file names."""
    return _NAME.fullmatch(name) is not None
