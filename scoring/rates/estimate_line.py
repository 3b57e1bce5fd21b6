"""One estimate of the rate as a line of JSON."""

from __future__ import annotations

import msgspec

from scoring.rates.site_rates import SiteRate


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
    more_sites: int | None = 0  # classifiable sites missing for the wanted half width; null: no number would do
    more_known_sites: int = 0  # sites of known truth missing, where more_sites is null


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
        more_sites=found.rate.more_sites,
        more_known_sites=found.rate.more_known_sites,
    )
