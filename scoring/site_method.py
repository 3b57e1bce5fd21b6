"""What a method is that judges a site by its page scores: what it is given, what it says, and in which words."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

LLM, HUMAN, UNDECIDED, UNCLASSIFIABLE = "llm", "human", "undecided", "unclassifiable"
DECIDED = (LLM, HUMAN)

MethodName = Literal["sprt", "gaussian", "deciles"]


class PageScore(msgspec.Struct, frozen=True):
    """What a detector said of one text of a site; None = not known. A text on which it abstained is no PageScore."""

    flag: bool | None
    score: float | None = None  # on the detector's own scale; finite
    fetched_at: int = 0  # ms UTC; 0 = unknown


class SiteVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a method says of a site, and what it rests on."""

    verdict: str  # llm | human | undecided | unclassifiable
    pages_used: int  # scores up to the decision; all of them where there is none
    flagged: int  # of pages_used
    llr: float  # after pages_used, nats; > 0 speaks for llm. Of `deciles`: the margin of the support vector machine
    pages: int  # usable scores there were before the site closed
    method: MethodName = "sprt"
    decided_at: int = 0  # fetch time of the page with which the site was first decided, ms; 0 = not decided
    before: str = ""  # the verdict that later pages corrected; "" = none
    before_pages: int = 0  # scores on which it had rested
    mixed: bool = False  # two clear groups of scores, see scoring.bimodal
    closed: bool = False  # scores came after the site closed: no later one is evidence either


class SiteMethod(Protocol):
    """Judges a site. Pure: the verdict depends on the pages and their order only."""

    @property
    def name(self) -> MethodName:
        """The method's name in settings and rows."""

    @property
    def digest(self) -> str:
        """Tells methods of one name apart whose verdicts may differ, see `method_digest`."""

    def decide(self, pages: Sequence[PageScore]) -> SiteVerdict:
        """Judge a site by page scores in the order of their fetch; those that lack what it needs are passed over."""

    def evidence(self, verdict: SiteVerdict) -> str:
        """Why a verdict is what it is, in one sentence for people."""


def method_digest(name: MethodName, numbers: msgspec.Struct, close_after_ms: int | None) -> str:
    """SHA-256 of all that a verdict follows from beside the scores: numbers and closing rule; 8 hex digits.

    Verdicts of two digests are not pooled: they come from two tests, whatever their method's name.
    """
    parts = [name, numbers, close_after_ms]
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:8]


def afterthoughts(verdict: SiteVerdict) -> str:
    """What every method's sentence ends with: what was corrected, and whether the site is mixed."""
    said = ""
    if verdict.before:
        said += f"; corrected: {verdict.before} after the first {verdict.before_pages}"
    if verdict.mixed:
        said += "; mixed: two clear groups of scores, one on either side of the threshold"
    return said
