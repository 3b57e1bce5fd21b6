"""The sites that are most certainly LLM sites: a list with a stated share of false ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from scoring.estimate.remarks import Remark
from scoring.rates.direct_share import cells_of
from scoring.rates.farm_signs import FarmSigns
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import fits_of
from stream.schema.records import SiteState

_LEAST = 0.5  # probability of a listed site


class CertainSites(NamedTuple):
    """`sites`: site -> its probability where the share is at the low end of its interval, the most certain first."""

    sites: dict[str, float]
    untold: tuple[Remark, ...] = ()  # why other sites could not be listed


def certain_llm_sites(
    rows: Sequence[SiteState],
    settings: RateSettings,
    now_ms: int,
    most_false: float,
    *,
    left_out: Callable[[str], bool] = lambda _: False,
    signs: FarmSigns | None = None,
) -> CertainSites:
    """The longest list of sites of which at most the share `most_false` is expected not to be LLM sites.

    A site counts by its newest term alone. None are listed that are `left_out`, and none of a ruleset, detector and
    site method whose sites are not told apart in two kinds. With `signs` only farms are listed: their probabilities are
    those of these sites, because ads are no less frequent on sites of people.
    """
    from scoring.estimate.doubts import kinds_not_told_apart  # they load numpy
    from scoring.estimate.mixture import estimate_share

    newest = {row.site: row.term for row in rows}
    certain: dict[str, float] = {}
    remarks: list[Remark] = signs.unknown(rows) if signs else []
    for counted, fit in fits_of(rows, settings, now_ms):
        if untold := kinds_not_told_apart(fit):
            remarks += untold
            continue
        sites, of_these = counted, fit
        if signs is not None:
            sites = [row for row in counted if signs.farm(row)]
            of_these = estimate_share(cells_of(sites), fit.components) or fit
        sites = [row for row in sites if row.term == newest[row.site] and not left_out(row.site)]
        cells = certain_cells(cells_of(sites), of_these.cautious, most_false)
        certain |= {row.site: cells[row.scored, row.flagged] for row in sites if (row.scored, row.flagged) in cells}
    return CertainSites(dict(sorted(certain.items(), key=lambda item: (-item[1], item[0]))), tuple(remarks))


def certain_cells(
    numbers: Mapping[tuple[int, int], int], likely: Mapping[tuple[int, int], float], most_false: float
) -> dict[tuple[int, int], float]:
    """The cells (scored and flagged articles) whose sites are listed, with the probability of each.

    The expected share of false sites is the mean of 1 - p over the list (Efron, Large-Scale Inference, 2010, 5.1).
    """
    certain: dict[tuple[int, int], float] = {}
    false, listed = 0.0, 0
    for cell in sorted(likely.keys() & numbers.keys(), key=lambda cell: (-likely[cell], cell)):
        false, listed = false + numbers[cell] * (1 - likely[cell]), listed + numbers[cell]
        if false > most_false * listed or likely[cell] < _LEAST:
            break
        certain[cell] = likely[cell]
    return certain


def contradicts(labelled: int, false: int, most_false: float) -> bool:
    """Whether so many false ones of the labelled sites of a list are unlikely with at most the stated share.

    Exact one-sided binomial test at 5%.
    """
    fewer = (math.comb(labelled, n) * most_false**n * (1 - most_false) ** (labelled - n) for n in range(false))
    return false > 0 and 1 - sum(fewer) < 0.05
