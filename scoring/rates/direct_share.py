"""The published share of LLM sites: the direct estimate of `scoring.estimate.mixture`, or the reason for none."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from datetime import UTC, datetime
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import msgspec

from scoring.estimate.definitions import (
    ANY_ARTICLE,
    BY_LABELS,
    DOMAINS,
    EVERY_ARTICLE,
    RANKED_RESULTS,
    RESULTS,
    SITES,
)
from scoring.interface import UNCALIBRATED
from scoring.rates.canary_counts import CanarySummary
from stream.schema.records import SiteState
from stream.schema.vocabulary import Truth
from stream.text.wording import counted

if TYPE_CHECKING:
    from scoring.estimate.clusters import Agreement, WeightedSites
    from scoring.estimate.mixture import CellCounts, Fit, KnownSites
    from scoring.estimate.reviewed_share import Review

FEWEST_SITES = 5  # with a scored article; with fewer no share is published
FEW_SITES = 30  # with fewer, a change cannot be detected
WIDEST = 0.6  # width of an interval above which no share is published
DIRECT, REVIEWED, TOO_FEW, TOO_WIDE, NO_SCORES = "direct", "ppi", "too few sites", "too wide", "no scored articles"
TOO_FEW_LABELS, UNTOLD = "too few labels", "kinds not told apart"
LEAST_FLAGGED = 1 / 3  # articles of the LLM kind, if no LLM site is known: by simulation, see docs
LONGER, FEWEST_LONGER = 5, 100  # articles of a longer site; with fewer such sites mixed ones are not looked for
BETWEEN = 0.25, 0.65  # flagged shares that human and LLM sites seldom have
USUALLY_BETWEEN = 0.055, 0.205  # parts of the longer human and LLM sites that do
TIGHTEST_AT = 500  # sites at which the interval of every look is relatively narrowest
_LABELLED = {
    ANY_ARTICLE: " have an article by a language model",
    EVERY_ARTICLE: " have only articles by language models",
}
_NO_THRESHOLD = (
    "no share: the detector has no threshold, so that its scores flag no article; set one (`farmwatch calibrate`)"
)
_PLACES = 9  # the last digits depend on the processor


class DirectShare(msgspec.Struct, frozen=True, kw_only=True):
    """The share with its interval.

    `share` is None unless the method is direct or ppi; without scored sites all are None.
    """

    share: float | None = None
    low: float | None = None  # valid at one look
    high: float | None = None
    look_low: float | None = None  # valid at every look
    look_high: float | None = None
    method: str = NO_SCORES  # direct, ppi, or the reason for no share
    scored_sites: int = 0  # with at least one scored article: the base of the share
    design_effect: float = 1.0  # factor of the variance, because sites of a domain or a query agree
    labelled: int = 0  # of these sites, those with a label of the current review
    drawn: int = 0  # sites of that review, labelled or not
    text: str = "no share yet: no site has a scored article"  # then remarks after "; ", the most important first


class ShareChanged(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the share that chance does not explain: `scoring.rates.change_alarm`."""

    day: int  # since 1970, UTC: sites with their first hit on this day or later have another share
    before: float
    after: float
    evidence: float  # against no change


def cells_of(rows: Iterable[SiteState]) -> Counter[tuple[int, int]]:
    """Sites by their numbers of scored and of flagged articles."""
    return Counter((row.scored, row.flagged) for row in rows if row.scored)


def known_sites(canaries: CanarySummary) -> KnownSites:
    """The canary sites as sites of known truth."""
    from scoring.estimate.mixture import KnownSites

    return KnownSites(cells_of(canaries.rounds[Truth.HUMAN]), cells_of(canaries.rounds[Truth.LLM]))


def share_of_rows(
    rows: Iterable[SiteState],
    known: KnownSites | None = None,
    confidence: float = 0.95,
    whole: Fit | None = None,
    definition: str = SITES,
) -> tuple[DirectShare, Fit | None]:
    """As `direct_share`, of a definition, and with an interval in which whole domains and queries vary."""
    from scoring.estimate.clusters import WeightedSites, of_one_query

    rows = list(rows)
    sites = WeightedSites.of(rows, definition)
    if not sites.rows and any(row.abstained and row.detector.endswith(f"/{UNCALIBRATED}") for row in rows):
        return DirectShare(text=_NO_THRESHOLD), None
    noun = f"{counted(len(sites.rows), 'site')} with scored articles"
    if definition in (DOMAINS, RESULTS, RANKED_RESULTS):
        unit = "registrable domain" if definition == DOMAINS else "search result"
        by_rank = " by rank" if definition == RANKED_RESULTS else ""
        noun = f"{counted(sites.units, unit)}{by_rank} of {noun}"
    if len(sites.rows) > 1 and of_one_query(sites.rows):
        noun += ", all of one query"
    return direct_share(sites.cells, known, confidence, whole, sites=sites, noun=noun)


def direct_share(
    cells: CellCounts,
    known: KnownSites | None = None,
    confidence: float = 0.95,
    whole: Fit | None = None,
    *,
    sites: WeightedSites | None = None,
    noun: str = "",
) -> tuple[DirectShare, Fit | None]:
    """The share of LLM sites among those of `cells`, and its fit; None without a scored site.

    `whole` is the fit of more sites, which include these, and has used the `known` ones; without it there are only a
    wide prior and the sites of known truth. With `sites`, whose cells these are, the interval is clustered.
    """
    from scoring.estimate.clusters import Agreement, agreement
    from scoring.estimate.mixture import WIDE, KnownSites, estimate_share

    nothing = KnownSites({}, {})
    prior, known = (whole.components, nothing) if whole else (WIDE, known or nothing)
    fit = estimate_share(cells, prior, known, confidence)
    if fit is None:
        return DirectShare(), None
    number = fit.sites if sites is None else len(sites.rows)
    fewest = number if sites is None else min(number, sites.units)
    agree = Agreement(1.0) if sites is None else agreement(sites, fit.moves(sites.rows))
    ends = _ends(fit.share, fit.low, fit.high, math.sqrt(agree.effect), every_look(fit.sites, confidence))
    noun = noun or f"{counted(number, 'site')} with scored articles"
    low, high = ends["low"], ends["high"]
    interval = f"{confidence:.0%} interval {low:.1%} to {high:.1%}"
    untold = _untold(whole or fit)
    if untold:
        method, text = UNTOLD, f"no share of {noun}: {untold}"
        ends = {"low": 0.0, "high": 1.0, "look_low": 0.0, "look_high": 1.0}
    elif fewest < FEWEST_SITES:
        method, text = TOO_FEW, f"too few for a share: {noun} ({interval})"
    elif high - low > WIDEST:
        why = why_wide(fit, agree, (whole or fit).known)
        method, text = TOO_WIDE, f"too wide an interval for a share: {low:.1%} to {high:.1%} of {noun}; {why}"
    else:
        method, text = DIRECT, f"{_percent(fit.share, high)} ({interval}) of {noun}"
    remarks = [] if untold else doubts(cells, fit)
    if method == DIRECT:
        remarks += [f"it rests on {agree.few}"] if agree.few else []
        remarks += [unknown] if (unknown := _unknown((whole or fit).known)) else []
        remarks += [f"fewer than {FEW_SITES}: too few for a change to show"] if fewest < FEW_SITES else []
    text = "; ".join([text, *remarks])
    share = round(fit.share, _PLACES) if method == DIRECT else None
    effect = round(agree.effect, _PLACES)
    return DirectShare(share=share, **ends, method=method, scored_sites=number, design_effect=effect, text=text), fit


def doubts(cells: CellCounts, fit: Fit) -> list[str]:
    """Remarks if the sites are unlike the known ones, or not of two kinds; `cells` are those of the fit."""
    from scoring.estimate.unlike import find_unlike

    remarks = []
    if unlike := find_unlike(cells, fit):
        flagged = f"{unlike.kind} sites are flagged in {unlike.here:.0%} of articles"
        remarks.append(f"{flagged}, known ones in {unlike.known:.0%}: label a sample")
    if between := _between(cells, fit):
        remarks.append(f"{between:.0%} of longer sites may be mixed, which the interval leaves out: label a sample")
    if fit.misfit > 1:
        remarks.append("sites scatter more than two kinds would, so the interval is wider")
    return remarks


def _between(cells: CellCounts, fit: Fit) -> float:
    """The part of the longer sites with flags between those of the two kinds, if it is large; else 0.

    Flags cannot tell mixed sites from two kinds that scatter: a beta with a long tail fits both. So this is a count,
    against the part that simulated sites of two kinds have there, or known sites if that is more.
    """
    number, between = _longer(cells)
    if number < FEWEST_LONGER:
        return 0.0
    usual = [
        max(part, _at_least(found / sites, sites) if sites >= FEWEST_SITES else 0.0)
        for (sites, found), part in zip(map(_longer, fit.known), USUALLY_BETWEEN, strict=True)
    ]
    share = between / number
    return share if share > usual[0] + fit.share * (usual[1] - usual[0]) else 0.0


def _at_least(part: float, sites: float) -> float:
    """A part of so many sites less its standard error: known sites are few."""
    return part - math.sqrt(part * (1 - part) / sites)


def _longer(cells: CellCounts) -> tuple[float, float]:
    """Sites with many articles, and of these the ones with flags between those of the two kinds."""
    low, high = BETWEEN
    longer = {(n, k): sites for (n, k), sites in cells.items() if n >= LONGER}
    return sum(longer.values()), sum(sites for (n, k), sites in longer.items() if low <= k / n <= high)


def _untold(fit: Fit) -> str:
    """The reason why flags do not separate the kinds of sites; "" if they may."""
    if (apart := fit.known.apart()) is not None and apart[2] <= 0:
        human, llm, _ = apart
        return (
            f"the detector flags known human and LLM sites alike ({human:.0%} and {llm:.0%} of their articles); use"
            " another detector or threshold, or label a sample (`farmwatch review`)"
        )
    flagged = fit.components.flagged[1]
    if sum(fit.known.llm.values()) < FEWEST_SITES and flagged < LEAST_FLAGGED:
        return (
            f"no kind of sites is flagged in more than {flagged:.0%} of its articles, which human sites may be too;"
            " known LLM sites would tell (`farmwatch canaries`)"
        )
    few_human = sum(fit.known.human.values()) < FEWEST_SITES and fit.sites * (1 - fit.share) < 1
    if few_human and fit.sites >= FEWEST_SITES:
        return (
            "every kind of sites is flagged often, which human sites may be too; known human sites would tell"
            " (`farmwatch canaries`)"
        )
    return ""


def why_wide(fit: Fit, agree: Agreement, known: KnownSites) -> str:
    """The missing data if an interval is too wide, and a remedy."""
    why = []
    if agree.few and agree.effect > 2:
        why.append(f"the sites are of {agree.few}: more of these are needed")
    if unknown := _unknown(known):
        why.append(unknown)
    if max(n for n, _ in fit.posterior) == 1:
        why.append("each site has one scored article: more articles tell the kinds apart")
    return "; ".join(why) or "more sites are needed, or labels of some (`farmwatch review`)"


def _unknown(known: KnownSites) -> str:
    kinds = " or ".join(kind for kind, cells in (("human", known.human), ("LLM", known.llm)) if not cells)
    return kinds and f"no known {kinds} sites: add some (`farmwatch canaries`)"


def by_review(
    direct: DirectShare, fit: Fit, rows: Iterable[SiteState], review: Review, confidence: float, definition: str = SITES
) -> DirectShare:
    """The share of these sites by the labels of a random sample; with too few labels, `direct` with a remark.

    Drawn sites without a label may be of either kind.
    """
    import numpy as np

    from scoring.estimate.clusters import WeightedSites, agreement
    from scoring.estimate.reviewed_share import FEWEST_LABELS, reviewed_share

    sites, is_llm = WeightedSites.of(rows, definition), review.is_llm(definition)
    likely = np.array([fit.posterior[row.scored, row.flagged] for row in sites.rows])
    labels = np.array([is_llm.get(row.site, math.nan) for row in sites.rows], dtype=float)
    found = reviewed_share(likely, labels, confidence, sites.weights)
    number = int(np.isfinite(labels).sum())
    day, until = (datetime.fromtimestamp(ms / 1000, UTC).date() for ms in (review.at_ms, review.until_ms))
    counts = {"labelled": number, "drawn": review.drawn}
    if found is None:
        why = f"{number} of these sites {'has a label' if number == 1 else 'have labels'}, {FEWEST_LABELS} are needed"
        if review.too_old:
            why += f"; labels of {review.too_old} are too old"
        return msgspec.structs.replace(direct, **counts, text=_remarked(direct.text, f"no review: {why}"))
    agree = agreement(sites, found.moves)
    ends = _ends(*found.interval, math.sqrt(agree.effect), every_look(number, confidence))
    missing = review.unlabelled  # they may be of either kind
    ends = {name: round((1 - missing) * end + missing * name.endswith("high"), _PLACES) for name, end in ends.items()}
    share, low, high = found.interval.point, ends["low"], ends["high"]
    said = f"{_percent(share, high)} ({confidence:.0%} interval {low:.1%} to {high:.1%})"
    by = [f"by {counted(number, 'labelled site')} of {day}, to renew by {until}"]
    if agree.few:
        by.append(f"it rests on {agree.few}")
    if missing:
        by.append(f"{len(review.llm_shares)} of {review.drawn} drawn sites labelled: the others may be of either kind")
    if high - low > WIDEST:
        return msgspec.structs.replace(direct, **counts, text=_remarked(direct.text, said, *by))
    text = f"{said} of {counted(direct.scored_sites, 'site')} with scored articles{_LABELLED.get(definition, '')}"
    if definition not in BY_LABELS:
        if direct.share is not None and not low <= direct.share <= high:
            by.insert(0, "labels and flags contradict each other: the detector does not fit these sites")
        by.append(f"without these {direct.text}")
    text = "; ".join([text, *by])
    found_effect = round(agree.effect, _PLACES)
    return DirectShare(
        share=round(share, _PLACES),
        **ends,
        **counts,
        method=REVIEWED,
        scored_sites=direct.scored_sites,
        design_effect=found_effect,
        text=text,
    )


def _remarked(text: str, *remarks: str) -> str:
    """The text with these remarks before its own."""
    share, *others = text.split("; ")
    return "; ".join([share, *remarks, *others])


def without_labels(direct: DirectShare) -> DirectShare:
    """The line of a share that needs labels, if there are too few."""
    text = "no share: only labelled sites tell any from every article (`farmwatch review`)"
    return DirectShare(method=TOO_FEW_LABELS, scored_sites=direct.scored_sites, text=text)


def every_look(sites: int, confidence: float) -> float:
    """The factor for an interval that is valid at every look while sites come in.

    The asymptotic confidence sequence of Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas (Time-uniform central limit
    theory and asymptotic confidence sequences, Annals of Statistics 52, 2024), tightest at TIGHTEST_AT sites.
    """
    alpha = 1 - confidence
    longest = -2 * math.log(alpha)
    sure = sites * (longest + math.log(longest + 1)) / TIGHTEST_AT
    half = math.sqrt(2 * (1 + 1 / sure) * math.log(math.sqrt(1 + sure) / alpha))
    return half / NormalDist().inv_cdf((1 + confidence) / 2)


def _percent(share: float, high: float) -> str:
    return f"{share:.1%}" if share >= 0.0005 else f"below {high:.1%}"


def _ends(share: float, low: float, high: float, times: float, every: float) -> dict[str, Any]:
    """Both intervals of a share, `times` as wide, and the one of every look `every` times as wide as that."""
    stretched = {"low": (low, times), "high": (high, times), "look_low": (low, times * every)}
    stretched["look_high"] = (high, times * every)
    return {name: round(_stretched(share, end, by), _PLACES) for name, (end, by) in stretched.items()}


def _stretched(share: float, end: float, times: float) -> float:
    """The end of an interval widened by a factor on the scale on which the variance of a share is constant."""
    if times == 1.0:
        return end
    at, at_end = (math.asin(math.sqrt(value)) for value in (share, end))
    return math.sin(min(max(at + times * (at_end - at), 0.0), math.pi / 2)) ** 2
