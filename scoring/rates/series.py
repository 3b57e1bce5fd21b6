"""Series of rates over time: a point for each group of sites at each full interval, and which points are kept.

A point holds a rate at the start of an interval of `rate.series_s` seconds since 1970. Its key names the
series (split, group, run, ruleset, detector, site method) and that time, so that a point written twice, by two
processes or after a restart, is on its compacted topic once. A point is about 250 bytes: 24 a day of 20 series are
120 KB a day. After THIN_AFTER_DAYS only the first point of each day is kept, 5 KB a day; of a split with more groups
than GROUPS_CAP, only those with the most sites have series.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
import xxhash

from scoring.rates.split_rates import RateLine
from stream.schema.records import RatePoint
from stream.text.times import DAY_MS

SERIES = ("", "source", "rank", "query-group")  # the splits with series; "" = all sites
GROUPS_CAP = 200  # series of one split
THIN_AFTER_DAYS = 90


def interval_start(now_s: float, interval_s: int) -> int:
    """Start (ms) of the interval that contains `now_s`."""
    return int(now_s // interval_s) * interval_s * 1000


def point_of(line: RateLine, at: int) -> RatePoint:
    """The point of a series at a time (ms). Its id digests series and time, and is its key on the topic."""
    values = msgspec.structs.asdict(line)
    values |= {"share_low": line.look_low, "share_high": line.look_high, "share_method": line.method}
    values |= {"share_low_once": line.low, "share_high_once": line.high}
    values |= {"rate": line.judged_share, "low": line.judged_low, "high": line.judged_high}
    values |= {"id": xxhash.xxh3_128_hexdigest(msgspec.msgpack.encode((*series_of(line), at))), "site": "", "at": at}
    values["method"] = line.judged_method
    return RatePoint(**{name: values[name] for name in RatePoint.__struct_fields__ if name in values})


def series_of(point: RatePoint | RateLine) -> tuple[str, ...]:
    """The values that all points of a series share."""
    return point.by, point.group, point.run, point.digest, point.detector, point.site_method, point.site_method_digest


def largest(sites: Mapping[str, int], cap: int = GROUPS_CAP) -> list[str]:
    """The groups with the most sites, at most `cap`, by name."""
    return sorted(sorted(sites, key=lambda group: (-sites[group], group))[:cap])


def thinned(points: Iterable[RatePoint]) -> Iterator[RatePoint]:
    """The points to remove, so that each series keeps one point a day (UTC), the first."""
    kept: set[tuple[object, ...]] = set()
    for point in sorted(points, key=lambda point: point.at):
        day = (*series_of(point), point.at // DAY_MS)
        if day in kept:
            yield point
        kept.add(day)
