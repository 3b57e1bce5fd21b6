"""Cached result of `farmwatch rate` for a large log, stored by the TALLY process: a million rows are slow to read."""

from __future__ import annotations

import msgspec

from replay.rows.site_table import Counts, ends_of
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import RateLine
from stream.log.contract import Log, Output
from stream.log.errors import BadRecord
from stream.schema.records import ANSWER_KEY, RateAnswer, encode, read
from stream.schema.topics import RATES
from stream.text.times import DAY_MS

LARGE = 20_000  # sites from which on the result is cached; fewer rows are read within a second


class CachedRate(msgspec.Struct, frozen=True):
    """The rates of all sites, or of the groups of a split, at one time; per ruleset, detector and site method."""

    at: int  # ms
    until: int  # ms; a running TALLY process replaces it before
    ends: list[int]  # as `ends_of` its topic: the result is exact while they are the same
    settings: RateSettings
    lines: list[RateLine]
    counts: Counts


def store_rate(log: Log, topic: str, rate: CachedRate, by: str) -> None:
    """Append the rate of the rows of `topic`, split `by`; it replaces the one before."""
    key = _key(topic, by)
    answer = RateAnswer(id=key, site="", at=rate.at, rates=msgspec.json.encode(rate))
    log.append([Output(RATES, 0, key.encode(), encode(answer))])


def read_cached_rate(log: Log, topic: str, settings: RateSettings, now_ms: int, by: str = "") -> CachedRate | None:
    """The cached rate of the rows of `topic`, split `by`, with these settings; None if there is none or it is old."""
    if RATES not in log.topics():
        return None
    key, newest = _key(topic, by).encode(), None
    start = max(log.beginning(RATES)[0], log.offset_at(RATES, max(now_ms - 2 * DAY_MS, 0))[0])
    for message in log.read(RATES, 0, start):
        newest = message if message.key == key else newest
    if newest is None:
        return None
    try:
        rate = msgspec.json.decode(read(RateAnswer, newest).rates, type=CachedRate)
    except (BadRecord, msgspec.MsgspecError):  # written by another version of farmwatch
        return None
    is_valid = now_ms <= rate.until or rate.ends == ends_of(log, topic)
    return rate if is_valid and rate.settings == settings else None


def _key(topic: str, by: str) -> str:
    return f"{ANSWER_KEY}{topic} {by}".strip()
