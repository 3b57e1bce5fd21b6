"""Scored texts of known origin, of one detector, and how well the scores separate them.

**AUROC** is the probability that an LLM text looks more like llm than a human one, with ties counting half: Mann and
Whitney's statistic. Its variance is that of the texts' placements (DeLong, Biometrics 44, 1988), summed by site
(Obuchowski, Biometrics 53, 1997); its interval is on the logit scale.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from scoring.detectors.registry import DETECTORS, Number, base_of
from scoring.errors import CalibrationRefused, PooledDetectors
from scoring.estimate.intervals import Z95
from scoring.interface import name_of
from scoring.statistics.logistic import logistic
from scoring.statistics.shares import Codes, Numbers, cluster_sums, exact_interval

Labels = NDArray[np.bool_]


class Auroc(msgspec.Struct, frozen=True, kw_only=True):
    """Area under the ROC curve with its 95% interval."""

    value: float
    low: float
    high: float


class ScoredLabel(NamedTuple):
    """A text of known origin, and a detector's number for it."""

    identity: str  # the detector's
    llm: bool  # True: written by a language model
    number: float | None  # that of `compared`; None = the detector abstained
    words: int = -1  # -1 = unknown
    site: str = ""  # "" = unknown
    genre: str = ""  # "" = unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledScores:
    """Columns of texts on which the detector did not abstain; arrays and lists are of one length."""

    detector: str  # identity without its threshold set
    number: Number  # the kind of `value`
    llm_below: bool
    value: Numbers  # the numbers that are compared with the threshold
    llm: Labels
    words: Codes
    sites: list[str]  # "" = unknown: a site of its own
    genres: list[str]
    abstained_human: int = 0
    abstained_llm: int = 0

    @property
    def toward_llm(self) -> Numbers:
        """`value`, turned so that larger looks more like llm."""
        return -self.value if self.llm_below else self.value

    def flagged(self, threshold: float) -> Labels:
        """Mark the texts strictly beyond a threshold, on the side of llm."""
        return self.value < threshold if self.llm_below else self.value > threshold

    @property
    def clusters(self) -> Codes:
        """A number for each text, equal for texts of a site."""
        codes: dict[tuple[str, int], int] = {}
        keys = [(site, -1) if site else ("", number) for number, site in enumerate(self.sites)]
        return np.array([codes.setdefault(key, len(codes)) for key in keys], np.intp)

    @property
    def knows_sites(self) -> bool:
        return any(self.sites)

    def where(self, chosen: Labels) -> LabelledScores:
        """The texts that are `chosen` [n]."""
        return replace(
            self,
            value=self.value[chosen],
            llm=self.llm[chosen],
            words=self.words[chosen],
            sites=[site for site, inside in zip(self.sites, chosen, strict=True) if inside],
            genres=[genre for genre, inside in zip(self.genres, chosen, strict=True) if inside],
        )


def compared(base: str) -> Number:
    """The number that is compared with a threshold: by the detector's row, or the score of a foreign one."""
    kind = DETECTORS.get(name_of(base))
    return kind.compared if kind else "score"


def gather(rows: Sequence[ScoredLabel]) -> LabelledScores:
    """Columns of rows of one detector.

    The texts of a foreign detector determine the side of llm. Raises PooledDetectors with both names, and
    CalibrationRefused if the detector abstained on every text, or texts of a label are missing.
    """
    bases = sorted({base_of(row.identity) for row in rows})
    if len(bases) > 1:
        raise PooledDetectors(
            f"scores of {bases[0]} and of {bases[1]} in one calibration: a threshold is of one detector, "
            "so give each a file of its own"
        )
    used = [row for row in rows if row.number is not None]
    missing = [label for label, llm in (("human", False), ("llm", True)) if not any(row.llm is llm for row in used)]
    if missing:
        abstained = f"; the detector abstained on {len(rows) - len(used)}" if len(used) < len(rows) else ""
        raise CalibrationRefused(
            f"no scored text with the label {' and none with '.join(missing)} among {len(rows)}{abstained}: "
            "a threshold needs texts of both labels"
        )
    kind = DETECTORS.get(name_of(bases[0]))
    scores = LabelledScores(
        detector=bases[0],
        number=compared(bases[0]),
        llm_below=kind is not None and kind.llm_below,
        value=np.array([row.number for row in used], np.float64),
        llm=np.array([row.llm for row in used], np.bool_),
        words=np.array([row.words for row in used], np.intp),
        sites=[row.site for row in used],
        genres=[row.genre for row in used],
        abstained_human=sum(not row.llm for row in rows) - sum(not row.llm for row in used),
        abstained_llm=sum(row.llm for row in rows) - sum(row.llm for row in used),
    )
    if kind is not None or separation(scores).value >= 0.5:
        return scores
    return replace(scores, llm_below=True)


def auroc(human: Numbers, llm: Numbers) -> float | None:
    """Area under the ROC curve of numbers, of which larger look more like llm. None without both labels."""
    return float(_share_below(llm, human).mean()) if len(human) and len(llm) else None


def _share_below(values: Numbers, others: Numbers) -> Numbers:
    """For each value, the share of `others` below it, with equal ones counting half; there is at least one other."""
    ordered = np.sort(others)
    ranks = np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")
    return np.asarray(ranks / (2 * len(ordered)))


def separation(scores: LabelledScores) -> Auroc:
    """AUROC with its interval; there is a text of each label."""
    x, llm, clusters = scores.toward_llm, scores.llm, scores.clusters
    h, m = x[~llm], x[llm]
    placement = np.empty(len(x))  # for an LLM text: share of human texts below it; for a human one: of LLM texts above
    placement[llm], placement[~llm] = _share_below(m, h), 1 - _share_below(h, m)
    value = float(placement[llm].mean())
    parts = cluster_sums((placement - value) / np.where(llm, len(m), len(h)), clusters)
    variance = float((parts**2).sum()) * len(parts) / max(1, len(parts) - 1)
    fewest = min(len(np.unique(clusters[llm])), len(np.unique(clusters[~llm])))
    if variance < 1e-18 or not 0 < value < 1:  # no overlap: as a share in which all or none of as many texts count
        low, high = exact_interval(value * fewest, fewest)
        return Auroc(value=value, low=low, high=high)
    logit, half = math.log(value / (1 - value)), Z95 * math.sqrt(variance) / (value * (1 - value))
    return Auroc(value=value, low=float(logistic(logit - half)), high=float(logistic(logit + half)))
