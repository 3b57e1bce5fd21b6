"""One estimate of the share as a line of JSON."""

from __future__ import annotations

import msgspec

from scoring.rates.direct_share import DirectShare
from scoring.rates.site_rates import SiteRate


class EstimateLine(msgspec.Struct, frozen=True, kw_only=True):
    """Output of `estimate`: the share, and the share by site verdicts alone (`judged_...`)."""

    share: float | None  # null where `method` is neither "direct" nor "ppi"
    low: float | None  # null without a site with a scored article
    high: float | None
    look_low: float | None  # an interval that is valid at every look while sites come in
    look_high: float | None
    method: str  # direct, ppi (by a review), or why `share` is null
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
    text: str
    judged_text: str
    more_sites: int | None = 0  # classifiable sites missing for the wanted half width; null: no number suffices
    more_known_sites: int = 0  # sites of known truth missing, if more_sites is null

    @property
    def judged_short(self) -> str:
        """The judged share with its interval and its number of sites."""
        counts = f"{self.llm:,} llm of {self.classifiable:,} classifiable"
        if self.judged_share is None or self.judged_low is None or self.judged_high is None:
            return f"no share, {counts}"
        return f"{self.judged_share:.1%} ({self.judged_low:.1%} to {self.judged_high:.1%}), {counts}"


def estimate_line(judged: SiteRate, direct: DirectShare) -> EstimateLine:
    """Both estimates as the fields that `estimate` and `rate --json` print."""
    of_verdicts = msgspec.structs.asdict(judged)
    renamed = {f"judged_{name}": of_verdicts[name] for name in ("low", "high", "method", "text")}
    values = of_verdicts | msgspec.structs.asdict(direct) | renamed | {"judged_share": judged.rate}
    return EstimateLine(**{name: values[name] for name in EstimateLine.__struct_fields__})
