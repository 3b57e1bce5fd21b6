"""Splits a change of the share: new sites, other sources, expired sites, known sites, another instrument.

The parts add up to the change from a stored point of the series to the present share:

- instrument: the steps between points that differ in ruleset, detector, site method, run or method of the estimate;
- new sites and sources: the mean probability (of being an LLM site) of all present sites, less that of the sites known
  then. The sources' part is the change if only their weights had changed, not their means (Kitagawa, Components of a
  difference between two rates, Journal of the American Statistical Association 50, 1955);
- left sites: the same for the sites known then that still count, less that of all known then. The verdicts of the
  others have expired;
- known sites: the rest. More of their articles have scores, or the two kinds of sites are fitted differently. Without
  a known site, the rest belongs to new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

import msgspec

from scoring.errors import BadParameters
from scoring.rates.split_rates import RateLine
from scoring.rates.terms import counted_at, is_too_old
from stream.schema.records import RatePoint, SiteState
from stream.text.times import DAY_MS

_PLACES = 9


class ChangeParts(msgspec.Struct, frozen=True, kw_only=True):
    """A change of the share, as differences of shares: the parts add up to `after` - `before`."""

    since: int  # ms, of the point from which it is counted
    before: float
    before_low: float | None  # valid at one look; older points have none
    before_high: float | None
    before_sites: int  # with a scored article
    before_confidence: float
    after: float
    new_sites: float
    sources: float
    left_sites: float
    known_sites: float
    instrument: float
    new: int  # sites with a scored article that entered the log after `since`
    known: int  # the other present sites
    left: int  # the other sites whose verdict has expired since
    seams: list[int]  # ms, of the points with a new instrument


def change_parts(
    points: Iterable[RatePoint], now: RateLine, rows: Sequence[SiteState], likely: Mapping[str, float], now_ms: int
) -> ChangeParts:
    """Split the change from the first point with a share of all sites to `now`.

    `rows` are the sites of `now`; `likely` maps those with a scored article to their probability, even if their verdict
    has expired at `now_ms`. If points of one time have several instruments, that with the most sites counts. Raises
    BadParameters without a share then; there must be one now.
    """
    assert now.share is not None
    kept: dict[int, RatePoint] = {}
    for point in points:
        most = kept.get(point.at)
        if not point.by and point.share is not None and (most is None or point.scored_sites > most.scored_sites):
            kept[point.at] = point
    if not kept:
        raise BadParameters("no share was kept since then")
    series = [
        *((at, kept[at].share or 0.0, _instrument(kept[at], kept[at].share_method)) for at in sorted(kept)),
        (max(kept), now.share, _instrument(now, now.method)),
    ]
    seams = [(after[0], after[1] - before[1]) for before, after in pairwise(series) if before[2] != after[2]]
    since, before, _ = series[0]
    first = kept[since]
    new: list[SiteState] = []
    known: list[SiteState] = []
    left: list[SiteState] = []
    for row in rows:
        if row.site in likely:
            is_new = _is_new(row, since)
            if not is_too_old(counted_at(row, now_ms)):
                (new if is_new else known).append(row)
            elif not is_new and not is_too_old(counted_at(row, since)):
                left.append(row)
    instrument = sum(step for _, step in seams)
    rest = now.share - before - instrument
    by_sources, by_sites = _of_new(known, [*known, *new], likely) if known else (0.0, rest)
    by_left = _mean(known, likely) - _mean([*known, *left], likely) if known else 0.0
    return ChangeParts(
        since=since,
        before=before,
        before_low=first.share_low_once,
        before_high=first.share_high_once,
        before_sites=first.scored_sites,
        before_confidence=first.confidence,
        after=now.share,
        new_sites=round(by_sites, _PLACES),
        sources=round(by_sources, _PLACES),
        left_sites=round(by_left, _PLACES),
        known_sites=round(rest - by_sources - by_sites - by_left, _PLACES),
        instrument=round(instrument, _PLACES),
        new=len(new),
        known=len(known),
        left=len(left),
        seams=[at for at, _ in seams],
    )


def _is_new(row: SiteState, since: int) -> bool:
    """Whether the first page of a site came after `since`; of a row without terms, its first hit on that day or later.

    The date of a hit says when a search engine returned the site, which may be long before the log has it.
    """
    if row.term_end:
        return row.term_start - row.term * (row.term_end - row.term_start) > since
    return bool(row.days) and row.days[0] >= since // DAY_MS


def _instrument(of: RatePoint | RateLine, method: str) -> tuple[str, ...]:
    return of.run, of.digest, of.detector, of.site_method, of.site_method_digest, method


def _of_new(known: Sequence[SiteState], sites: Sequence[SiteState], likely: Mapping[str, float]) -> tuple[float, float]:
    """The parts of the sources' weights and means in the difference between the means of all and of `known` sites."""
    of_known, of_all = _by_sources(known, likely), _by_sources(sites, likely)
    weights = means = 0.0
    for sources, (weight, mean) in of_all.items():
        weight_then, mean_then = of_known.get(sources, (0.0, mean))
        weights += (weight - weight_then) * (mean + mean_then) / 2
        means += (mean - mean_then) * (weight + weight_then) / 2
    return weights, means


def _mean(rows: Sequence[SiteState], likely: Mapping[str, float]) -> float:
    return sum(likely[row.site] for row in rows) / len(rows)


def _by_sources(rows: Sequence[SiteState], likely: Mapping[str, float]) -> dict[tuple[str, ...], tuple[float, float]]:
    """Set of sources -> share of the sites with exactly these sources, and their mean probability."""
    probabilities: dict[tuple[str, ...], list[float]] = {}
    for row in rows:
        probabilities.setdefault(tuple(row.sources), []).append(likely[row.site])
    return {sources: (len(of) / len(rows), sum(of) / len(of)) for sources, of in probabilities.items()}
