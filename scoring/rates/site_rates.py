"""The share by site verdicts, corrected for their errors, with all its denominators; and a line with it and the share.

At a low share the correction is everything: with a specificity of .98 and no LLM site at all, 2% are called llm. The
mathematics are in `scoring.estimate.intervals`. Sites count, never pages: the pages of a site agree (design effect
2.7-4.5 at 20 pages). Where Se and Sp were never measured there is nothing to correct with: the plain share with
Wilson's interval, and it says "uncorrected". Canary sites never count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from statistics import NormalDist
from typing import Any, Self

import msgspec

from scoring.errors import BadParameters
from scoring.estimate.error_counts import ErrorCounts
from scoring.estimate.intervals import Interval, Known, fits, interval_of
from scoring.estimate.remarks import Fact, Remark, RemarkKind
from scoring.rates.canary import is_canary
from scoring.rates.direct_share import DirectShare
from scoring.rates.versions import refuse_pooled
from stream.schema.records import SiteState
from stream.schema.vocabulary import SiteClass

UNCORRECTED, NO_SITES = "uncorrected", "no classifiable sites"
FEWEST_SITES = 5  # with fewer sites a share is no estimate: the headline says so, and gives the interval only
FEW_SITES = 30  # with fewer sites an interval is wider than any expected change


class SiteRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate with every denominator: sites = llm + human + undecided + unclassifiable."""

    rate: float | None  # llm of classifiable; None without a classifiable site
    low: float | None
    high: float | None
    method: str  # corrected | corrected by canaries | uncorrected | no classifiable sites
    llm: int
    human: int
    undecided: int
    classifiable: int  # llm + human + undecided
    unclassifiable: int
    sites: int
    confidence: float
    remarks: tuple[Remark, ...]  # the first is the headline


NEEDS_SCRIPT = "pages need JavaScript"  # why a site is not judged


def is_hidden_by_script(row: SiteState) -> bool:
    """Whether a site has no article because most of its pages have no text without JavaScript."""
    return not row.articles and 2 * row.needs_script > row.pages


def site_rate(
    verdicts: Counter[str],
    errors: ErrorCounts | None = None,
    confidence: float = 0.95,
    without_pages: int | None = None,
) -> SiteRate:
    """The rate over site verdicts, one per site; `without_pages` of them had no page, if pages are known.

    Undecided sites count as not llm; a remark says what the rate were if all of them were llm. With `errors` estimate
    and interval are corrected by them (Lang-Reiczigel); without, they are Wilson's, uncorrected, up to the bound that
    holds if the undecided are llm. Raises BadParameters for error counts by which nothing can be corrected: too few
    sites, or none that show the verdict to be better than chance (`ErrorCounts.unusable`).
    """
    if not 0 < confidence < 1:
        raise BadParameters(f"confidence lies between 0 and 1, not {confidence}")
    if errors is not None and errors.unusable:
        raise BadParameters(f"no rate can be corrected by these error counts: {errors.unusable}")
    llm, undecided, unclassifiable = (verdicts[kind] for kind in ("llm", "undecided", "unclassifiable"))
    sites, classifiable = verdicts.total(), verdicts.total() - unclassifiable
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    known = None if errors is None else Known(*map(float, msgspec.structs.astuple(errors)))
    interval: Interval | None = None
    method = NO_SITES
    remarks = [Remark(RemarkKind.NO_RATE)]
    if classifiable:
        interval = interval_of(llm, classifiable, known, z)
        method = UNCORRECTED if errors is None else errors.METHOD
        most = interval_of(llm + undecided, classifiable, known, z)
        if errors is None:  # measured errors count undecided sites as not llm, as here
            interval = interval._replace(high=most.high)
        headline = RemarkKind.RATE if classifiable >= FEWEST_SITES else RemarkKind.FEW_FOR_A_RATE
        counts = {"llm": llm, "number": classifiable, "corrected": errors is not None}
        remarks = [Remark(headline, {**interval._asdict(), "confidence": confidence, "method": method, **counts})]
        if undecided:
            remarks.append(Remark.of(RemarkKind.UNDECIDED, undecided=undecided, at_most=most.point))
        if FEWEST_SITES <= classifiable < FEW_SITES:
            remarks.append(Remark.of(RemarkKind.FEW_SITES, fewest=FEW_SITES))
    if errors is not None and known is not None and classifiable and not fits(llm, classifiable, known, z):
        # fewer sites are called llm than false alarms alone would be, or more than are found of LLM sites
        false_alarms = 1 - (errors.human_cleared + 1) / (errors.human_sites + 2)
        called, kind, bound = llm / classifiable, RemarkKind.BELOW_FALSE_ALARMS, false_alarms
        if called >= false_alarms:
            kind, bound = RemarkKind.ABOVE_FOUND, (errors.llm_found + 1) / (errors.llm_sites + 2)
        remarks.append(Remark.of(kind, called=called, bound=bound))
    facts: dict[str, Fact] = {"unclassifiable": unclassifiable, "sites": sites}
    if without_pages is not None and unclassifiable:
        facts["without_pages"] = without_pages
    return SiteRate(
        rate=interval and interval.point,
        low=interval and interval.low,
        high=interval and interval.high,
        method=method,
        llm=llm,
        human=verdicts[SiteClass.HUMAN],
        undecided=undecided,
        classifiable=classifiable,
        unclassifiable=unclassifiable,
        sites=sites,
        confidence=confidence,
        remarks=(*remarks, Remark(RemarkKind.UNCLASSIFIABLE, facts)),
    )


def rate_of(rows: Iterable[SiteState], errors: ErrorCounts | None = None, confidence: float = 0.95) -> SiteRate:
    """The rate over site rows, canaries left out; of the unclassifiable it knows which had no page so far.

    Raises PooledDetectors for rows of several detectors, rulesets, site methods or runs, and as `site_rate`.
    """
    counted = [row for row in rows if not is_canary(row.site)]
    refuse_pooled(counted)
    without_pages = sum(map(without_a_page, counted))
    return site_rate(Counter(row.verdict for row in counted), errors, confidence, without_pages)


def without_a_page(row: SiteState) -> bool:
    """Whether no page of an unclassifiable site was crawled so far; the others have too few scored articles."""
    return row.verdict == SiteClass.UNCLASSIFIABLE and not row.pages


def is_through_segments(scored: int, through_segments: int) -> bool:
    """Whether a site counts through segments alone: none of its scored pages is an article as a whole."""
    return scored == through_segments > 0


_JUDGED = {name: f"judged_{name}" for name in ("low", "high", "method", "remarks")} | {"rate": "judged_share"}


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
        verdicts = {_JUDGED.get(name, name): value for name, value in msgspec.structs.asdict(judged).items()}
        return cls(**msgspec.structs.asdict(direct), **verdicts, **more)
