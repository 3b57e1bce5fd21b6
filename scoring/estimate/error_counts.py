"""Counts of right site verdicts on sites of known truth, which correct a rate.

A correction divides by Youden's index J = Se + Sp - 1. Counts that do not show J to be above 0 correct nothing: found 0
of 20 and cleared 22 of 22 is the result of a verdict that never says llm, and divided by the small J that smoothing
leaves, any share becomes 0 or 1. J is a difference of two shares, Se and 1 - Sp; its interval is Newcombe's (Interval
estimation for the difference between independent proportions, Statistics in Medicine 17, 1998, method 11), combined
from Wilson's intervals [l, u] of the two:

    lower bound of J = Se - (1 - Sp) - sqrt((Se - l_Se)^2 + (u_FPR - FPR)^2),    FPR = 1 - Sp.
"""

from __future__ import annotations

import math
from typing import ClassVar

import msgspec

from scoring.errors import BadParameters
from scoring.estimate.intervals import Z95, wilson
from stream.text.ranges import Count

FEWEST_KNOWN = 5  # sites of each truth: with fewer, even a verdict without an error is uncertain


class ErrorCounts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Right and wrong site verdicts on sites of known truth; the undecided count as not llm."""

    METHOD: ClassVar[str] = "corrected"

    llm_sites: Count
    """n1: LLM sites tested."""
    llm_found: Count
    """a: of them called llm."""
    human_sites: Count
    """n0: human sites tested."""
    human_cleared: Count
    """b: of them not called llm."""

    def __post_init__(self) -> None:
        if not (0 <= self.llm_found <= self.llm_sites and 0 <= self.human_cleared <= self.human_sites):
            raise BadParameters(f"error counts need 0 <= found <= sites for both kinds, not {self}")

    @property
    def youden_low(self) -> float:
        """Lower bound of the 95% interval of Se + Sp - 1; -1 without sites of one kind."""
        if not (self.llm_sites and self.human_sites):
            return -1.0
        called = self.human_sites - self.human_cleared
        se, fpr = wilson(self.llm_found, self.llm_sites, Z95), wilson(called, self.human_sites, Z95)
        return se.point - fpr.point - math.hypot(se.point - se.low, fpr.high - fpr.point)

    @property
    def unusable(self) -> str:
        """The reason why these counts cannot correct a rate; "" if they can."""
        counts = f"{self.llm_found} of {self.llm_sites} LLM and {self.human_sites - self.human_cleared} of"
        counts += f" {self.human_sites} human ones called llm"
        if min(self.llm_sites, self.human_sites) < FEWEST_KNOWN:
            return f"too few sites of known truth: at least {FEWEST_KNOWN} of each are needed ({counts})"
        if self.llm_found * self.human_sites <= (self.human_sites - self.human_cleared) * self.llm_sites:
            return f"they find the site verdict no better than chance ({counts})"
        if self.youden_low <= 0:
            return f"they do not show the site verdict to be better than chance ({counts})"
        return ""


class CanaryCounts(ErrorCounts, frozen=True, forbid_unknown_fields=True):
    """Error counts of canary sites; an estimate corrected by them says so."""

    METHOD: ClassVar[str] = "corrected by canaries"
