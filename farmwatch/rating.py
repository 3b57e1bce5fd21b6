"""Rates over the site rows of a log: never pooled over rulesets or detectors, always with denominators and versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from scoring.pipes import EstimateLine, estimate_line
from scoring.rate import ErrorCounts
from scoring.site_rates import GroupKey, SiteRate, by_day, by_query_group, by_rank_band, by_source, rate_of, rates_by
from stream.records import SiteState

UNKNOWN = "unknown"  # the group of sites whose hits name no source or query
SPLITS = ("source", "query", "rank", "day")


class Versions(NamedTuple):
    """What must be equal for sites to be counted together."""

    run: str
    ruleset: str
    digest: str  # of the ruleset
    detector: str  # identity


class RateLine(EstimateLine, frozen=True, kw_only=True):
    """What `rate --json` prints for each group: the fields of `estimate`, then the group and the versions."""

    by: str  # "", or one of SPLITS
    group: str  # its value; "" = all sites
    run: str
    ruleset: str
    digest: str
    detector: str
    without_pages: int  # of the unclassifiable: no page so far; the others have too few articles
    open_sites: int | None = None  # of the whole crawl: pages of them are still to come; None where it was not looked


def rate_lines(
    rows: Sequence[SiteState],
    by: str = "",
    errors: ErrorCounts | None = None,
    confidence: float = 0.95,
    open_sites: int | None = None,
) -> list[RateLine]:
    """Rates of site rows: one for all sites, or one per group of `by`; and each of them per ruleset and detector.

    A site found by two sources or queries counts in both. Without rows there is one line, which says so.
    """
    lines = []
    for versions, comparable in _comparable(rows):
        groups = rates_by(comparable, _key(by), errors, confidence) if by else {}
        if not by:
            groups = {"": rate_of(comparable, errors, confidence)}
        lines += [_line(found, by, group, versions, open_sites) for group, found in groups.items()]
    return lines


def _key(by: str) -> GroupKey:
    keys: dict[str, GroupKey] = {
        "source": by_source,
        "query": by_query_group(lambda query: query),
        "rank": by_rank_band,
        "day": by_day,
    }
    key = keys[by]
    return lambda row: key(row) or [UNKNOWN]


def _comparable(rows: Sequence[SiteState]) -> Iterator[tuple[Versions, list[SiteState]]]:
    """Rows that may be counted together. A site without a verdict yet has no ruleset: it counts with each."""
    found: dict[Versions, list[SiteState]] = {}
    for row in rows:
        found.setdefault(Versions(row.run, row.ruleset, row.digest, row.detector), []).append(row)
    judged = {versions for versions in found if versions.ruleset}
    for versions in sorted(judged or set(found) or {Versions("live", "", "", "")}):
        unjudged = versions._replace(ruleset="", digest="")
        extra = found.get(unjudged, []) if versions in judged else []
        yield versions, [*found.get(versions, []), *extra]


def _line(found: SiteRate, by: str, group: str, versions: Versions, open_sites: int | None) -> RateLine:
    still_open = f"; {open_sites} {'site' if open_sites == 1 else 'sites'} still open in the crawl"
    estimate = msgspec.structs.asdict(estimate_line(found))
    estimate["text"] += still_open if open_sites and not by else ""
    return RateLine(
        **estimate,
        by=by,
        group=group,
        run=versions.run,
        ruleset=versions.ruleset,
        digest=versions.digest,
        detector=versions.detector,
        without_pages=found.without_pages or 0,
        open_sites=open_sites,
    )
