"""The published share of LLM sites: the direct estimate of `scoring.rates.mixture`, or why there is none."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from statistics import NormalDist
from typing import TYPE_CHECKING

import msgspec

from scoring.rates.canary import HUMAN_TRUTH, LLM_TRUTH
from scoring.rates.canary_counts import CanarySummary
from scoring.rates.definitions import ANY_ARTICLE, ARTICLES, BY_LABELS, DOMAINS, EVERY_ARTICLE, RANKED_RESULTS, SITES
from stream.schema.records import SiteState
from stream.text.wording import counted

if TYPE_CHECKING:
    from scoring.rates.clusters import WeightedSites
    from scoring.rates.mixture import CellCounts, Components, Fit, KnownSites
    from scoring.rates.reviewed_share import Review

FEWEST_SITES = 5  # with a scored article: of fewer no share is named
FEW_SITES = 30  # with fewer, a change cannot be seen
WIDEST = 0.6  # of an interval, beyond which no share is named
DIRECT, REVIEWED, TOO_FEW, TOO_WIDE, NO_SCORES = "direct", "ppi", "too few sites", "too wide", "no scored articles"
TOO_FEW_LABELS = "too few labels"
TIGHTEST_AT = 500  # sites with which the interval of every look is relatively narrowest
_LABELLED = {
    ANY_ARTICLE: " have an article by a language model",
    EVERY_ARTICLE: " have only articles by language models",
}
_PLACES = 9  # the last digits depend on the processor


class DirectShare(msgspec.Struct, frozen=True, kw_only=True):
    """The share with its interval. `share` is None unless the method is direct or ppi, all are without scored sites."""

    share: float | None = None
    low: float | None = None  # valid at one look
    high: float | None = None
    look_low: float | None = None  # valid at every look, however many there are
    look_high: float | None = None
    method: str = NO_SCORES  # direct | ppi | too few sites | too wide | no scored articles | too few labels
    scored_sites: int = 0  # with at least one scored article: what the share is of
    design_effect: float = 1.0  # factor of the variance, since sites of a domain or a query agree
    text: str = "no share yet: no site has a scored article"


class ShareChanged(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the share that chance does not explain: `scoring.rates.change_alarm`."""

    day: int  # since 1970, UTC: sites that search results first named on this day or later have another share
    before: float
    after: float
    evidence: float  # against no change


def cells_of(rows: Iterable[SiteState]) -> Counter[tuple[int, int]]:
    """Sites by their numbers of scored and of flagged articles."""
    return Counter((row.scored, row.flagged) for row in rows if row.scored)


def known_sites(canaries: CanarySummary) -> KnownSites:
    """The canary sites as sites of known truth."""
    from scoring.rates.mixture import KnownSites

    return KnownSites(cells_of(canaries.rounds[HUMAN_TRUTH]), cells_of(canaries.rounds[LLM_TRUTH]))


def share_of_rows(
    rows: Iterable[SiteState],
    known: KnownSites | None = None,
    confidence: float = 0.95,
    prior: Components | None = None,
    definition: str = SITES,
) -> tuple[DirectShare, Fit | None]:
    """As `direct_share`, of a definition, and with an interval in which whole domains and queries vary."""
    from scoring.rates.clusters import WeightedSites

    sites = WeightedSites.of(rows, definition)
    noun = f"{counted(len(sites.rows), 'site')} with scored articles"
    if definition not in BY_LABELS:
        unit = {DOMAINS: "registrable domain", ARTICLES: "article"}.get(definition, "search result")
        by_rank = " by rank" if definition == RANKED_RESULTS else ""
        noun = f"{counted(sites.units, unit)}{by_rank} of {noun}"
    return direct_share(sites.cells, known, confidence, prior, sites=sites, noun=noun)


def direct_share(
    cells: CellCounts,
    known: KnownSites | None = None,
    confidence: float = 0.95,
    prior: Components | None = None,
    *,
    sites: WeightedSites | None = None,
    noun: str = "",
) -> tuple[DirectShare, Fit | None]:
    """The share of LLM sites among those of `cells`, and the fit that it is of; None without a scored site.

    `prior` are the components that more sites have left, of which these are a part; without it nothing but a wide
    prior is known, and the sites of known truth. With `sites`, whose cells these are, the interval is clustered.
    """
    from scoring.rates.clusters import design_effect
    from scoring.rates.mixture import WIDE, KnownSites, estimate_share

    fit = estimate_share(cells, prior or WIDE, known or KnownSites({}, {}), confidence)
    if fit is None:
        return DirectShare(), None
    number = fit.sites if sites is None else len(sites.rows)
    effect = 1.0 if sites is None else design_effect(sites, fit)
    ends = _ends(fit.share, fit.low, fit.high, math.sqrt(effect), every_look(fit.sites, confidence))
    low, high, share = ends["low"], ends["high"], round(fit.share, _PLACES)
    interval = f"{confidence:.0%} interval {low:.1%} to {high:.1%}"
    noun = noun or f"{counted(number, 'site')} with scored articles"
    if number < FEWEST_SITES:
        method, text = TOO_FEW, f"too few sites for a share: {noun} ({interval})"
    elif high - low > WIDEST:
        method, text = TOO_WIDE, f"too wide an interval for a share: {low:.1%} to {high:.1%} of {noun}"
    else:
        method, text = DIRECT, f"{share:.1%} ({interval}) of {noun}"
        if number < FEW_SITES:
            text += f"; fewer than {FEW_SITES}: too few for a change to show"
    if fit.misfit > 1:
        text += "; the sites scatter more than two kinds of sites would, so the interval is wider"
    if known is not None and (unlike := fit.unlike(known)):
        text += (
            f"; {unlike.kind} sites are flagged in {unlike.here:.0%} of their articles, known ones in"
            f" {unlike.known:.0%}: label some (`farmwatch review`)"
        )
    named = share if method == DIRECT else None
    return DirectShare(share=named, **ends, method=method, scored_sites=number, design_effect=effect, text=text), fit


def by_review(
    direct: DirectShare, fit: Fit, rows: Iterable[SiteState], review: Review, confidence: float, definition: str = SITES
) -> DirectShare:
    """The share of these sites by the labels of a random sample of them; `direct` where too few are of these sites.

    `definition`: one of BY_LABELS.
    """
    from scoring.rates.reviewed_share import reviewed_share

    likely = {
        row.site: fit.posterior[row.scored, row.flagged] for row in rows if (row.scored, row.flagged) in fit.posterior
    }
    is_llm = review.is_llm(definition)
    found = reviewed_share(likely, is_llm, confidence)
    if found is None:
        return direct
    labels = len(is_llm.keys() & likely.keys())
    ends = _ends(*found, 1.0, every_look(labels, confidence))
    share, labelled = round(found.point, _PLACES), counted(labels, "labelled site")
    day, until = (datetime.fromtimestamp(ms / 1000, UTC).date() for ms in (review.at_ms, review.until_ms))
    text = f"{share:.1%} ({confidence:.0%} interval {ends['low']:.1%} to {ends['high']:.1%})"
    text += f" of {counted(direct.scored_sites, 'site')} with scored articles{_LABELLED.get(definition, '')}"
    text += f", by {labelled} of {day}, to renew by {until}"
    if definition == SITES:
        text += f"; without these {direct.text}"
    return msgspec.structs.replace(direct, share=share, **ends, method=REVIEWED, text=text)


def without_labels(direct: DirectShare) -> DirectShare:
    """The line of a share that only labels can give, where there are too few labels."""
    text = "no share: only labelled sites tell any from every article (`farmwatch review`)"
    return DirectShare(method=TOO_FEW_LABELS, scored_sites=direct.scored_sites, text=text)


def every_look(sites: int, confidence: float) -> float:
    """How many times as wide an interval must be to hold at every look while sites come in.

    The asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (Time-uniform central limit
    theory and asymptotic confidence sequences, Annals of Statistics 52, 2024), tightest at TIGHTEST_AT sites.
    """
    alpha = 1 - confidence
    longest = -2 * math.log(alpha)
    sure = sites * (longest + math.log(longest + 1)) / TIGHTEST_AT
    half = math.sqrt(2 * (1 + 1 / sure) * math.log(math.sqrt(1 + sure) / alpha))
    return half / NormalDist().inv_cdf((1 + confidence) / 2)


def _ends(share: float, low: float, high: float, times: float, every: float) -> dict[str, float]:
    """Both intervals of a share, `times` as wide, and the one of every look `every` times as wide as that."""
    stretched = {"low": (low, times), "high": (high, times), "look_low": (low, times * every)}
    stretched["look_high"] = (high, times * every)
    return {name: round(_stretched(share, end, by), _PLACES) for name, (end, by) in stretched.items()}


def _stretched(share: float, end: float, times: float) -> float:
    """The end of an interval that is so many times as wide on the scale of log odds, where a profile is nearly even."""
    if times == 1.0 or end in (0.0, 1.0) or share in (0.0, 1.0):
        return end
    odds, odds_end = (math.log(value / (1 - value)) for value in (share, end))
    return 1 / (1 + math.exp(-(odds + times * (odds_end - odds))))
