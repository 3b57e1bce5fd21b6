r"""A second detector beside the one that judges: both read the same sites, and are never pooled.

Two numbers say whether both still measure alike, and each is a *gap*: above 0 they part.

**Shares.** The distance between the intervals of both shares, at every look.

**Flags.** Let d_s be the share of a site's articles that the judging detector flags, less that of the second one. The
mean of d over sites is compared with what sites of known truth (canaries) explain: with the judge's share pi of LLM
sites, pi d_L + (1 - pi) d_H. The gap is the distance of the two less z of its standard errors and less `SLACK`. d is
linear in flags, so its mean does not depend on how many articles a site has, and canaries have more than most sites; a
share of sites that both call alike would depend on it. Errors that cancel each other, within a site or between human
and LLM sites, do not show.

Sites vary independently; z = 3.3 leaves 1 in 1,000, because the gap is looked at all the time. A site is left when it
is decided, by flags of the judge, and canaries are read to their end: that moves the mean by half a point, and `SLACK`
is twice that.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import NormalDist, fmean, stdev
from typing import NamedTuple

import msgspec

from scoring.estimate.intervals import PLACES
from scoring.rates.canary import is_canary
from scoring.rates.canary_counts import recent_canaries
from scoring.rates.direct_share import FEW_SITES
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import RateLine
from scoring.rates.terms import counted_at
from stream.schema.records import SiteState
from stream.schema.vocabulary import Truth

Z = 3.3
SLACK = 0.01
FEWEST_KNOWN = 10  # canary sites of each truth that both detectors scored


class Mean(NamedTuple):
    """A mean over sites, and its standard error."""

    value: float
    error: float


class SecondOpinion(msgspec.Struct, frozen=True, kw_only=True):
    """What a second detector says of the sites of the judging one. None: too few sites, or no share."""

    line: RateLine  # its own share
    both: int  # sites that both scored
    difference: float | None  # of the shares of flagged articles, judge less second: mean over sites
    explained: float | None  # the same as known sites explain it
    within: float | None  # how far chance and early stopping may move one from the other
    share_gap: float | None  # both intervals part if above 0
    flags_gap: float | None  # and so do difference and explanation

    @property
    def parts(self) -> bool:
        """Whether the two detectors no longer measure alike."""
        return any(gap is not None and gap > 0 for gap in (self.share_gap, self.flags_gap))


def second_opinion(
    first: RateLine,
    second: RateLine,
    rows: Sequence[SiteState],
    others: Sequence[SiteState],
    settings: RateSettings,
    now_ms: int,
) -> SecondOpinion:
    """Compare two lines of all sites, and the rows behind them: `rows` by the judging detector, `others` by the second.

    The rows are of one ruleset, canaries included.
    """
    sites = differences(_counted(rows, now_ms), _counted(others, now_ms))
    difference = _mean(sites) if len(sites) >= FEW_SITES else None
    explained = _explained(first, _known(rows, others, settings, now_ms))
    within = flags_gap = None
    if difference is not None and explained is not None:
        within = Z * math.hypot(difference.error, explained.error) + SLACK
        flags_gap = round(abs(difference.value - explained.value) - within, PLACES)
    return SecondOpinion(
        line=second,
        both=len(sites),
        difference=None if difference is None else difference.value,
        explained=None if explained is None else explained.value,
        within=within,
        share_gap=_share_gap(first, second),
        flags_gap=flags_gap,
    )


def differences(rows: Iterable[SiteState], others: Iterable[SiteState]) -> list[float]:
    """Share of flagged articles in `rows` less that in `others`, of each site that both scored."""
    by_site = {row.site: row for row in others if row.scored}
    pairs = ((row, by_site[row.site]) for row in rows if row.scored and row.site in by_site)
    return [row.flagged / row.scored - other.flagged / other.scored for row, other in pairs]


def _counted(rows: Iterable[SiteState], now_ms: int) -> list[SiteState]:
    return [counted_at(row, now_ms) for row in rows if not is_canary(row.site)]


def _known(
    rows: Sequence[SiteState], others: Sequence[SiteState], settings: RateSettings, now_ms: int
) -> Mapping[Truth, list[float]]:
    one, two = (recent_canaries(settings, of, now_ms).rounds for of in (rows, others))
    return {truth: differences(one[truth], two[truth]) for truth in Truth}


def _explained(first: RateLine, known: Mapping[Truth, list[float]]) -> Mean | None:
    if first.share is None or first.low is None or first.high is None or min(map(len, known.values())) < FEWEST_KNOWN:
        return None
    pi, human, llm = first.share, _mean(known[Truth.HUMAN]), _mean(known[Truth.LLM])
    of_share = (first.high - first.low) / (2 * NormalDist().inv_cdf((1 + first.confidence) / 2))
    parts = pi * llm.error, (1 - pi) * human.error, of_share * (llm.value - human.value)
    return Mean(pi * llm.value + (1 - pi) * human.value, math.hypot(*parts))


def _mean(numbers: Sequence[float]) -> Mean:
    return Mean(fmean(numbers), stdev(numbers) / math.sqrt(len(numbers)))


def _share_gap(first: RateLine, second: RateLine) -> float | None:
    low, high, other_low, other_high = first.look_low, first.look_high, second.look_low, second.look_high
    if first.share is None or second.share is None:
        return None
    if low is None or high is None or other_low is None or other_high is None:
        return None
    return round(max(low - other_high, other_low - high), PLACES)
