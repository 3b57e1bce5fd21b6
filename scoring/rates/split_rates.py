"""Shares over the site rows of a log, with all denominators; never pooled over rulesets, detectors, site methods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from scoring.estimate.definitions import BY_LABELS, SITES
from scoring.interface import UNCALIBRATED
from scoring.rates.canary import is_canary
from scoring.rates.canary_counts import errors_in_force, recent_canaries
from scoring.rates.cuts import Cut
from scoring.rates.direct_share import (
    REVIEWED,
    ShareChanged,
    by_review,
    cells_of,
    known_sites,
    share_of_rows,
    without_labels,
)
from scoring.rates.estimate_line import EstimateLine, estimate_line
from scoring.rates.settings import RateSettings
from scoring.rates.site_rates import (
    GroupKey,
    by_query_group,
    by_rank_band,
    grouped,
    last_days,
    method_of,
    query_groups,
    rate_of,
)
from scoring.rates.terms import TOO_OLD, counted_at, earlier_rows, in_windows, is_too_old
from stream.schema.records import SiteState
from stream.text.wording import counted

if TYPE_CHECKING:
    from scoring.estimate.mixture import Fit
    from scoring.estimate.reviewed_share import Review

UNKNOWN = "unknown"  # the group of sites without a source, query, rank or day in their hits
WINDOWS = ("day", "week", "month")
SPLITS = ("source", "query", "query-group", "rank", *WINDOWS)


class Versions(NamedTuple):
    """The values that must be equal for sites to be counted together."""

    run: str
    ruleset: str
    digest: str  # of the ruleset
    detector: str  # identity
    site_method: str
    site_method_digest: str  # "" = older rows


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
    open_sites: int | None = None  # of the whole crawl: sites with pages still to come; None if unknown
    undated: int = 0  # of all sites: left out by a cut of days because their day is unknown
    mixed: int = 0  # sites with two clear groups of scores, whatever their verdict
    change: ShareChanged | None = None  # of all sites: new ones have another share since a day of the last year
    definition: str = SITES  # definition of the share: sites | domains | results | ranked-results | …
    bound_low: float | None = None  # the share of all sites if none of those without a scored article were LLM sites
    bound_high: float | None = None  # and if all of them were
    not_judged: dict[str, int] = msgspec.field(default_factory=dict)  # reason for no scored article -> sites
    correction: str = ""  # a remark of the canaries on the correction; part of the judged text of all sites
    expired: int = 0  # of all sites, those with an expired verdict

    def short(self, *, at_every_look: bool = False) -> str:
        """The share with its interval, its sites and its versions, for a line among others."""
        if not self.scored_sites:
            return "none yet"
        of = f"{counted(self.scored_sites, 'site')}, ruleset {self.ruleset or '-'} {self.digest[:8]}".rstrip()
        of += f", detector {self.detector or '-'}"
        low, high = (self.look_low, self.look_high) if at_every_look else (self.low, self.high)
        if self.share is None or low is None or high is None:
            return f"none ({self.method}) of {of}"
        holds = " at every look" if at_every_look else ""
        return f"{self.share:.1%} ({self.confidence:.0%} interval{holds} {low:.1%} to {high:.1%}) of {of}"


def rate_lines(
    rows: Sequence[SiteState],
    by: str = "",
    settings: RateSettings | None = None,
    *,
    now_ms: int = 0,
    cut: Cut | None = None,
    run: str = "",
    review: Review | None = None,
    definition: str = SITES,
    no_page: Mapping[str, str] | None = None,
    earlier: Sequence[SiteState] = (),
) -> list[RateLine]:
    """Rates of site rows: one for all sites, or one per group of `by`; each of them per ruleset, detector, method.

    A site found by two sources or queries counts in both. Canary sites among the rows count in none; they correct the
    rates of their ruleset, detector and site method, see `errors_in_force`, if they came through in the time up to
    `now_ms`. With a `review` a share rests on its labels where enough of its sites have one. Without rows there is one
    line, which says so, and is of `run`. `definition` is one of `estimate.definitions`; judged shares are of sites
    in any case. `no_page` has the reasons of sites without a page. A verdict that is too old at `now_ms` does not
    count. Windows take the verdicts that held in them, from rows of `earlier` terms too.
    """
    settings = settings or RateSettings()
    cut = cut or Cut()
    lines, by_site = [], earlier_rows(earlier)
    for versions, found_rows in comparable(rows, run):
        named = [row for row in cut.of(found_rows, settings) if not is_canary(row.site)]
        wanted = [counted_at(row, now_ms) for row in named]
        correction = errors_in_force(settings, found_rows, now_ms, wanted)
        known = known_sites(recent_canaries(settings, found_rows, now_ms))
        confidence = settings.confidence
        of_all, fit = share_of_rows(wanted, known, confidence, definition=definition)
        change = (
            _change(wanted, fit, of_all.design_effect) if fit is not None and not by and definition == SITES else None
        )
        if by in WINDOWS:
            groups = in_windows(named, last_days(by, cut.since, cut.until), by_site, UNKNOWN)
        else:
            groups = grouped(wanted, _key(by, settings)) if by else {"": wanted}
        undated = cut.undated(found_rows, settings)
        for group, group_rows in groups.items():
            judged = rate_of(group_rows, correction.errors, confidence, settings.half_width)
            share, fit_of_group = of_all, fit
            if group_rows != wanted:  # all groups together show how often a kind of site is flagged
                share, fit_of_group = share_of_rows(group_rows, None, confidence, fit, definition)
            if review is not None and fit_of_group is not None:
                share = by_review(share, fit_of_group, group_rows, review, confidence, definition)
            if definition in BY_LABELS and share.method != REVIEWED:
                share = without_labels(share)
            found = estimate_line(judged, share)
            estimate = msgspec.structs.asdict(found)
            if correction.remark and not by:
                estimate["judged_text"] += f"; {correction.remark}"
            if definition == SITES:
                estimate |= _bounds(found)
            lines.append(
                RateLine(
                    **estimate,
                    **versions._asdict(),
                    by=by,
                    group=group,
                    without_pages=judged.without_pages or 0,
                    undated=undated,
                    mixed=sum(row.mixed for row in group_rows),
                    change=change,
                    definition=definition,
                    not_judged=_not_judged(group_rows, no_page or {}),
                    correction=correction.remark,
                    expired=sum(map(is_too_old, group_rows)),
                )
            )
    return lines


def llm_probabilities(
    rows: Sequence[SiteState], settings: RateSettings | None = None, now_ms: int = 0
) -> dict[str, float]:
    """Site -> probability that it is an LLM site, by its flagged articles and those of all sites of its versions.

    Sites without a scored article have none, and neither have canaries.
    """
    from scoring.estimate.mixture import WIDE, estimate_share  # it loads numpy

    found = {}
    for _, of_versions in comparable(rows):
        sites = [counted_at(row, now_ms) for row in of_versions if not is_canary(row.site)]
        known = known_sites(recent_canaries(settings or RateSettings(), of_versions, now_ms))
        fit = estimate_share(cells_of(sites), WIDE, known)
        for row in sites:
            if fit is not None and (row.scored, row.flagged) in fit.posterior:
                found[row.site] = round(fit.posterior[row.scored, row.flagged], 6)
    return found


def _not_judged(rows: Sequence[SiteState], no_page: Mapping[str, str]) -> dict[str, int]:
    """The reasons why sites have no scored article, with their numbers."""
    why: Counter[str] = Counter()
    for row in rows:
        if is_too_old(row):
            why[TOO_OLD] += 1
        elif not row.scored and not row.pages:
            why[no_page.get(row.site, "no page")] += 1
        elif not row.scored and not row.articles:
            most = max(row.dropped_by, key=row.dropped_by.__getitem__, default="")
            why["another language" if most == "language" else "no article"] += 1
        elif not row.scored:
            why["no threshold" if row.detector.endswith(f"/{UNCALIBRATED}") else "no score"] += 1
    return dict(why.most_common())


def _bounds(line: EstimateLine) -> dict[str, float | None]:
    """Worst cases (Manski, Partial Identification of Probability Distributions, 2003), with the share's interval."""
    if line.low is None or line.high is None:
        return {}
    judged = line.scored_sites / line.sites
    return {"bound_low": round(line.low * judged, 9), "bound_high": round(1 - (1 - line.high) * judged, 9)}


def _change(rows: Sequence[SiteState], fit: Fit, design_effect: float) -> ShareChanged | None:
    """The alarm over sites by the day of their first hit."""
    from scoring.rates.change_alarm import find_change  # it loads numpy

    cells_of_day: dict[int, Counter[tuple[int, int]]] = {}
    for row in rows:
        if row.scored and row.days:
            cells_of_day.setdefault(row.days[0], Counter())[row.scored, row.flagged] += 1
    return find_change(cells_of_day, fit, design_effect)


def _key(by: str, settings: RateSettings) -> GroupKey:
    keys: dict[str, GroupKey] = {
        "source": lambda row: row.sources,
        "query": lambda row: row.queries,
        "query-group": by_query_group(query_groups(settings.groups)),
        "rank": by_rank_band,
    }
    key = keys[by]
    return lambda row: key(row) or [UNKNOWN]


def comparable(rows: Sequence[SiteState], run: str = "") -> Iterator[tuple[Versions, list[SiteState]]]:
    """Rows that may be counted together; without rows there is one set of versions, of `run`.

    A site without a judged page counts with each of its detector.
    """
    found: dict[Versions, list[SiteState]] = {}
    for row in rows:
        versions = Versions(row.run, row.ruleset, row.digest, row.detector, *method_of(row))
        found.setdefault(versions, []).append(row)
    judged = {versions for versions in found if versions.ruleset}
    for versions in sorted(judged or set(found) or {Versions(run, "", "", "", "", "")}):
        unjudged = Versions(versions.run, "", "", versions.detector, "", "")
        extra = found.get(unjudged, []) if versions in judged else []
        yield versions, [*found.get(versions, []), *extra]
