"""The rate by site verdicts, with all its denominators, and a line with it and the share. Canary sites never count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, Self

import msgspec

from scoring.estimate.error_counts import ErrorCounts
from scoring.estimate.rate import Rate, estimate
from scoring.estimate.remarks import Fact, Remark, RemarkKind
from scoring.rates.canary import is_canary
from scoring.rates.direct_share import DirectShare
from scoring.rates.versions import refuse_pooled
from stream.schema.records import SiteState
from stream.schema.vocabulary import SiteClass


class SiteRate(Rate, frozen=True, kw_only=True):
    """A rate with every denominator: sites = llm + human + undecided + unclassifiable."""

    human: int
    undecided: int
    unclassifiable: int
    sites: int
    without_pages: int | None = None  # of the unclassifiable: without a page so far; None if pages are not known


def site_rate(
    verdicts: Iterable[str],
    errors: ErrorCounts | None = None,
    confidence: float = 0.95,
    without_pages: int | None = None,
) -> SiteRate:
    """The rate over site verdicts, one per site; `without_pages` of them had no page. Raises as `estimate`."""
    counts = Counter(verdicts)
    sites, unclassifiable = counts.total(), counts[SiteClass.UNCLASSIFIABLE]
    rate = estimate(counts[SiteClass.LLM], sites - unclassifiable, errors, confidence, counts[SiteClass.UNDECIDED])
    facts: dict[str, Fact] = {"unclassifiable": unclassifiable, "sites": sites}
    if without_pages is not None and unclassifiable:
        facts["without_pages"] = without_pages
    return SiteRate(
        **{**msgspec.structs.asdict(rate), "remarks": (*rate.remarks, Remark(RemarkKind.UNCLASSIFIABLE, facts))},
        human=counts[SiteClass.HUMAN],
        undecided=counts[SiteClass.UNDECIDED],
        unclassifiable=unclassifiable,
        sites=sites,
        without_pages=without_pages,
    )


def rate_of(rows: Iterable[SiteState], errors: ErrorCounts | None = None, confidence: float = 0.95) -> SiteRate:
    """The rate over site rows, canaries left out; of the unclassifiable it knows which had no page so far.

    Raises PooledDetectors for rows of several detectors, rulesets, site methods or runs, and as `estimate`.
    """
    counted = [row for row in rows if not is_canary(row.site)]
    refuse_pooled(counted)
    without_pages = sum(row.verdict == SiteClass.UNCLASSIFIABLE and row.pages == 0 for row in counted)
    return site_rate((row.verdict for row in counted), errors, confidence, without_pages)


class EstimateLine(DirectShare, frozen=True, kw_only=True):
    """Output of `estimate`: the share, and the share by site verdicts alone (`judged_...`). Remarks become texts."""

    judged_share: float | None  # llm of classifiable; None without a classifiable site
    judged_low: float | None
    judged_high: float | None
    judged_method: str  # corrected | corrected by canaries | uncorrected | no classifiable sites
    llm: int
    human: int
    undecided: int
    classifiable: int
    unclassifiable: int
    sites: int
    confidence: float
    judged_remarks: tuple[Remark, ...] = ()

    @property
    def open_of_scored(self) -> int:
        """The sites with a scored article and no verdict llm or human."""
        return max(0, self.scored_sites - self.llm - self.human)

    @classmethod
    def of(cls, judged: SiteRate, direct: DirectShare, **more: Any) -> Self:
        """Of both estimates; a larger line has `more` fields."""
        return cls(
            **msgspec.structs.asdict(direct),
            judged_share=judged.rate,
            judged_low=judged.low,
            judged_high=judged.high,
            judged_method=judged.method,
            llm=judged.llm,
            human=judged.human,
            undecided=judged.undecided,
            classifiable=judged.classifiable,
            unclassifiable=judged.unclassifiable,
            sites=judged.sites,
            confidence=judged.confidence,
            judged_remarks=judged.remarks,
            **more,
        )
