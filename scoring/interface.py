"""The interface of detectors, their identities, and what site methods take and give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

from scoring.errors import Uncalibrated

BUILT_IN = "lite-ngram"  # the detector that ships with its weights, and the default
UNCALIBRATED = "uncalibrated"  # last part of the identity of a detector without a threshold set


class TextScore(msgspec.Struct, frozen=True, kw_only=True):
    """A detector's score of one text, and fields of a line of `farmwatch lab score`, whose names and order are fixed.

    If the detector abstains, score, p_llm and flag are None and `abstain` has the reason.
    """

    score: float | None = None  # the detector's own scale
    p_llm: float | None = None  # calibrated probability, if the detector has one
    flag: bool | None = None  # True = looks like a language model's text
    abstain: str = ""  # a word: too_short, too_long, few_function_words, …; "" = not abstained
    tokens: int = 0  # tokens that the detector read
    windows: int = 0  # windows that a language model read, see scoring.engine.tokens; 0 = a detector without windows
    windows_flagged: int | None = None  # of these, alone beyond the threshold; None = no threshold
    windows_spread: float | None = None  # standard deviation of their scores, weighted by tokens; None below two


class DetectorCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of the detectors since the start, and current memory of their device."""

    tokens: int = 0  # of the read texts
    padding: int = 0  # computed padding positions
    out_of_memory: int = 0
    lost: int = 0  # losses of the device
    poison: int = 0  # texts that must be dead-lettered
    batch_tokens: int = 0  # budget of a batch: halved when memory is short
    used_bytes: int = 0  # of the device's memory, held by this process; zeros for a CPU
    peak_bytes: int = 0
    total_bytes: int = 0


class Detector(Protocol):
    """Scores texts. Pure: the same texts give the same scores, in any batch."""

    @property
    def identity(self) -> str:
        """Name, weights and threshold in one string. Scores of two identities are never pooled."""

    @property
    def warning(self) -> str:
        """The warning shown with its scores, with measured error rates."""

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """One TextScore per text, in order. Accepts any string; abstains with a reason if it cannot judge."""


def name_of(identity: str) -> str:
    """The detector's name, as in `score.detectors`."""
    return identity.partition("/")[0]


def calibrated(identity: str) -> bool:
    """Whether the detector has a threshold set; without one it gives scores but no flags."""
    return identity.rpartition("/")[2] != UNCALIBRATED


def refuse_uncalibrated(identities: Sequence[str]) -> None:
    """Raises Uncalibrated if one of these detectors has no thresholds, because site verdicts need flags."""
    for identity in identities:
        if not calibrated(identity):
            raise Uncalibrated(f"{identity} has no thresholds", detector=name_of(identity))


MethodName = Literal["sprt", "deciles"]


class PageScore(msgspec.Struct, frozen=True):
    """A detector's score of one text of a site; None = unknown. A text on which it abstained has none."""

    flag: bool | None
    score: float | None = None  # on the detector's own scale; finite
    fetched_at: int = 0  # ms UTC; 0 = unknown


class SiteVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A method's verdict on a site, and its evidence."""

    verdict: str  # llm | human | undecided | unclassifiable
    pages_used: int  # scores up to the decision; all of them without a decision
    flagged: int  # of pages_used
    llr: float  # after pages_used, nats; > 0: evidence for llm. For `deciles`: the margin of the support vector machine
    pages: int  # usable scores before the site closed
    method: MethodName = "sprt"
    decided_at: int = 0  # fetch time of the page that first decided the site, ms; 0 = not decided
    before: str = ""  # the verdict that later pages corrected; "" = none
    before_pages: int = 0  # scores that it was based on
    mixed: bool = False  # two clear groups of scores, see scoring.sites.bimodal
    closed: bool = False  # scores came after the site closed, so that later ones are not evidence either
