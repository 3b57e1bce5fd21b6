"""The share of LLM sites with its interval, corrected for the errors of the site verdict.

At a low share the correction is everything: with a specificity of .98 and no LLM site at all, 2% are called llm. The
mathematics are in `intervals`. `n` counts sites, never pages: the pages of a site agree (design effect
2.7-4.5 at 20 pages). Where Se and Sp were never measured there is nothing to correct with: the plain share with
Wilson's interval, and it says "uncorrected".
"""

from __future__ import annotations

from statistics import NormalDist

import msgspec

from scoring.errors import BadParameters
from scoring.estimate.error_counts import ErrorCounts
from scoring.estimate.intervals import Interval, Known, fits, interval_of
from scoring.estimate.remarks import Remark, RemarkKind

UNCORRECTED, NO_SITES = "uncorrected", "no classifiable sites"
FEWEST_SITES = 5  # with fewer sites a share is no estimate: the headline says so, and gives the interval only
FEW_SITES = 30  # with fewer sites an interval is wider than any expected change


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """A share with its interval; None without a denominator."""

    rate: float | None
    low: float | None
    high: float | None
    llm: int  # x
    classifiable: int  # n: llm + human + undecided
    confidence: float
    method: str  # corrected | corrected by canaries | uncorrected | no classifiable sites
    remarks: tuple[Remark, ...]  # the first is the headline


def estimate(
    llm: int, classifiable: int, errors: ErrorCounts | None, confidence: float = 0.95, undecided: int = 0
) -> Rate:
    """Estimate the share of LLM sites from `llm` of `classifiable` site verdicts.

    The `undecided` among them count as not llm; a remark says what the rate were if all of them were llm.
    With `errors` estimate and interval are corrected by them (Lang-Reiczigel); without, they are Wilson's, uncorrected,
    up to the bound that holds if the undecided are llm.
    Raises BadParameters for counts that cannot be, and for error counts by which nothing can be corrected: too few
    sites, or none that show the verdict to be better than chance (`ErrorCounts.unusable`).
    """
    if not 0 <= llm <= classifiable:
        raise BadParameters(f"a rate needs 0 <= llm <= classifiable, not {llm} of {classifiable}")
    if not 0 <= undecided <= classifiable - llm:
        raise BadParameters(f"{undecided} undecided do not fit into {classifiable} sites of which {llm} are llm")
    if not 0 < confidence < 1:
        raise BadParameters(f"confidence lies between 0 and 1, not {confidence}")
    if errors is not None and errors.unusable:
        raise BadParameters(f"no rate can be corrected by these error counts: {errors.unusable}")
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
    return Rate(
        rate=interval and interval.point,
        low=interval and interval.low,
        high=interval and interval.high,
        llm=llm,
        classifiable=classifiable,
        confidence=confidence,
        method=method,
        remarks=tuple(remarks),
    )
