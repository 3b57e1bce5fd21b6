"""Series of rates over time: a point for each group of sites at each full interval, and which points are kept.

A point holds a rate at the start of an interval of `rate.series_s` seconds since 1970. Its key names the
series (split, group, run, ruleset, detector, site method) and that time, so that a point written twice, by two
processes or after a restart, is on its compacted topic once. A point is about 250 bytes: 24 a day of 20 series are
120 KB a day. After THIN_AFTER_DAYS only the first point of each day is kept, 5 KB a day; of a split with more groups
than GROUPS_CAP, only those with the most sites have series.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import msgspec
import xxhash

from scoring.rates.estimate_line import EstimateLine
from stream.schema.records import RatePoint

SERIES = ("", "source", "rank", "query-group")  # the splits of which series are kept; "" = all sites
GROUPS_CAP = 200  # series of one split
THIN_AFTER_DAYS = 90

_DAY_MS = 86_400_000


def interval_start(now_s: float, interval_s: int) -> int:
    """Start (ms) of the interval that holds `now_s`."""
    return int(now_s // interval_s) * interval_s * 1000


def point_of(
    line: EstimateLine,
    at: int,
    by: str,
    group: str,
    *,
    ruleset: str,
    digest: str,
    detector: str,
    site_method: str,
    site_method_digest: str,
    run: str,
    mixed: int,
) -> RatePoint:
    """The point of a series at a time (ms). Its id digests series and time, and is its key on the topic."""
    series = (by, group, run, digest, detector, site_method, site_method_digest)
    return RatePoint(
        id=xxhash.xxh3_128_hexdigest(msgspec.msgpack.encode((*series, at))),
        site="",
        at=at,
        by=by,
        group=group,
        share=line.share,
        share_low=line.look_low,
        share_high=line.look_high,
        share_method=line.method,
        scored_sites=line.scored_sites,
        rate=line.judged_share,
        low=line.judged_low,
        high=line.judged_high,
        llm=line.llm,
        human=line.human,
        undecided=line.undecided,
        unclassifiable=line.unclassifiable,
        mixed=mixed,
        confidence=line.confidence,
        method=line.judged_method,
        ruleset=ruleset,
        digest=digest,
        detector=detector,
        run=run,
        site_method=site_method,
        site_method_digest=site_method_digest,
    )


def series_of(point: RatePoint) -> tuple[str, ...]:
    """What is the same for all points of a series."""
    return point.by, point.group, point.run, point.digest, point.detector, point.site_method, point.site_method_digest


def largest(sites: Mapping[str, int], cap: int = GROUPS_CAP) -> list[str]:
    """The groups with the most sites, `cap` of them at most, by name."""
    return sorted(sorted(sites, key=lambda group: (-sites[group], group))[:cap])


def thinned(points: Iterable[RatePoint]) -> Iterator[RatePoint]:
    """The points to take away, so that of each series one point a day (UTC) stays: the first."""
    days: dict[tuple[str, ...], dict[int, list[RatePoint]]] = {}
    for point in points:
        days.setdefault(series_of(point), {}).setdefault(point.at // _DAY_MS, []).append(point)
    for by_day in days.values():
        for of_day in by_day.values():
            yield from _later(of_day)


def _later(points: Sequence[RatePoint]) -> list[RatePoint]:
    return sorted(points, key=lambda point: point.at)[1:]
