"""Rates over site rows: all of them, and by source, query group, rank band and window of time.

Each rate has all its denominators. Canary sites never count. Rows of two detectors, rulesets, site methods or runs are
refused: their verdicts mean different things. A site without a page so far has no ruleset yet, and counts with any one
and with any site method. A row from before methods had digests matches no digest.

A window counts the sites that search results have returned in it, each with the verdict that held then, see
`scoring.rates.terms`. A site that was returned in several windows counts in each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from fnmatch import fnmatchcase
from functools import lru_cache

import msgspec

from scoring.errors import PooledDetectors
from scoring.estimate.error_counts import ErrorCounts
from scoring.estimate.rate import HALF_WIDTH, Rate, estimate
from scoring.rates.canary import is_canary
from stream.schema.records import SiteState
from stream.schema.vocabulary import SiteClass

GroupKey = Callable[[SiteState], Sequence[str]]  # the groups of a site: none, one or several
WindowDays = Callable[[SiteState], Mapping[str, int]]  # the windows of a site, each with a day

RANK_BANDS = ((1, 3), (4, 10), (11, 20), (21, 50))  # first to last rank, both included; beyond: "51+"


class SiteRate(Rate, frozen=True, kw_only=True):
    """A rate with every denominator: sites = llm + human + undecided + unclassifiable; `text` names them all."""

    human: int
    undecided: int
    unclassifiable: int
    sites: int
    without_pages: int | None = None  # of the unclassifiable: without a page so far; None if pages are not known


def site_rate(
    verdicts: Iterable[str],
    errors: ErrorCounts | None = None,
    confidence: float = 0.95,
    without_pages: int | None = None,
    half_width: float = HALF_WIDTH,
) -> SiteRate:
    """The rate over site verdicts, one per site; `without_pages` of them had no page. Raises as `estimate`."""
    counts = Counter(verdicts)
    sites, unclassifiable = counts.total(), counts[SiteClass.UNCLASSIFIABLE]
    rate = estimate(
        counts[SiteClass.LLM], sites - unclassifiable, errors, confidence, counts[SiteClass.UNDECIDED], half_width
    )
    text = f"{rate.text}; {unclassifiable} of {sites} sites unclassifiable"
    if without_pages is not None and unclassifiable:
        few = unclassifiable - without_pages
        text += f" ({without_pages} without a page so far, {few} with too few scored articles)"
    return SiteRate(
        **{**msgspec.structs.asdict(rate), "text": text},
        human=counts[SiteClass.HUMAN],
        undecided=counts[SiteClass.UNDECIDED],
        unclassifiable=unclassifiable,
        sites=sites,
        without_pages=without_pages,
    )


def rate_of(
    rows: Iterable[SiteState],
    errors: ErrorCounts | None = None,
    confidence: float = 0.95,
    half_width: float = HALF_WIDTH,
) -> SiteRate:
    """The rate over site rows, canaries left out; of the unclassifiable it knows which had no page so far.

    Raises PooledDetectors for rows of several detectors, rulesets, site methods or runs, and as `estimate`.
    """
    counted = [row for row in rows if not is_canary(row.site)]
    refuse_pooled(counted)
    without_pages = sum(row.verdict == SiteClass.UNCLASSIFIABLE and row.pages == 0 for row in counted)
    return site_rate((row.verdict for row in counted), errors, confidence, without_pages, half_width)


def grouped(rows: Iterable[SiteState], key: GroupKey) -> dict[str, list[SiteState]]:
    """The rows of each group, groups in the order of `group_order`, canaries left out.

    A site found by two sources counts in both, so the groups need not add up to the whole.
    """
    groups: dict[str, list[SiteState]] = {}
    for row in rows:
        for group in () if is_canary(row.site) else key(row):
            groups.setdefault(group, []).append(row)
    return {group: groups[group] for group in sorted(groups, key=group_order)}


def refuse_pooled(rows: Iterable[SiteState]) -> None:
    """Raise PooledDetectors, naming both, for rows of two detectors, rulesets, site methods or runs."""
    found = dict.fromkeys((row.detector, row.ruleset, row.digest, *method_of(row), row.run) for row in rows)
    seen: dict[str, str] = {}
    for detector, ruleset, digest, method, method_digest, run in found:
        names = {"detector": detector, "ruleset": f"{ruleset} {digest}".strip(), "run": run}
        names["site method"] = f"{method} {method_digest}".strip()
        refuse_another({what: name for what, name in names.items() if name}, seen)


def method_of(row: SiteState) -> tuple[str, str]:
    """Name and digest of the site method that judged a page of the site; empty if none was judged."""
    return (row.method, row.method_digest) if has_verdict(row) else ("", "")


def refuse_another(names: Mapping[str, str], seen: dict[str, str]) -> None:
    """Raise PooledDetectors, naming both, if a detector and so on has another name than in `seen`; else add it."""
    for what, name in names.items():
        if seen.setdefault(what, name) != name:
            one, other = (each or f"a {what} that is not named" for each in sorted((seen[what], name)))
            raise PooledDetectors(f"sites of two {what}s cannot be counted together: {one} and {other}")


def has_verdict(row: SiteState) -> bool:
    """Whether any page of the site was judged; otherwise ruleset and site method had no part in the row."""
    return bool(row.ruleset) or row.verdict != SiteClass.UNCLASSIFIABLE


def by_query_group(group_of: Callable[[str], str]) -> GroupKey:
    """Key: the groups of the queries that led to the site; `group_of` maps a query id to its group."""
    return lambda row: sorted({group_of(query) for query in row.queries})


OTHER = "other"  # the group of queries that match no pattern


def query_groups(patterns: Mapping[str, Sequence[str]]) -> Callable[[str], str]:
    """Query id -> name of the first group with a pattern that matches it, or OTHER.

    A pattern is a query id in which `*` matches any characters, `?` for one and `[abc]` for one of these.
    """

    @lru_cache(maxsize=100_000)
    def group_of(query: str) -> str:
        found = (name for name, texts in patterns.items() if any(fnmatchcase(query, text) for text in texts))
        return next(found, OTHER)

    return group_of


def by_rank_band(row: SiteState) -> Sequence[str]:
    """Key: the band of the site's best rank, "1-3" and so on; "unknown" for rank 0."""
    rank = row.best_rank
    if rank < 1:
        return ["unknown"]
    return [next((band for band, (_, last) in zip(_BANDS, RANK_BANDS, strict=False) if rank <= last), _BANDS[-1])]


_BANDS = (*(f"{first}-{last}" for first, last in RANK_BANDS), f"{RANK_BANDS[-1][1] + 1}+")


def group_order(group: str) -> tuple[int, str]:
    """Sort key of the groups of one split: bands of ranks from the first rank on, all others by name."""
    return (_BANDS.index(group) if group in _BANDS else len(_BANDS)), group


_EPOCH = date(1970, 1, 1)
_WINDOWS: Mapping[str, Callable[[date], str]] = {
    "day": date.isoformat,
    "week": lambda day: "{}-W{:02d}".format(*day.isocalendar()[:2]),  # of ISO 8601: from Monday, week 1 has January 4
    "month": lambda day: f"{day.year:04d}-{day.month:02d}",
}


def last_days(window: str, since: date | None = None, until: date | None = None) -> WindowDays:
    """The days, weeks or months (UTC) in which search results returned a site, each with the last such day.

    With `since` and `until` only days from the one to the other count, both included.
    """
    name_of = _WINDOWS[window]

    @lru_cache(maxsize=100_000)
    def window_of(day: int) -> str:
        return name_of(day_of(day))

    return lambda row: {window_of(day): day for day in sorted(days_within(row, since, until))}


def days_within(row: SiteState, since: date | None, until: date | None) -> list[int]:
    """The days on which search results returned the site, from `since` to `until`, both included."""
    first = 0 if since is None else max(0, (since - _EPOCH).days)
    last = _LAST_DAY if until is None else (until - _EPOCH).days
    return [day for day in row.days if first <= day <= last]


_LAST_DAY = (date.max - _EPOCH).days


def day_of(days: int) -> date:
    """The day this many days after the first of 1970; days beyond the calendar are its last day."""
    return _EPOCH + timedelta(days=min(max(days, 0), _LAST_DAY))
