"""Cached result of `farmwatch rate` for a large log, stored by the TALLY process: a million rows are slow to read."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import msgspec

from farmwatch.share.rate_series import read_points
from replay.rows.site_table import Counts
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import RateLine
from stream.log.contract import Log, Output
from stream.schema.records import RatePoint, encode
from stream.schema.topics import RATES

LARGE = 20_000  # sites from which on the result is cached; fewer rows are read within a second
ANSWER = "answer"


class CachedRate(msgspec.Struct, frozen=True):
    """The rates of all sites, or of the groups of a split, at one time; per ruleset, detector and site method."""

    at: int  # ms
    until: int  # ms; a running TALLY process replaces it before
    ends: list[int]  # end offsets of the topic of rows: the result is exact while they are the same
    settings: RateSettings
    lines: list[RateLine]
    counts: Counts


def store_rate(log: Log, topic: str, rate: CachedRate, by: str = "") -> None:
    """Append the rate of the rows of `topic`, split `by`; it replaces the one before."""
    group = f"{topic} {by}".strip()
    key = f"{ANSWER} {group}"
    point = RatePoint(id=key, site="", at=rate.at, by=ANSWER, group=group, answer=msgspec.json.encode(rate))
    log.append([Output(RATES, 0, key.encode(), encode(point))])


def read_cached_rate(log: Log, topic: str, settings: RateSettings, now_ms: int, by: str = "") -> CachedRate | None:
    """The cached rate of the rows of `topic`, split `by`, with these settings; None if there is none or it is old."""
    yesterday = datetime.fromtimestamp(now_ms / 1000, UTC).date() - timedelta(days=1)
    for point in read_points(log, max(yesterday, date(1970, 1, 2))):
        if (point.by, point.group) == (ANSWER, f"{topic} {by}".strip()):
            try:
                rate = msgspec.json.decode(point.answer, type=CachedRate)
            except msgspec.MsgspecError:  # written by another version of farmwatch
                return None
            is_valid = now_ms <= rate.until or rate.ends == list(log.end(topic))
            return rate if is_valid and rate.settings == settings else None
    return None
