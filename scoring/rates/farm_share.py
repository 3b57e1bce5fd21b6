"""The share of content farms: sites by a language model that publish in mass and are monetised.

Of the sites with a scored article, the part f has both signs (`scoring.rates.farm_signs`). Of these sites, the share s
is by a language model: as of any group of sites, by their flags alone. The share of farms is f s, and as f s of the
sites whose signs are yes or unknown it is at most so large. Both intervals come together as the square root of the
summed squares (MOVER: Zou and Donner, Construction of confidence limits about effect measures, Statistics in Medicine
27, 2008), so that the interval too is of the share that search results tend to have.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from statistics import NormalDist, median
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

from scoring.estimate.definitions import SITES
from scoring.estimate.intervals import PLACES, ends_of, every_look, wilson
from scoring.estimate.remarks import Remark, RemarkKind
from scoring.rates.direct_share import DirectShare, ShareState
from scoring.rates.farm_signs import ARTICLE_URLS, FarmSigns
from stream.schema.records import SiteState

if TYPE_CHECKING:
    from scoring.estimate.fit import Fit

OTHER_ARTICLE_URLS = (50, 500)
"""The share is also given for sites with at least these numbers of article URLs."""

ShareOf = Callable[[Sequence[SiteState]], "tuple[DirectShare, Fit | None]"]


class FarmShare(msgspec.Struct, frozen=True, kw_only=True):
    """The share of farms where a site publishes in mass from so many article URLs on."""

    article_urls: int
    yes: int  # sites with a scored article that have both signs, whoever wrote them
    unknown: int  # sites that may have them
    share: float  # the sites with both signs
    at_most: float  # and with those that may have them
    low: float  # of `share`
    high: float  # of `at_most`
    articles_a_year: float | None  # median of the sites with both signs; None: no dates known


class _Ends(NamedTuple):
    """A share with both of its intervals."""

    share: float
    low: float
    high: float
    look_low: float
    look_high: float

    def times(self, other: Self) -> _Ends:
        """The product of two shares that do not depend on each other."""
        product = self.share * other.share

        def end(mine: float, others: float, sign: int) -> float:
            apart = math.hypot(other.share * (mine - self.share), self.share * (others - other.share))
            corner = mine * others  # more cautious where a share is 0
            return min(max(product + sign * apart, 0.0), 1.0) if self.share and other.share else corner

        lows = (end(self.low, other.low, -1), end(self.look_low, other.look_low, -1))
        highs = (end(self.high, other.high, 1), end(self.look_high, other.look_high, 1))
        return _Ends(product, lows[0], highs[0], lows[1], highs[1])


_ANY = _Ends(1.0, 0.0, 1.0, 0.0, 1.0)


def farm_share(
    rows: Iterable[SiteState], llm: DirectShare, signs: FarmSigns, share_of: ShareOf, confidence: float, now_ms: int
) -> tuple[DirectShare, list[FarmShare]]:
    """The share of farms among these sites, of which the share `llm` is by a language model; `share_of` is of a part.

    Without a share of LLM sites there is none of farms, nor without one of those with the signs, as where a review has
    labels of too few of them, and none where a sign is unknown of all sites.
    """
    scored = [row for row in rows if row.scored]
    if not scored or llm.share is None:
        ends = {} if llm.low is None else {"low": 0.0, "look_low": 0.0}
        remarks = (Remark(RemarkKind.NO_SHARE), _of_llm(llm), *llm.remarks[1:]) if scored else llm.remarks
        return msgspec.structs.replace(llm, **ends, remarks=remarks), []
    if reasons := signs.unknown(scored):
        remarks = Remark(RemarkKind.NO_SHARE), *reasons
        return DirectShare(method=ShareState.UNKNOWN_SIGNS, scored_sites=len(scored), remarks=remarks), []
    whole = _of_so_many(ARTICLE_URLS, scored, signs, share_of, confidence, now_ms)
    if isinstance(whole, DirectShare):
        return msgspec.structs.replace(whole, scored_sites=len(scored)), []
    first, look = whole
    others = (_of_so_many(least, scored, signs, share_of, confidence, now_ms) for least in OTHER_ARTICLE_URLS)
    farms = [first, *(of[0] for of in others if not isinstance(of, DirectShare))]
    facts = {"share": first.share, "at_most": first.at_most, "low": first.low, "high": first.high}
    unknown_mass = sum(signs.mass(row) is None for row in scored)
    unknown_money = sum(signs.monetised(row) is None for row in scored)
    share = DirectShare(
        share=first.share,
        low=first.low,
        high=first.high,
        look_low=look[0],
        look_high=look[1],
        method=llm.method,
        scored_sites=len(scored),
        labelled=llm.labelled,
        drawn=llm.drawn,
        labellers=llm.labellers,
        alpha=llm.alpha,
        remarks=(
            Remark.of(RemarkKind.FARMS, **facts, confidence=confidence, sites=len(scored), urls=ARTICLE_URLS),
            Remark.of(
                *(RemarkKind.FARM_SIGNS,),
                **{"yes": first.yes, "unknown": first.unknown},
                **{"unknown_mass": unknown_mass, "unknown_money": unknown_money},
                a_year=-1.0 if first.articles_a_year is None else first.articles_a_year,
            ),
            *(
                Remark.of(RemarkKind.FARMS_OF, urls=of.article_urls, share=of.share, at_most=of.at_most)
                for of in farms[1:]
            ),
            Remark(RemarkKind.FARMS_NOT_MEASURED),
            _of_llm(llm),
            *llm.remarks[1:],
        ),
    )
    return share, farms


def _of_llm(llm: DirectShare) -> Remark:
    """The headline of the share of LLM sites."""
    return Remark(RemarkKind.WITHOUT_SIGNS, {**llm.remarks[0].facts, "headline": llm.remarks[0].kind})


def _of_so_many(
    least: int, scored: Sequence[SiteState], signs: FarmSigns, share_of: ShareOf, confidence: float, now_ms: int
) -> tuple[FarmShare, tuple[float, float]] | DirectShare:
    """The share with its ends for repeated looks, or why there is none."""
    kinds = [signs.farm(row, least) for row in scored]
    yes = _of_part([kind is True for kind in kinds], scored, share_of, confidence)
    most = _of_part([kind is not False for kind in kinds], scored, share_of, confidence) if None in kinds else yes
    if isinstance(yes, DirectShare):
        return yes
    if isinstance(most, DirectShare):
        return most
    members = [row for row, kind in zip(scored, kinds, strict=True) if kind]
    a_year = [of for row in members if (of := signs.articles_a_year(row, now_ms)) is not None]
    ends = {"share": yes.share, "at_most": max(yes.share, most.share), "low": yes.low, "high": max(yes.high, most.high)}
    farms = FarmShare(
        article_urls=least,
        yes=len(members),
        unknown=kinds.count(None),
        **{name: round(end, PLACES) for name, end in ends.items()},
        articles_a_year=round(median(a_year), 1) if a_year else None,
    )
    return farms, (round(yes.look_low, PLACES), round(max(yes.look_high, most.look_high), PLACES))


def _of_part(
    has: Sequence[bool], scored: Sequence[SiteState], share_of: ShareOf, confidence: float
) -> _Ends | DirectShare:
    """The share of LLM sites with this mark among all of `scored`; that of the part where its kinds are not told."""
    import numpy as np

    from scoring.estimate.clusters import WeightedSites, agreement

    number, count = len(scored), sum(has)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    part = wilson(count, number, z)
    effect = agreement(WeightedSites.of(scored, SITES), np.array(has, float)).effect
    of_sites = _Ends(count / number, **ends_of(*part, math.sqrt(effect), every_look(number, confidence)))
    llm, fit = share_of([row for row, is_in in zip(scored, has, strict=True) if is_in])
    if llm.method == ShareState.UNTOLD:
        return llm
    if fit is None or llm.low is None or llm.high is None or llm.look_low is None or llm.look_high is None:
        return of_sites.times(_ANY)
    point = fit.share if llm.share is None else llm.share
    return of_sites.times(_Ends(point, llm.low, llm.high, llm.look_low, llm.look_high))
