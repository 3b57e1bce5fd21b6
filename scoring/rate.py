r"""The share of LLM sites with its interval, corrected for the errors of the site verdict.

A verdict with sensitivity Se and specificity Sp calls x of n sites llm. If the true share is r, a site is called llm
with probability p = r Se + (1 - r)(1 - Sp); solved for r (Rogan and Gladen 1978):

    r = (p + Sp - 1) / (Se + Sp - 1).

At a low share the correction is everything: with Sp = .98 and no LLM site at all, 2% are called llm. Se and Sp are
themselves measured on n1 LLM and n0 human sites, so the interval must carry three binomial errors. Lang and Reiczigel
(Confidence limits for prevalence of disease adjusted for estimated sensitivity and specificity, Preventive Veterinary
Medicine 113, 2014) add successes and failures before the delta method, as Agresti and Coull (1998) do, and shift the
centre. With z the normal quantile, a of n1 LLM sites found and b of n0 human sites cleared:

    n' = n + z^2              p' = (x + z^2/2) / n'
    n1' = n1 + 2              Se' = (a + 1) / n1'
    n0' = n0 + 2              Sp' = (b + 1) / n0'
    point = (p' + Sp' - 1) / (Se' + Sp' - 1)
    shift = 2 z^2 [point Se'(1 - Se')/n1' - (1 - point) Sp'(1 - Sp')/n0']
    half  = z sqrt(p'(1 - p')/n' + point^2 Se'(1 - Se')/n1' + (1 - point)^2 Sp'(1 - Sp')/n0') / (Se' + Sp' - 1)
    interval = point + shift -/+ half, clipped to [0, 1].

`n` counts sites, never pages: the pages of a site agree (design effect 2.7-4.5 at 20 pages). Where Se and Sp were never
measured there is nothing to correct with: the plain share with Wilson's interval, and it says "uncorrected".
"""

from __future__ import annotations

import math
from statistics import NormalDist

import msgspec

from scoring.errors import BadParameters

CORRECTED, UNCORRECTED, NO_SITES = "corrected", "uncorrected", "no classifiable sites"
FEW_SITES = 30  # below this many sites an interval is wider than any change that is looked for


class ErrorCounts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the site verdict did on sites whose truth is known, undecided counted as not llm."""

    llm_sites: int  # n1: LLM sites tested
    llm_found: int  # a: of them called llm
    human_sites: int  # n0: human sites tested
    human_cleared: int  # b: of them not called llm

    def __post_init__(self) -> None:
        if not (0 <= self.llm_found <= self.llm_sites and 0 <= self.human_cleared <= self.human_sites):
            raise BadParameters(f"error counts need 0 <= found <= sites for both kinds, not {self}")


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """A share with its interval; None where there is nothing to divide by. `text` says it with its denominators."""

    rate: float | None
    low: float | None
    high: float | None
    llm: int  # x
    classifiable: int  # n: llm + human + undecided
    confidence: float
    method: str  # corrected | uncorrected | no classifiable sites
    text: str


def estimate(
    llm: int, classifiable: int, errors: ErrorCounts | None, confidence: float = 0.95, undecided: int = 0
) -> Rate:
    """Estimate the share of LLM sites from `llm` of `classifiable` site verdicts.

    The `undecided` among them count as not llm; the text says what the rate were if all of them were llm.
    With `errors` estimate and interval are corrected by them (Lang-Reiczigel); without, they are Wilson's, uncorrected.
    Raises BadParameters for counts that cannot be, and for error counts no better than chance (Se' + Sp' <= 1).
    """
    if not 0 <= llm <= classifiable:
        raise BadParameters(f"a rate needs 0 <= llm <= classifiable, not {llm} of {classifiable}")
    if not 0 <= undecided <= classifiable - llm:
        raise BadParameters(f"{undecided} undecided do not fit into {classifiable} sites of which {llm} are llm")
    if not 0 < confidence < 1:
        raise BadParameters(f"confidence lies between 0 and 1, not {confidence}")
    if classifiable == 0:
        text = "no rate: no site could be classified"
        return Rate(
            rate=None, low=None, high=None, llm=0, classifiable=0, confidence=confidence, method=NO_SITES, text=text
        )
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    rate, low, high = _interval(llm, classifiable, errors, z)
    at_most = _interval(llm + undecided, classifiable, errors, z)[0]
    method = UNCORRECTED if errors is None else CORRECTED
    return Rate(
        rate=rate,
        low=low,
        high=high,
        llm=llm,
        classifiable=classifiable,
        confidence=confidence,
        method=method,
        text="; ".join(
            [
                f"{rate:.1%} ({confidence:.0%} interval {low:.1%} to {high:.1%}, {method}):"
                f" {llm} of {classifiable} classifiable sites",
                *_remarks(classifiable, undecided, at_most),
            ]
        ),
    )


def _interval(x: int, n: int, errors: ErrorCounts | None, z: float) -> tuple[float, float, float]:
    return _wilson(x, n, z) if errors is None else _lang_reiczigel(x, n, errors, z)


def _wilson(x: int, n: int, z: float) -> tuple[float, float, float]:
    """Wilson's score interval (1927) and the plain share, which it always contains."""
    share, n_z = x / n, n + z * z
    centre = (x + z * z / 2) / n_z
    half = z * math.sqrt(share * (1 - share) * n + z * z / 4) / n_z
    return share, min(_clip(centre - half), share), max(_clip(centre + half), share)


def _lang_reiczigel(x: int, n: int, errors: ErrorCounts, z: float) -> tuple[float, float, float]:
    n_z = n + z * z
    p = (x + z * z / 2) / n_z
    n1, n0 = errors.llm_sites + 2, errors.human_sites + 2
    se, sp = (errors.llm_found + 1) / n1, (errors.human_cleared + 1) / n0
    youden = se + sp - 1
    if youden <= 0:
        raise BadParameters(f"the site verdict is no better than chance by these error counts: {errors}")
    point = (p + sp - 1) / youden
    var_se, var_sp = se * (1 - se) / n1, sp * (1 - sp) / n0
    shift = 2 * z * z * (point * var_se - (1 - point) * var_sp)
    half = z * math.sqrt(p * (1 - p) / n_z + point**2 * var_se + (1 - point) ** 2 * var_sp) / youden
    low, high = _clip(point + shift - half), _clip(point + shift + half)
    return min(max(_clip(point), low), high), low, high


def _clip(value: float) -> float:
    return min(max(value, 0.0), 1.0)


def _remarks(n: int, undecided: int, at_most: float) -> list[str]:
    remarks = []
    if undecided:
        remarks.append(
            f"{undecided} undecided of them counted as not llm, up to {at_most:.1%} if the undecided were llm"
        )
    if n < FEW_SITES:
        remarks.append(f"fewer than {FEW_SITES} sites: too few for a change to show")
    return remarks
