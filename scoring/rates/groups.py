"""The groups of sites that rates are split by: by their search results, time, signals and operators.

A site that was returned by several sources, queries or in several windows counts in each of them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date, timedelta
from fnmatch import fnmatchcase
from functools import lru_cache

from scoring.rates.canary import is_canary
from scoring.rates.farm_signs import FarmSigns
from stream.schema.records import SiteState
from stream.schema.signals import SignalKind, names_of_kind

GroupKey = Callable[[SiteState], Sequence[str]]  # the groups of a site: none, one or several
WindowDays = Callable[[SiteState], Mapping[str, int]]  # the windows of a site, each with a day

UNKNOWN = "unknown"  # the group of sites without a source, query, rank or day in their hits
WINDOWS = ("day", "week", "month")
SPLITS = ("source", "query", "query-group", "rank", *WINDOWS, "monetised", "cms", "operator-size")
RANK_BANDS = ((1, 3), (4, 10), (11, 20), (21, 50))  # first to last rank, both included; beyond: "51+"
_SIZES = (1, 2, 4, 11)  # sites of an operator from which on a band begins


def group_key(by: str, patterns: Mapping[str, Sequence[str]], rows: Sequence[SiteState]) -> GroupKey:
    """The groups of a site in a split; `patterns` are those of query groups, `rows` all sites."""
    group_of = query_groups(patterns)
    keys: dict[str, GroupKey] = {
        "source": lambda row: row.sources,
        "query": lambda row: row.queries,
        "query-group": lambda row: sorted({group_of(query) for query in row.queries}),
        "rank": lambda row: [rank_band(row.best_rank)],
        "cms": lambda row: names_of_kind(row.signals, SignalKind.CMS),
    }
    whole = {"monetised": by_monetised, "operator-size": by_operator_size}
    key = whole[by](rows) if by in whole else keys[by]
    return lambda row: key(row) or [UNKNOWN]


def grouped(rows: Iterable[SiteState], key: GroupKey) -> dict[str, list[SiteState]]:
    """The rows of each group, groups in the order of `group_order`, canaries left out.

    A site found by two sources counts in both, so the groups need not add up to the whole.
    """
    groups: dict[str, list[SiteState]] = {}
    for row in rows:
        for group in () if is_canary(row.site) else key(row):
            groups.setdefault(group, []).append(row)
    return {group: groups[group] for group in sorted(groups, key=group_order)}


OTHER = "other"  # the group of queries that match no pattern


def query_groups(patterns: Mapping[str, Sequence[str]]) -> Callable[[str], str]:
    """Query id -> name of the first group with a pattern that matches it, or OTHER.

    A pattern is a query id in which `*` matches any characters, `?` for one and `[abc]` for one of these.
    """

    @lru_cache(maxsize=100_000)
    def group_of(query: str) -> str:
        names = (name for name, texts in patterns.items() if any(fnmatchcase(query, text) for text in texts))
        return next(names, OTHER)

    return group_of


def rank_band(rank: int) -> str:
    """The band of a rank, "1-3" and so on; "unknown" for rank 0."""
    if rank < 1:
        return UNKNOWN
    return next((band for band, (_, last) in zip(_BANDS, RANK_BANDS, strict=False) if rank <= last), _BANDS[-1])


def by_monetised(rows: Sequence[SiteState]) -> GroupKey:
    """Key: whether the site earns by ads or affiliate links, as for the share of farms."""
    signs = FarmSigns.of(rows, {})
    return lambda row: _ANSWERS.get(signs.monetised(row), [])


def by_operator_size(rows: Sequence[SiteState]) -> GroupKey:
    """Key: the band of the number of sites of the site's operator, among `rows`."""
    from scoring.estimate.clusters import SiteOperators  # it loads numpy

    rows = [row for row in rows if not is_canary(row.site)]
    operators = SiteOperators.of(rows).operators
    sites = Counter(operators)
    band_of = {
        row.site: _SIZE_BANDS[bisect_right(_SIZES, sites[of]) - 1] for row, of in zip(rows, operators, strict=True)
    }
    return lambda row: [band_of[row.site]]


_ANSWERS: Mapping[bool | None, Sequence[str]] = {True: ["yes"], False: ["no"]}
_SIZE_BANDS = ("1 site", "2-3 sites", "4-10 sites", "11+ sites")
_BANDS = (*(f"{first}-{last}" for first, last in RANK_BANDS), f"{RANK_BANDS[-1][1] + 1}+")


def group_order(group: str) -> tuple[int, str]:
    """Sort key of the groups of one split: bands in their order, all others by name."""
    bands = _BANDS if group in _BANDS else _SIZE_BANDS
    return (bands.index(group) if group in bands else len(_BANDS)), group


_EPOCH = date(1970, 1, 1)
_WINDOWS: Mapping[str, Callable[[date], str]] = {
    "day": date.isoformat,
    "week": lambda day: "{}-W{:02d}".format(*day.isocalendar()[:2]),  # of ISO 8601: from Monday, week 1 has January 4
    "month": lambda day: f"{day.year:04d}-{day.month:02d}",
}


def window_names(window: str) -> Callable[[int], str]:
    """Day since 1970 -> the name of its day, week or month."""
    name_of = _WINDOWS[window]

    @lru_cache(maxsize=100_000)
    def window_of(day: int) -> str:
        return name_of(day_of(day))

    return window_of


def last_days(window: str, since: date | None = None, until: date | None = None) -> WindowDays:
    """The days, weeks or months (UTC) in which search results returned a site, each with the last such day.

    With `since` and `until` only days from the one to the other count, both included.
    """
    window_of = window_names(window)
    return lambda row: {window_of(day): day for day in sorted(days_within(row, since, until))}


def days_within(row: SiteState, since: date | None, until: date | None) -> list[int]:
    """The days on which search results returned the site, from `since` to `until`, both included."""
    first, last = bounds_of_days(since, until)
    return [day for day in row.days if first <= day <= last]


def bounds_of_days(since: date | None, until: date | None) -> tuple[int, int]:
    """The first and the last day since 1970; without one the first and the last of the calendar."""
    return 0 if since is None else max(0, (since - _EPOCH).days), _LAST_DAY if until is None else (until - _EPOCH).days


_LAST_DAY = (date.max - _EPOCH).days


def day_of(days: int) -> date:
    """The day this many days after the first of 1970; days beyond the calendar are its last day."""
    return _EPOCH + timedelta(days=min(max(days, 0), _LAST_DAY))
