"""One estimate of the share as a line of JSON."""

from __future__ import annotations

from typing import Any, Self

import msgspec

from scoring.estimate.remarks import Remark
from scoring.rates.direct_share import DirectShare, ShareState
from scoring.rates.site_rates import SiteRate


class EstimateLine(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `estimate`: the share, and the share by site verdicts alone (`judged_...`). Remarks become texts."""

    share: float | None  # null where `method` is neither "direct" nor "ppi"
    low: float | None  # null without a site with a scored article
    high: float | None
    look_low: float | None  # an interval that is valid at every look while sites come in
    look_high: float | None
    method: ShareState  # direct, ppi (by a review), or why `share` is null
    scored_sites: int  # the definition of the share
    labelled: int  # of these, those with a label of the current review
    drawn: int  # sites of that review, labelled or not
    judged_share: float | None  # llm of classifiable; null without a classifiable site
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
    remarks: tuple[Remark, ...] = ()
    judged_remarks: tuple[Remark, ...] = ()
    more_sites: int | None = 0  # classifiable sites missing for the wanted half width; null: no number suffices
    more_known_sites: int = 0  # sites of known truth missing, if more_sites is null

    @classmethod
    def of(cls, judged: SiteRate, direct: DirectShare, **more: Any) -> Self:
        """Of both estimates; a larger line has `more` fields."""
        return cls(
            share=direct.share,
            low=direct.low,
            high=direct.high,
            look_low=direct.look_low,
            look_high=direct.look_high,
            method=direct.method,
            scored_sites=direct.scored_sites,
            labelled=direct.labelled,
            drawn=direct.drawn,
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
            remarks=direct.remarks,
            judged_remarks=judged.remarks,
            more_sites=judged.more_sites,
            more_known_sites=judged.more_known_sites,
            **more,
        )
