"""The change of a panel: the same sites in the term in which it was made and in their newest one, paired.

Sites that are new to the web are no part of it, so the change is of sites and not of their mixture. The interval is
that of `estimate.paired_bootstrap`. The p value is McNemar's exact one (Psychometrika 12, 1947): of the sites that
changed, either direction is as likely if nothing has.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from scoring.rates.terms import counted_at, earlier_rows, is_too_old
from scoring.rates.versions import versions_of
from stream.schema.records import SiteState
from stream.schema.vocabulary import SiteClass

_SEED = 1


class PanelChange(msgspec.Struct, frozen=True, kw_only=True):
    """The paired change of a panel, with what became of its sites: they add up to `sites`."""

    sites: int
    pairs: int  # with a verdict in both terms, of one ruleset, detector and method
    not_yet: int  # not measured in a later term so far
    unclassified: int  # without a verdict in one of the two terms
    too_old: int  # their newest verdict
    other_versions: int  # judged by another ruleset, detector or method then, or no longer in the log
    llm_before: int
    llm_now: int
    turned: int  # to llm
    turned_back: int
    turned_sites: list[str]
    turned_back_sites: list[str]
    change: float | None = None  # of the share of llm verdicts among pairs; None without a pair
    low: float | None = None
    high: float | None = None
    p: float | None = None  # of McNemar's exact test; None where no site changed


def panel_change(
    sites: Iterable[str],
    made_at: int,
    newest: Iterable[SiteState],
    earlier: Iterable[SiteState],
    now_ms: int,
    confidence: float = 0.95,
) -> PanelChange:
    """The change of a panel of `sites` since the time at which it was made, by the rows of a run."""
    sites = sorted(sites)
    rows, of_terms = {row.site: row for row in newest}, earlier_rows(earlier)
    by_site: dict[str, tuple[bool, bool]] = {}
    not_yet = unclassified = too_old = other = 0
    for site in sites:
        row = rows.get(site)
        if row is None:
            other += 1
            continue
        terms = [*of_terms.get(site, ()), row]
        now = counted_at(row, now_ms)
        before = ([term for term in terms if term.term_start <= made_at] or terms[:1])[-1]
        if is_too_old(now):
            too_old += 1
        elif before.term_start > made_at or versions_of(before) != versions_of(now):
            other += 1
        elif before.term == now.term:
            not_yet += 1
        elif SiteClass.UNCLASSIFIABLE in (before.verdict, now.verdict):
            unclassified += 1
        else:
            by_site[site] = before.verdict == SiteClass.LLM, now.verdict == SiteClass.LLM
    pairs = list(by_site.values())
    change, low, high = _interval(pairs, confidence)
    to_llm = [site for site, pair in by_site.items() if pair == (False, True)]
    to_human = [site for site, pair in by_site.items() if pair == (True, False)]
    return PanelChange(
        sites=len(sites),
        pairs=len(pairs),
        not_yet=not_yet,
        unclassified=unclassified,
        too_old=too_old,
        other_versions=other,
        llm_before=sum(before for before, _ in pairs),
        llm_now=sum(now for _, now in pairs),
        turned=len(to_llm),
        turned_back=len(to_human),
        turned_sites=to_llm,
        turned_back_sites=to_human,
        change=change,
        low=low,
        high=high,
        p=_mcnemar(len(to_llm), len(to_human)),
    )


def _interval(pairs: Sequence[tuple[bool, bool]], confidence: float) -> tuple[float | None, float | None, float | None]:
    import numpy as np

    from scoring.estimate.paired_bootstrap import paired_change  # it loads numpy

    if not pairs:
        return None, None, None
    sums = np.array([[before, 1, now, 1] for before, now in pairs], np.float64)
    change = paired_change(sums, np.random.default_rng(_SEED), confidence=confidence)
    assert change is not None  # every site has a whole
    return round(change.difference, 9), round(change.low, 9), round(change.high, 9)


def _mcnemar(turned: int, back: int) -> float | None:
    changed = turned + back
    if not changed:
        return None
    tail = sum(math.comb(changed, few) for few in range(min(turned, back) + 1))
    return min(1.0, round(2 * tail / (1 << changed), 9))
