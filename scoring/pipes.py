"""The stages as functions on plain rows: what `farmwatch score`, `tally` and `estimate` run, without a log.

The field names of these structs are the columns of the pipes' JSON lines and stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from scoring.detector import Detector
from scoring.rate import ErrorCounts
from scoring.site_rates import SiteRate, site_rate
from scoring.site_verdict import SiteTest, SprtParams


class TextLine(msgspec.Struct, frozen=True, kw_only=True):
    """Input of `score`; further fields of a line are ignored."""

    id: str
    text: str


class ScoreLine(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `score`; score, p_llm and flag are null where the detector abstains."""

    id: str
    detector: str
    score: float | None
    p_llm: float | None
    flag: bool | None
    abstain: str
    tokens: int


class FlagLine(msgspec.Struct, frozen=True, kw_only=True):
    """Input of `tally`: one article of a site, in page order; flag null = abstained."""

    site: str
    flag: bool | None
    score: float | None = None


class SiteLine(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `tally`: one site."""

    site: str
    verdict: str
    pages_used: int
    pages: int  # lines of the site, abstentions included
    evidence: str


class SiteVerdictLine(msgspec.Struct, frozen=True, kw_only=True):
    """Input of `estimate`; further fields of a line are ignored. A line without a site is a site of its own."""

    site: str | None = None
    verdict: Literal["llm", "human", "undecided", "unclassifiable"]


class EstimateLine(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `estimate`; rate, low and high are null where no site could be classified."""

    rate: float | None
    low: float | None
    high: float | None
    llm: int
    human: int
    undecided: int
    classifiable: int
    unclassifiable: int
    sites: int
    confidence: float
    method: str
    text: str


def score_texts(detector: Detector, lines: Sequence[TextLine]) -> list[ScoreLine]:
    """Score a batch of lines, in order. A few hundred lines a call keep memory small and numpy busy."""
    return [
        ScoreLine(
            id=line.id,
            detector=detector.identity,
            score=scored.score,
            p_llm=scored.p_llm,
            flag=scored.flag,
            abstain=scored.abstain,
            tokens=scored.tokens,
        )
        for line, scored in zip(lines, detector.score([line.text for line in lines]), strict=True)
    ]


def tally_flags(lines: Iterable[FlagLine], params: SprtParams) -> list[SiteLine]:
    """Judge each site by the sequential test; sites in the order in which they first appear."""
    test = SiteTest(params)
    sites: dict[str, list[bool | None]] = {}
    for line in lines:
        sites.setdefault(line.site, []).append(line.flag)
    judged = []
    for site, flags in sites.items():
        verdict = test.decide([flag for flag in flags if flag is not None])
        judged.append(
            SiteLine(
                site=site,
                verdict=verdict.verdict,
                pages_used=verdict.pages_used,
                pages=len(flags),
                evidence=test.evidence(verdict),
            )
        )
    return judged


def estimate_sites(
    lines: Iterable[SiteVerdictLine], errors: ErrorCounts | None = None, confidence: float = 0.95
) -> EstimateLine:
    """The rate over site verdicts; of several lines for a site the last one counts. Raises as `scoring.estimate`."""
    verdicts: dict[str | int, str] = {}
    for number, line in enumerate(lines):
        verdicts[number if line.site is None else line.site] = line.verdict
    return estimate_line(site_rate(verdicts.values(), errors, confidence))


def estimate_line(found: SiteRate) -> EstimateLine:
    """A rate as the fields that `estimate` and `rate --json` print."""
    return EstimateLine(
        rate=found.rate.rate,
        low=found.rate.low,
        high=found.rate.high,
        llm=found.llm,
        human=found.human,
        undecided=found.undecided,
        classifiable=found.classifiable,
        unclassifiable=found.unclassifiable,
        sites=found.sites,
        confidence=found.rate.confidence,
        method=found.rate.method,
        text=found.text,
    )
