"""Shares over the site rows of a log, with all denominators; never pooled over rulesets, detectors, site methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from scoring.estimate.definitions import BY_LABELS, FARM, SITES
from scoring.estimate.error_counts import ErrorCounts
from scoring.estimate.remarks import Remark, RemarkKind
from scoring.interface import UNCALIBRATED
from scoring.rates.canary import is_canary
from scoring.rates.canary_counts import Correction, by_canaries, recent_canaries
from scoring.rates.controls import ControlCounts, archived, count_controls, count_declared
from scoring.rates.cuts import Cut, cut_rows
from scoring.rates.direct_share import (
    DirectShare,
    ShareChanged,
    ShareState,
    by_review,
    cells_of,
    known_sites,
    share_of_rows,
)
from scoring.rates.farm_share import FarmShare, farm_share
from scoring.rates.farm_signs import FarmSigns, ListedUrls
from scoring.rates.results import PARTS, Members, ResultPart, Results, part_of
from scoring.rates.settings import RateSettings
from scoring.rates.site_rates import (
    NEEDS_SCRIPT,
    EstimateLine,
    is_hidden_by_script,
    is_through_segments,
    rate_of,
    without_a_page,
)
from scoring.rates.terms import TOO_OLD, counted_at, is_too_old
from scoring.rates.versions import Versions, comparable
from stream.schema.records import Sitemaps, SiteState

if TYPE_CHECKING:
    from scoring.estimate.fit import Fit
    from scoring.estimate.reviewed_share import Review


@dataclass(frozen=True, slots=True, kw_only=True)
class RateQuery:
    """What is asked of the rows of sites."""

    by: str = ""  # one of SPLITS, of results one of RESULT_SPLITS; "" = all sites
    settings: RateSettings = field(default_factory=RateSettings)
    now_ms: int = 0  # a verdict that is too old then does not count
    cut: Cut = field(default_factory=Cut)
    run: str = ""  # of the line without rows
    review: Review | None = None  # the share rests on its labels where enough of its sites have one
    definition: str = SITES  # one of `estimate.definitions`; judged shares are of sites in any case
    no_page: Mapping[str, str] = field(default_factory=dict)  # site -> why it has no page
    earlier: Sequence[SiteState] = ()  # rows of earlier terms, whose verdicts held in windows
    sitemaps: Mapping[str, ListedUrls | Sitemaps] = field(default_factory=dict)  # by site, for the share of farms
    results: Results | None = None  # by `by` and `cut`; a definition of results needs them
    errors: ErrorCounts | None = None  # correct the judged share in place of the canaries: those of an older bundle

    def chosen(self, rows: Iterable[SiteState]) -> list[SiteState]:
        """The sites that meet the cut, by their results where these count."""
        return self.results.named(rows) if self.results else self.cut.of(rows, self.settings.groups)

    def undated(self, rows: Iterable[SiteState]) -> int:
        """The sites that a cut of days leaves out because their day is unknown."""
        return self.results.undated(rows) if self.results else self.cut.undated(rows, self.settings.groups)


class RateLine(EstimateLine, frozen=True, kw_only=True):
    """Output of `rate --json` for each group: the fields of `estimate`, then the group and the versions."""

    by: str  # "", or one of SPLITS
    group: str  # its value; "" = all sites
    run: str
    ruleset: str
    digest: str
    detector: str
    site_method: str
    site_method_digest: str
    without_pages: int  # of the unclassifiable: no page so far; the others have too few scored articles
    crawling: int | None = None  # of the whole crawl: sites with pages still to come; None if unknown
    preferring: int | None = None  # of the whole crawl: sites that state a preference on the use by AI
    undated: int = 0  # of all sites: left out by a cut of days because their day is unknown
    mixed: int = 0  # sites with two clear groups of scores, whatever their verdict
    change: ShareChanged | None = None  # of all sites: new ones have another share since a day of the last year
    definition: str = SITES  # definition of the share: sites | domains | results | ranked-results | …
    bound_low: float | None = None  # the share of all sites if none of those without a scored article were LLM sites
    bound_high: float | None = None  # and if all of them were
    not_judged: dict[str, int] = msgspec.field(default_factory=dict)  # reason for no scored article -> sites
    not_judged_bounds: dict[str, tuple[float, float]] = msgspec.field(default_factory=dict)
    """Reason -> the bounds over the sites with a scored article and those of this reason."""
    canary_remark: Remark | None = None  # of the canaries; among the judged remarks of all sites
    expired: int = 0  # of all sites, those with an expired verdict
    through_segments: int = 0  # of the sites with a scored article: none of their articles is one as a whole page
    controls: ControlCounts | None = None  # pages that are surely human by their dates, and the flagged of them
    declared: ControlCounts | None = None  # those declared older without a day of change
    at_most: float | None = None  # of farms: the share with the sites of which a sign is unknown
    farms: list[FarmShare] = msgspec.field(default_factory=list)  # of this number of article URLs, then of others
    results: int = 0  # of a definition of results: those that name these sites
    scored_results: int = 0  # and of these sites, those with a scored article
    first_ten: ResultPart | None = None  # of the results, those of ranks 1 to 10
    new: ResultPart | None = None  # those that name a site which no result named before the window, or the cut's days
    returning: ResultPart | None = None  # and those that name another

    def result_parts(self) -> dict[str, ResultPart]:
        """All results of the line, and its parts, by name."""
        whole = ResultPart(self.share, self.low, self.high, self.method, self.scored_results, self.scored_sites)
        parts = {name: getattr(self, name) for name in PARTS}
        return {"all": whole} | {name: part for name, part in parts.items() if part is not None}


class _Whole(NamedTuple):
    """All sites of the versions, as they count, and what their groups share."""

    versions: Versions
    members: Members
    of_archives: Sequence[SiteState]
    correction: Correction
    share: DirectShare
    fit: Fit | None  # shows how often a kind of site is flagged
    change: ShareChanged | None
    undated: int
    signs: FarmSigns | None  # for a share of farms: of the whole log, because a group may have no signal


def rate_lines(rows: Sequence[SiteState], query: RateQuery | None = None) -> list[RateLine]:
    """Rates of site rows: one for all sites, or one per group; each of them per ruleset, detector, method.

    A site found by two sources or queries counts in both. Canary sites among the rows count in none; they correct the
    rates of their ruleset, detector and site method, see `by_canaries`, if they came through in the time up to
    `now_ms`. Without rows there is one line, which says so.
    """
    query = query or RateQuery()
    settings, now_ms, lines = query.settings, query.now_ms, []
    signs = FarmSigns.of([*rows, *query.earlier], query.sitemaps) if query.definition == FARM else None
    for versions, of_versions in comparable(rows, query.run):
        counted, groups = _rows_of(of_versions, query)
        weights = query.results.weights("", query.definition) if query.results else None
        canaries = recent_canaries(settings, of_versions, now_ms)
        correction = Correction(query.errors) if query.errors else by_canaries(canaries, counted)
        of_archives = archived(of_versions)
        known = known_sites(canaries, [*counted, *of_archives])
        share, fit = share_of_rows(
            counted, known, settings.confidence, definition=query.definition, result_weights=weights
        )
        change = None
        if fit is not None and not query.by and query.definition == SITES:
            from scoring.rates.change_alarm import change_of_rows  # it loads numpy

            change = change_of_rows(counted, fit, share.design_effect)
        undated = query.undated(of_versions)
        whole = _Whole(versions, Members(counted, weights), of_archives, correction, share, fit, change, undated, signs)
        for group, rows_of_group in groups.items():
            of_group = query.results.weights(group, query.definition) if query.results else None
            lines.append(_line(group, Members(rows_of_group, of_group), whole, query))
    return lines


def _rows_of(rows: Sequence[SiteState], query: RateQuery) -> tuple[list[SiteState], dict[str, list[SiteState]]]:
    """The rows that count, and those of each group."""
    if query.results is not None:
        return query.results.cut_rows(rows, query.now_ms, query.earlier)
    return cut_rows(rows, query.by, query.cut, query.settings.groups, query.now_ms, query.earlier)


def _share(members: Members, whole: _Whole, query: RateQuery) -> tuple[DirectShare, Fit | None]:
    """The share of a group, by the review if it has enough labels, and its fit."""
    confidence = query.settings.confidence
    share, fit = whole.share, whole.fit
    rows, result_weights = members
    if members != whole.members:
        share, fit = share_of_rows(rows, None, confidence, whole.fit, query.definition, result_weights)
    if query.review is not None and fit is not None:
        share = by_review(share, fit, rows, query.review, confidence, query.definition, result_weights)
    if query.definition in BY_LABELS and share.method != ShareState.REVIEWED:
        remarks = Remark(RemarkKind.NO_SHARE), Remark(RemarkKind.NO_LABELS)
        share = DirectShare(method=ShareState.TOO_FEW_LABELS, scored_sites=share.scored_sites, remarks=remarks)
    return share, fit


def _line(group: str, of_group: Members, whole: _Whole, query: RateQuery) -> RateLine:
    share, _ = _share(of_group, whole, query)
    correction, members = whole.correction, of_group.rows
    farms: list[FarmShare] = []
    if whole.signs is not None:

        def part_of_farms(rows: Sequence[SiteState]) -> tuple[DirectShare, Fit | None]:
            return _share(Members(rows), whole, query)

        share, farms = farm_share(members, share, whole.signs, part_of_farms, query.settings.confidence, query.now_ms)
    judged = rate_of(members, correction.errors, query.settings.confidence)
    if correction.remark is not None and not query.by:
        judged = msgspec.structs.replace(judged, remarks=(*judged.remarks, correction.remark))
    not_judged = _not_judged(members, query.no_page)
    bound_low = bound_high = None
    bounds: dict[str, tuple[float, float]] = {}
    if query.definition == SITES and share.low is not None and share.high is not None:
        bound_low, bound_high = _bounds(share, judged.sites)
        bounds = {reason: _bounds(share, share.scored_sites + sites) for reason, sites in not_judged.items()}
    of_results: dict[str, Any] = {}
    if query.results is not None:
        parts = query.results.parts(group, members, query.definition)
        of_results = {name: part_of(_share(part, whole, query)[0], part.rows) for name, part in parts}
        of_results["results"] = sum(row.hits for row in members)
        of_results["scored_results"] = sum(row.hits for row in members if row.scored)
    return RateLine.of(
        judged,
        share,
        **whole.versions._asdict(),
        by=query.by,
        group=group,
        without_pages=sum(map(without_a_page, members)),
        undated=whole.undated,
        mixed=sum(row.mixed for row in members),
        change=whole.change,
        definition=query.definition,
        bound_low=bound_low,
        bound_high=bound_high,
        not_judged=not_judged,
        not_judged_bounds=bounds,
        canary_remark=correction.remark,
        expired=sum(map(is_too_old, members)),
        through_segments=sum(is_through_segments(row.scored, row.through_segments) for row in members),
        controls=count_controls(members if query.by else [*members, *whole.of_archives]),
        declared=count_declared(members),
        at_most=farms[0].at_most if farms else None,
        farms=farms,
        **of_results,
    )


def _bounds(share: DirectShare, sites: int) -> tuple[float, float]:
    """The interval's ends over so many sites, if none or all of those without a scored article were LLM sites.

    These are the worst cases of Manski (Partial Identification of Probability Distributions, 2003).
    """
    assert share.low is not None and share.high is not None, "it has an interval"
    scored = share.scored_sites / sites
    return round(share.low * scored, 9), round(1 - (1 - share.high) * scored, 9)


def fits_of(rows: Sequence[SiteState], settings: RateSettings, now_ms: int) -> Iterator[tuple[list[SiteState], Fit]]:
    """The sites of each ruleset, detector and site method, as they count at `now_ms`, with their mixture."""
    from scoring.estimate.fit import WIDE
    from scoring.estimate.mixture import estimate_share  # it loads numpy

    for _, of_versions in comparable(rows):
        sites = [counted_at(row, now_ms) for row in of_versions if not is_canary(row.site)]
        known = known_sites(recent_canaries(settings, of_versions, now_ms), [*sites, *archived(of_versions)])
        fit = estimate_share(cells_of(sites), WIDE, known)
        if fit is not None:
            yield sites, fit


def llm_probabilities(
    rows: Sequence[SiteState], settings: RateSettings | None = None, now_ms: int = 0
) -> dict[str, float]:
    """Site -> probability that it is an LLM site, by its flagged articles and those of all sites of its versions.

    Sites without a scored article have none, and neither have canaries.
    """
    return {
        row.site: round(fit.posterior[row.scored, row.flagged], 6)
        for sites, fit in fits_of(rows, settings or RateSettings(), now_ms)
        for row in sites
        if (row.scored, row.flagged) in fit.posterior
    }


def _not_judged(rows: Sequence[SiteState], no_page: Mapping[str, str]) -> dict[str, int]:
    """The reasons why sites have no scored article, with their numbers."""
    why: Counter[str] = Counter()
    for row in rows:
        if is_too_old(row):
            why[TOO_OLD] += 1
        elif not row.scored and not row.pages:
            why[no_page.get(row.site, "no page")] += 1
        elif not row.scored and is_hidden_by_script(row):
            why[NEEDS_SCRIPT] += 1
        elif not row.scored and not row.articles:
            most = max(row.dropped_by, key=row.dropped_by.__getitem__, default="")
            why["another language" if most == "language" else "no article"] += 1
        elif not row.scored and row.detector.endswith(f"/{UNCALIBRATED}"):
            why["no threshold"] += 1
        elif not row.scored:
            why["detector abstained" if row.abstained else "no score"] += 1
    return dict(why.most_common())
