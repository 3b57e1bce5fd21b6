"""Verdicts and page flags of canary sites, whose truth is known: their errors, and the correction of a rate.

A canary site is sent again every round under a new name, with the same texts, to which a detector gives the same
scores. So the rounds of one content count as one site. So do the rounds of one label, whose texts may be edited between
rounds without becoming a new site. For each label, and for each content, the newest round counts. While it is
incomplete, the round before it counts instead; a round that a newer one follows counts, however it ended. As in rates,
unclassifiable sites are left out, and undecided ones count as not llm.

Canaries have more articles than most sites, and a site with few articles is rarely called llm. `counts_as_long_as` cuts
them to the lengths of the sites that they correct: a canary that was called llm after n articles counts as found for
the share of these sites with n articles. The articles of a decided site are a lower bound of its total, so these shares
are Kaplan and Meier's (Nonparametric Estimation from Incomplete Observations, JASA 53, 1958).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from scoring.estimate.error_counts import CanaryCounts, ErrorCounts
from scoring.estimate.intervals import Z95, Interval, wilson
from scoring.estimate.remarks import Fact, Remark, RemarkKind
from scoring.rates.canary import canary_name, truth_of
from scoring.rates.settings import RateSettings
from scoring.rates.versions import refuse_pooled
from stream.schema.control_sites import is_control_site
from stream.schema.records import SiteState
from stream.schema.vocabulary import SiteClass, Truth
from stream.text.times import DAY_MS

CANARY_LEAST = 20  # classifiable canary sites of each truth that correct a rate


class CanaryPages(msgspec.Struct, frozen=True, kw_only=True):
    """Pages of canary sites of one truth, or of one site."""

    sent: int  # by the sites' names
    measured: int  # with features
    kept: int  # articles by the ruleset
    scored: int  # articles with a usable score
    flagged: int  # those flagged as SiteClass.LLM text


class CanarySummary(msgspec.Struct, frozen=True, kw_only=True):
    """Canary sites of one detector, ruleset and site method; the keys are their authors, `human` and `llm`."""

    sites: Mapping[str, Mapping[str, int]]  # truth -> verdict -> sites
    rounds: Mapping[str, Sequence[SiteState]]  # truth -> the row of each complete site
    last_at: int  # when the newest page of a complete canary site was sent, ms; 0 = there is none

    @property
    def pages(self) -> dict[str, CanaryPages]:
        """The pages of all sites of a truth."""
        names = CanaryPages.__struct_fields__
        of_sites = {truth: [_pages(row) for row in rows] for truth, rows in self.rounds.items()}
        return {
            truth: CanaryPages(**{name: sum(getattr(site, name) for site in sites) for name in names})
            for truth, sites in of_sites.items()
        }

    @property
    def counts(self) -> CanaryCounts:
        """The errors of the site verdict."""
        human, llm = self.sites[Truth.HUMAN], self.sites[Truth.LLM]
        classifiable = {truth: _classifiable(verdicts) for truth, verdicts in self.sites.items()}
        return CanaryCounts(
            llm_sites=classifiable[Truth.LLM],
            llm_found=llm.get(SiteClass.LLM, 0),
            human_sites=classifiable[Truth.HUMAN],
            human_cleared=classifiable[Truth.HUMAN] - human.get(SiteClass.LLM, 0),
        )

    def counts_as_long_as(self, sites: Iterable[SiteState]) -> CanaryCounts:
        """The errors of the site verdict if the canaries had as many articles as these sites."""
        counts, share_of_length = self.counts, _shares_of_lengths(sites)
        kept = {}
        for truth, rows in self.rounds.items():
            shares = [share_of_length(row.pages_used) for row in rows if row.verdict == SiteClass.LLM]
            kept[truth] = sum(shares) / len(shares) if shares else 1.0
        called = counts.human_sites - counts.human_cleared
        return msgspec.structs.replace(
            counts,
            llm_found=round(counts.llm_found * kept[Truth.LLM]),
            human_cleared=counts.human_sites - round(called * kept[Truth.HUMAN]),
        )

    def shares(self) -> dict[str, Interval]:
        """The shares that the canaries measure, by name; those without a denominator are left out.

        site_fpr and site_tpr: classifiable sites called llm; page_fpr and page_tpr: scored pages that are flagged;
        kept_human and kept_llm: sent pages that the ruleset keeps. Pages of a site agree, so that the intervals of page
        shares are those of `scoring.statistics.shares`, in which whole sites vary.
        """
        import numpy as np

        from scoring.statistics.shares import share  # it loads numpy, which most rates do not need

        shares: dict[str, Interval] = {}
        for truth, name in ((Truth.HUMAN, "fpr"), (Truth.LLM, "tpr")):
            verdicts, pages = self.sites[truth], [_pages(row) for row in self.rounds[truth]]
            classifiable = _classifiable(verdicts)
            if classifiable:
                shares[f"site_{name}"] = wilson(verdicts.get(SiteClass.LLM, 0), classifiable, Z95)
            for kind, counted in (
                (f"page_{name}", [(site.flagged, site.scored) for site in pages]),
                (f"kept_{truth}", [(site.kept, site.sent) for site in pages]),
            ):
                if any(whole for _, whole in counted):
                    hits = np.concatenate([np.arange(whole) < part for part, whole in counted])
                    pages_of = share(hits, np.repeat(np.arange(len(counted)), [whole for _, whole in counted]))
                    assert pages_of.share is not None and pages_of.low is not None and pages_of.high is not None
                    shares[kind] = Interval(pages_of.share, pages_of.low, pages_of.high)
        return shares


def canary_summary(rows: Iterable[SiteState], since_ms: int = 0) -> CanarySummary:
    """Count the canary sites in rows that were sent since then (ms), one round of each label and content.

    Control sites of archives are left out: nobody sends them, and `scoring.rates.controls` counts them.

    Raises PooledDetectors for canary rows of several detectors, rulesets, site methods or runs.
    """
    canaries = [row for row in rows if truth_of(row.site) is not None and not is_control_site(row.site)]
    over, under_way = _chosen(row for row in canaries if row.updated_at >= since_ms)
    refuse_pooled(canaries)
    every = [*over, *under_way]
    return CanarySummary(
        sites={truth: dict(Counter(row.verdict for row in every if truth_of(row.site) == truth)) for truth in Truth},
        rounds={truth: [row for row in over if truth_of(row.site) == truth] for truth in Truth},
        last_at=max((row.updated_at for row in canaries), default=0),
    )


@dataclass(frozen=True, slots=True)
class Correction:
    """The error counts that correct a rate, or None, and a remark if canaries are part of it."""

    errors: ErrorCounts | None = None
    remark: Remark | None = None


def recent_canaries(settings: RateSettings, rows: Iterable[SiteState], now_ms: int) -> CanarySummary:
    """The canaries that count now, of `rows` of one ruleset, detector and site method. Raises PooledDetectors.

    A canary is as old as its row's `updated_at`, which is the time of its round.
    """
    return canary_summary(rows, now_ms - int(settings.canary_days * DAY_MS))


def by_canaries(summary: CanarySummary, sites: Iterable[SiteState] = ()) -> Correction:
    """The canaries' error counts, cut to the lengths of the sites; or the reason for none, if there are canaries.

    At least CANARY_LEAST of each truth must be classifiable.
    """
    counts = summary.counts_as_long_as(sites)
    if not any(summary.sites.values()):
        return Correction()
    facts: dict[str, Fact] = {"llm_sites": counts.llm_sites, "human_sites": counts.human_sites}
    if min(counts.llm_sites, counts.human_sites) < CANARY_LEAST:
        return Correction(remark=Remark(RemarkKind.FEW_CANARIES, facts | {"least": CANARY_LEAST}))
    if counts.unusable:
        return Correction(remark=Remark.of(RemarkKind.NOT_CORRECTED, reason=counts.unusable))
    facts |= {"llm_found": counts.llm_found, "called": counts.human_sites - counts.human_cleared}
    return Correction(counts, Remark(RemarkKind.CORRECTED, facts | {"shortened": counts != summary.counts}))


def _chosen(rows: Iterable[SiteState]) -> tuple[list[SiteState], list[SiteState]]:
    """One round of each label and content, see the module: those that are over or followed, and those under way."""
    over: list[SiteState] = []
    taken: set[str] = set()
    under_way: list[SiteState] = []
    followed: set[str] = set()
    for row in sorted(rows, key=lambda row: (row.updated_at, row.site), reverse=True):
        if not taken.isdisjoint(_same(row)):
            continue
        name = canary_name(row.site)
        sent = row.pages if name is None else name.pages
        is_under_way = row.pages < sent or row.scored + row.abstained < row.articles
        if followed.isdisjoint(_same(row)) and is_under_way:
            under_way.append(row)
            followed |= _same(row)
        else:
            over.append(row)
            taken |= _same(row)
    # Without an earlier round, an incomplete one counts as it is.
    return over, [row for row in under_way if taken.isdisjoint(_same(row))]


def _same(row: SiteState) -> set[str]:
    """Keys of a round: two rounds that share one are of one site (label and truth) or of one content."""
    name = canary_name(row.site)
    return {row.site} if name is None else {f"{name.label} {name.truth}", name.content}


def _shares_of_lengths(sites: Iterable[SiteState]) -> Callable[[int], float]:
    """Number of articles -> the share of classifiable sites with as many; 1 if none is known."""
    ended: Counter[int] = Counter()  # undecided: they have no more articles
    decided: Counter[int] = Counter()  # further articles would not have been crawled
    for row in sites:
        if row.verdict != SiteClass.UNCLASSIFIABLE:
            length = row.scored if row.verdict == SiteClass.UNDECIDED else max(row.articles - row.abstained, row.scored)
            (ended if row.verdict == SiteClass.UNDECIDED else decided)[length] += 1
    shares, share, left = {}, 1.0, ended.total() + decided.total()
    for length in sorted(ended | decided):
        shares[length] = share  # of sites of at least that length
        left -= decided[length]
        if ended[length]:
            share *= 1 - ended[length] / left
            left -= ended[length]
    lengths = sorted(shares)

    def share_of_length(articles: int) -> float:
        longer = bisect_left(lengths, articles)
        return shares[lengths[longer]] if longer < len(lengths) else share if lengths else 1.0

    return share_of_length


def _classifiable(verdicts: Mapping[str, int]) -> int:
    return sum(count for verdict, count in verdicts.items() if verdict != SiteClass.UNCLASSIFIABLE)


def _pages(row: SiteState) -> CanaryPages:
    name = canary_name(row.site)
    return CanaryPages(
        sent=row.pages if name is None else name.pages,
        measured=row.pages,
        kept=row.articles,
        scored=row.scored,
        flagged=row.flagged,
    )
