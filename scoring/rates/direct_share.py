"""The published share of LLM sites: the direct estimate of `scoring.estimate.mixture`, or the reason for none."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from scoring.estimate.definitions import BY_LABELS, DOMAINS, OF_RESULTS, SITES
from scoring.estimate.intervals import PLACES, ends_of, every_look
from scoring.estimate.remarks import REASONS, Fact, Remark, RemarkKind
from scoring.interface import UNCALIBRATED
from scoring.rates.canary_counts import CanarySummary
from scoring.rates.controls import control_cells
from stream.schema.records import SiteState
from stream.schema.vocabulary import Truth

if TYPE_CHECKING:
    from scoring.estimate.clusters import Agreement, WeightedSites
    from scoring.estimate.fit import CellCounts, Fit, KnownSites
    from scoring.estimate.reviewed_share import Review

FEWEST_SITES = 5  # with a scored article; with fewer no share is published
FEW_SITES = 30  # with fewer, a change cannot be detected
WIDEST = 0.6  # width of an interval above which no share is published


class ShareState(StrEnum):
    """The method of a published share, or the reason for none."""

    DIRECT = "direct"
    REVIEWED = "ppi"
    TOO_FEW = "too few sites"
    TOO_WIDE = "too wide"
    NO_SCORES = "no scored articles"
    TOO_FEW_LABELS = "too few labels"
    UNTOLD = "kinds not told apart"
    UNKNOWN_SIGNS = "signs unknown"  # of content farms


class DirectShare(msgspec.Struct, frozen=True, kw_only=True):
    """The share with its interval.

    `share` is None unless the method is direct or ppi; without scored sites all are None.
    """

    share: float | None = None
    low: float | None = None  # valid at one look
    high: float | None = None
    look_low: float | None = None  # valid at every look
    look_high: float | None = None
    method: ShareState = ShareState.NO_SCORES
    scored_sites: int = 0  # with at least one scored article: the base of the share
    design_effect: float = 1.0  # factor of the variance, because sites of a domain or a query agree
    labelled: int = 0  # of these sites, those with a label of the current review
    drawn: int = 0  # sites of that review, labelled or not
    labellers: int = 0  # people who labelled them
    alpha: float | None = None  # their agreement (Krippendorff's alpha); None: not known
    remarks: tuple[Remark, ...] = (Remark(RemarkKind.NO_SCORES),)  # the headline, then the most important first


class ShareChanged(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the share that chance does not explain: `scoring.rates.change_alarm`."""

    day: int  # since 1970, UTC: sites with their first hit on this day or later have another share
    before: float
    after: float
    evidence: float  # against no change


def cells_of(rows: Iterable[SiteState]) -> Counter[tuple[int, int]]:
    """Sites by their numbers of scored and of flagged articles."""
    return Counter((row.scored, row.flagged) for row in rows if row.scored)


def known_sites(canaries: CanarySummary, rows: Iterable[SiteState] = ()) -> KnownSites:
    """The canary sites as sites of known truth; the control pages of `rows` are those of human sites."""
    from scoring.estimate.fit import KnownSites

    human = cells_of(canaries.rounds[Truth.HUMAN]) + control_cells(rows)
    return KnownSites(human, cells_of(canaries.rounds[Truth.LLM]))


def share_of_rows(
    rows: Iterable[SiteState],
    known: KnownSites | None = None,
    confidence: float = 0.95,
    whole: Fit | None = None,
    definition: str = SITES,
    result_weights: Mapping[str, float] | None = None,
) -> tuple[DirectShare, Fit | None]:
    """As `direct_share`, of a definition, and with an interval in which whole domains and queries vary.

    `result_weights` as in `WeightedSites.of`.
    """
    from scoring.estimate.clusters import WeightedSites

    rows = list(rows)
    sites = WeightedSites.of(rows, definition, result_weights)
    if not sites.rows and any(row.abstained and row.detector.endswith(f"/{UNCALIBRATED}") for row in rows):
        kinds = RemarkKind.NO_SHARE, RemarkKind.NO_THRESHOLD, RemarkKind.SET_A_THRESHOLD
        return DirectShare(remarks=tuple(map(Remark, kinds))), None
    return direct_share(sites.cells, known, confidence, whole, sites=sites, definition=definition)


def direct_share(
    cells: CellCounts,
    known: KnownSites | None = None,
    confidence: float = 0.95,
    whole: Fit | None = None,
    *,
    sites: WeightedSites | None = None,
    definition: str = SITES,
) -> tuple[DirectShare, Fit | None]:
    """The share of LLM sites among those of `cells`, and its fit; None without a scored site.

    `whole` is the fit of more sites, which include these, and has used the `known` ones; without it there are only a
    wide prior and the sites of known truth. With `sites`, whose cells these are, the interval is clustered.
    """
    from scoring.estimate.clusters import Agreement, agreement, of_one_query
    from scoring.estimate.doubts import doubts, kinds_not_told_apart, missing_data, none_known
    from scoring.estimate.fit import WIDE, KnownSites
    from scoring.estimate.mixture import estimate_share

    nothing = KnownSites({}, {})
    prior, known = (whole.components, nothing) if whole else (WIDE, known or nothing)
    fit = estimate_share(cells, prior, known, confidence)
    if fit is None:
        return DirectShare(), None
    number = fit.sites if sites is None else len(sites.rows)
    fewest = number if sites is None else min(number, sites.units)
    agree = Agreement(1.0)
    if sites is not None:
        moves = fit.moves(sites.rows)
        agree = agreement(sites, moves)
    ends = ends_of(fit.share, fit.low, fit.high, math.sqrt(agree.effect), every_look(fit.sites, confidence))
    facts: dict[str, Fact] = {"share": fit.share, "low": ends["low"], "high": ends["high"], "confidence": confidence}
    facts["sites"] = number
    if sites is not None and definition in (DOMAINS, *OF_RESULTS):
        facts |= {"units": sites.units, "unit": definition}
    if number > 1 and sites is not None and of_one_query(sites.rows):
        facts["one_query"] = True
    whole = whole or fit
    remarks: list[Remark] = []
    if untold := kinds_not_told_apart(whole):
        method, headline, remarks = ShareState.UNTOLD, RemarkKind.KINDS_NOT_TOLD_APART, [*untold]
        ends = {"low": 0.0, "high": 1.0, "look_low": 0.0, "look_high": 1.0}
    elif fewest < FEWEST_SITES:
        method, headline = ShareState.TOO_FEW, RemarkKind.TOO_FEW
    elif ends["high"] - ends["low"] > WIDEST:
        method, headline = ShareState.TOO_WIDE, RemarkKind.TOO_WIDE
        remarks = missing_data(fit, agree, whole.known)
    else:
        method, headline = ShareState.DIRECT, RemarkKind.SHARE
    if not untold:
        remarks += doubts(cells, fit)
    if method == ShareState.DIRECT:
        remarks += _few_clusters(agree)
        remarks += none_known(whole.known)
        remarks += [Remark.of(RemarkKind.FEW_FOR_A_CHANGE, fewest=FEW_SITES)] if fewest < FEW_SITES else []
    share = DirectShare(
        share=round(fit.share, PLACES) if method == ShareState.DIRECT else None,
        **ends,
        method=method,
        scored_sites=number,
        design_effect=round(agree.effect, PLACES),
        remarks=(Remark(headline, facts), *remarks),
    )
    return share, fit


def _few_clusters(agree: Agreement) -> list[Remark]:
    return [Remark(RemarkKind.FEW_CLUSTERS, agree.facts)] if agree.clusters else []


def _labelled(review: Review, number: int) -> Remark:
    facts: dict[str, Fact] = {"number": number, "at_ms": review.at_ms, "until_ms": review.until_ms}
    facts["labellers"] = len(review.labels)
    if len(review.labels) > 1:
        facts["twice"] = review.twice
    if review.alpha is not None:
        facts["alpha"] = review.alpha
    return Remark(RemarkKind.LABELLED, facts)


def by_review(
    direct: DirectShare,
    fit: Fit,
    rows: Iterable[SiteState],
    review: Review,
    confidence: float,
    definition: str = SITES,
    result_weights: Mapping[str, float] | None = None,
) -> DirectShare:
    """The share of these sites by the labels of a random sample; with too few labels, `direct` with a remark.

    Drawn sites without a label may be of either kind.
    """
    import numpy as np

    from scoring.estimate.clusters import WeightedSites, agreement
    from scoring.estimate.reviewed_share import FEWEST_LABELS, FEWEST_TWICE, reviewed_share

    sites, truths = WeightedSites.of(rows, definition, result_weights), review.truths(definition)
    likely = np.array([fit.posterior[row.scored, row.flagged] for row in sites.rows])
    labels = np.array([truths.likely.get(row.site, math.nan) for row in sites.rows], dtype=float)
    chances = truths.chances_of([row.site for row in sites.rows if row.site in truths.likely])
    reviewed = reviewed_share(likely, labels, confidence, sites.weights, chances)
    number = int(np.isfinite(labels).sum())
    who = {"labellers": len(review.labels), "alpha": None if review.alpha is None else round(review.alpha, PLACES)}
    direct = msgspec.structs.replace(direct, labelled=number, drawn=review.drawn, **who)
    place = 1 + any(remark.kind in REASONS for remark in direct.remarks[1:2])  # the headline with its reason
    headline, others = direct.remarks[:place], direct.remarks[place:]
    if reviewed is None:
        added = [Remark.of(RemarkKind.FEW_LABELS, number=number, needed=FEWEST_LABELS)]
        added += [Remark.of(RemarkKind.LABELS_TOO_OLD, labels=review.too_old)] if review.too_old else []
        return msgspec.structs.replace(direct, remarks=(*headline, *added, *others))
    agree = agreement(sites, reviewed.moves)
    ends = ends_of(*reviewed.interval, math.sqrt(agree.effect), every_look(number, confidence))
    is_wider = ends["high"] - ends["low"] > (direct.high or 1.0) - (direct.low or 0.0)
    missing = review.unlabelled  # they may be of either kind
    ends = {name: round((1 - missing) * end + missing * name.endswith("high"), PLACES) for name, end in ends.items()}
    share, low, high = reviewed.interval.point, ends["low"], ends["high"]
    facts: dict[str, Fact] = {"share": share, "low": low, "high": high, "confidence": confidence}
    added = [_labelled(review, number)]
    apart = np.abs(labels - likely)[[row.site not in truths.tied for row in sites.rows]]  # NaN: no label
    against, firm = int((apart > 0.5).sum()), int(np.isfinite(apart).sum())
    if reviewed.widened >= 1.05:
        added.append(Remark.of(RemarkKind.LABELLERS_DIFFER, times=reviewed.widened))
    if missing:
        added.append(Remark.of(RemarkKind.UNLABELLED, labelled=len(review.sites), drawn=review.drawn))
    if definition not in BY_LABELS:
        if is_wider and direct.share is not None:
            added.append(Remark(RemarkKind.WIDER))
        if against:
            added.append(Remark.of(RemarkKind.AGAINST_FLAGS, against=against, number=firm))
    if len(review.labels) > 1 and review.twice < FEWEST_TWICE:
        added.append(Remark.of(RemarkKind.FEW_TWICE, twice=review.twice, needed=FEWEST_TWICE))
    added += _few_clusters(agree)
    if high - low > WIDEST:
        by_labels = Remark(RemarkKind.REVIEWED_SHARE, facts)
        if definition not in BY_LABELS and 2 * against > firm:
            added.insert(0, Remark(RemarkKind.CONTRADICTION))
        added = [remark for remark in added if remark not in others]
        return msgspec.structs.replace(direct, remarks=(*headline, by_labels, *added, *others))
    if definition not in BY_LABELS:
        if direct.share is not None and not low <= direct.share <= high:
            added.insert(0, Remark(RemarkKind.CONTRADICTION))
        by_flags, *more = direct.remarks
        added += [Remark(RemarkKind.WITHOUT_LABELS, {**by_flags.facts, "headline": by_flags.kind}), *more]
    facts |= {"sites": direct.scored_sites, "definition": definition}
    return msgspec.structs.replace(
        direct,
        share=round(share, PLACES),
        **ends,
        method=ShareState.REVIEWED,
        design_effect=round(agree.effect, PLACES),
        remarks=(Remark(RemarkKind.SHARE, facts), *added),
    )
