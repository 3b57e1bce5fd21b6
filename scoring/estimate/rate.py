"""The share of LLM sites with its interval, corrected for the errors of the site verdict, and in words.

At a low share the correction is everything: with a specificity of .98 and no LLM site at all, 2% are called llm. The
mathematics are in `intervals` and `sites_needed`. `n` counts sites, never pages: the pages
of a site agree (design effect 2.7-4.5 at 20 pages). Where Se and Sp were never measured there is nothing to correct
with: the plain share with Wilson's interval, and it says "uncorrected".
"""

from __future__ import annotations

from statistics import NormalDist

import msgspec

from scoring.errors import BadParameters
from scoring.estimate.error_counts import ErrorCounts
from scoring.estimate.intervals import Interval, Known, corrected_interval, fits, wilson
from scoring.estimate.sites_needed import SitesNeeded, sites_needed

CORRECTED, UNCORRECTED, NO_SITES = ErrorCounts.METHOD, "uncorrected", "no classifiable sites"
FEWEST_SITES = 5  # with fewer sites a share is no estimate: the text says so first, and gives the interval only
FEW_SITES = 30  # with fewer sites an interval is wider than any expected change
HALF_WIDTH = 0.10  # of an interval that is narrow enough, unless set


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """A share with its interval; None without a denominator. `text` states it with its denominators."""

    rate: float | None
    low: float | None
    high: float | None
    llm: int  # x
    classifiable: int  # n: llm + human + undecided
    confidence: float
    method: str  # corrected | corrected by canaries | uncorrected | no classifiable sites
    text: str
    more_sites: int | None = 0  # classifiable sites missing for the wanted half width; None: no number suffices
    more_known_sites: int = 0  # sites of known truth missing, if more_sites is None


def estimate(
    llm: int,
    classifiable: int,
    errors: ErrorCounts | None,
    confidence: float = 0.95,
    undecided: int = 0,
    half_width: float = HALF_WIDTH,
) -> Rate:
    """Estimate the share of LLM sites from `llm` of `classifiable` site verdicts.

    The `undecided` among them count as not llm; the text says what the rate were if all of them were llm.
    With `errors` estimate and interval are corrected by them (Lang-Reiczigel); without, they are Wilson's, uncorrected,
    up to the bound that holds if the undecided are llm.
    An interval wider than `half_width` to either side says how many more sites it needs.
    Raises BadParameters for counts that cannot be, and for error counts by which nothing can be corrected: too few
    sites, or none that show the verdict to be better than chance (`ErrorCounts.unusable`).
    """
    if not 0 <= llm <= classifiable:
        raise BadParameters(f"a rate needs 0 <= llm <= classifiable, not {llm} of {classifiable}")
    if not 0 <= undecided <= classifiable - llm:
        raise BadParameters(f"{undecided} undecided do not fit into {classifiable} sites of which {llm} are llm")
    if not 0 < confidence < 1:
        raise BadParameters(f"confidence lies between 0 and 1, not {confidence}")
    if not 0 < half_width < 1:
        raise BadParameters(f"the half width of an interval lies between 0 and 1, not {half_width}")
    if errors is not None and errors.unusable:
        raise BadParameters(f"no rate can be corrected by these error counts: {errors.unusable}")
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    known = None if errors is None else Known(*map(float, msgspec.structs.astuple(errors)))
    needed = sites_needed(llm, classifiable, known, z, half_width)
    if needed.more_sites is not None:  # near 0 or 1 few sites make a narrow interval
        needed = needed._replace(more_sites=max(needed.more_sites, FEW_SITES - classifiable))
    found: Interval | None = None
    method = NO_SITES
    said = ["no rate: no site could be classified"]
    if classifiable:
        found = _interval(llm, classifiable, known, z)
        method = UNCORRECTED if errors is None else errors.METHOD
        most = _interval(llm + undecided, classifiable, known, z)
        if errors is None:  # measured errors count undecided sites as not llm, as here
            found = found._replace(high=most.high)
        said = [_share(found, llm, classifiable, f"{confidence:.0%} interval", method)]
        said += _remarks(classifiable, undecided, most.point)
    if errors is not None and known is not None and classifiable and not fits(llm, classifiable, known, z):
        said.append(_misfit(needed, llm / classifiable, errors))
    else:
        said += _missing(classifiable, needed, errors, half_width)
    return Rate(
        rate=found and found.point,
        low=found and found.low,
        high=found and found.high,
        llm=llm,
        classifiable=classifiable,
        confidence=confidence,
        method=method,
        text="; ".join(said),
        more_sites=needed.more_sites,
        more_known_sites=needed.more_known_sites,
    )


def _interval(x: int, n: int, known: Known | None, z: float) -> Interval:
    return wilson(x, n, z) if known is None else corrected_interval(x, n, known, z)


def _share(found: Interval, llm: int, n: int, interval: str, method: str) -> str:
    """The estimate in words.

    A corrected one differs from llm/n, so that both are stated; for too few sites there is none.
    """
    said = f"{interval} {found.low:.1%} to {found.high:.1%}, {method}"
    if n < FEWEST_SITES:
        return f"too few sites for a rate: {llm} of {n} classifiable {_sites(n)} called llm ({said})"
    before = "" if method == UNCORRECTED else f" called llm, {llm / n:.1%} before the correction"
    return f"{found.point:.1%} ({said}): {llm} of {n} classifiable sites{before}"


def _sites(number: int) -> str:
    return "site" if number == 1 else "sites"


def _remarks(n: int, undecided: int, at_most: float) -> list[str]:
    remarks = []
    if undecided:
        remarks.append(
            f"{undecided} undecided of them counted as not llm, up to {at_most:.1%} if the undecided were llm"
        )
    if FEWEST_SITES <= n < FEW_SITES:
        remarks.append(f"fewer than {FEW_SITES} sites: too few for a change to show")
    return remarks


def _misfit(needed: SitesNeeded, called: float, errors: ErrorCounts) -> str:
    false_alarms = 1 - (errors.human_cleared + 1) / (errors.human_sites + 2)
    found = (errors.llm_found + 1) / (errors.llm_sites + 2)
    too = (
        f"fewer than the {false_alarms:.1%} that false alarms alone would be"
        if called < false_alarms
        else f"more than the {found:.1%} that are found of LLM sites"
    )
    return (
        f"the counts do not fit the measured errors: {called:.1%} are called llm, {too}; the rate is not known so"
        f" exactly, and the errors must be measured on sites like these: {needed.more_known_sites} more sites of known"
        " truth are needed"
    )


def _missing(n: int, needed: SitesNeeded, errors: ErrorCounts | None, half_width: float) -> list[str]:
    wanted = f"an interval of ±{half_width * 100:g}%"
    if needed.more_sites is None:
        if not n:
            return []  # without any site it is too early to say that no number suffices
        assert errors is not None  # without a correction some number of sites suffices
        return [
            f"{wanted} takes more sites of known truth, whatever the number of classifiable ones: the errors of the"
            f" verdict were measured on {errors.llm_sites} LLM and {errors.human_sites} human sites,"
            f" {needed.more_known_sites} more known {_sites(needed.more_known_sites)} needed"
        ]
    if not needed.more_sites:
        return []
    return [f"{needed.more_sites} more classifiable {_sites(needed.more_sites)} needed for {wanted}"]
