"""The number of additional sites for an interval of a wanted half width, by the present estimate.

The share of sites called llm is assumed to stay while n grows, and the interval is computed again: it narrows with n,
so the least n is found by doubling and halving. A corrected interval cannot become narrower than the measured errors
allow: as n grows without end, half goes to

    z sqrt(point^2 Se'(1 - Se')/n1' + (1 - point)^2 Sp'(1 - Sp')/n0') / (Se' + Sp' - 1).

If that floor is above the wanted half width, no number of sites suffices: sites of known truth are missing. A good plan
gives each source of error half of the variance. So the number of known sites to add, in the present proportion of both
kinds, is the one that brings the floor to 1/sqrt(2) of the wanted half width.

If counts and errors do not fit (`scoring.estimate.intervals.fits`), more sites only make that clearer. The errors must
then be measured on sites like the counted ones: on as many known sites as above, by the half width before it is
clipped, and on FEW_KNOWN at least, because the present known sites may be many and of another kind.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from scoring.estimate.intervals import Interval, Known, clipped, fits, lang_reiczigel, wilson

FEW_KNOWN = 30  # sites of known truth to ask for if the present ones do not fit
_WITHOUT_END = 1e12  # sites: practically infinitely many
_WORST_SHARE = 0.5  # the widest interval, assumed without any site


class SitesNeeded(NamedTuple):
    """The sites to add for the wanted half width; both 0 if none are needed."""

    more_sites: int | None  # classifiable sites; None: no number suffices
    more_known_sites: int  # sites of known truth, if `more_sites` is None


def sites_needed(llm: int, n: int, known: Known | None, z: float, half_width: float) -> SitesNeeded:
    """The sites to add until the interval at `llm` of `n` classifiable sites has at most this half width (0 to 1)."""
    share = llm / n if n else _WORST_SHARE
    if known is not None and n and not fits(llm, n, known, z):
        n1, n0 = known.llm_sites + 2, known.human_sites + 2
        se, sp = (known.llm_found + 1) / n1, (known.human_cleared + 1) / n0
        point = clipped((share + sp - 1) / (se + sp - 1))
        variance = point**2 * se * (1 - se) / n1 + (1 - point) ** 2 * sp * (1 - sp) / n0
        times = 2 * variance * (z / (se + sp - 1) / half_width) ** 2  # by which n1 and n0 must grow
        return SitesNeeded(None, max(FEW_KNOWN, math.ceil((n1 + n0) * (times - 1))))
    if known is not None and _at(share, _WITHOUT_END, known, z).half_width > half_width:
        return SitesNeeded(None, _known_needed(share, known, z, half_width / math.sqrt(2)))
    least = _least(lambda sites: _at(share, sites, known, z).half_width <= half_width)
    return SitesNeeded(max(0, least - n), 0)


def _at(share: float, n: float, known: Known | None, z: float) -> Interval:
    return wilson(share * n, n, z) if known is None else lang_reiczigel(share * n, n, known, z)


def _known_needed(share: float, known: Known, z: float, floor: float) -> int:
    """Known sites to add, of both kinds together, in the present proportion; Se' and Sp' stay."""
    n1, a, n0, b = known.llm_sites + 2, known.llm_found + 1, known.human_sites + 2, known.human_cleared + 1

    def enough(sites: int) -> bool:
        k = 1 + sites / (n1 + n0)
        more = Known(n1 * k - 2, a * k - 1, n0 * k - 2, b * k - 1)
        return _at(share, _WITHOUT_END, more, z).half_width <= floor

    return _least(enough)


def _least(enough: Callable[[int], bool]) -> int:
    """The least sufficient number from 1 on, if every greater one is sufficient."""
    high = 1
    while not enough(high):
        high *= 2
    low = high // 2
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
