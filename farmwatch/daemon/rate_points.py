"""Reading the kept series of rates."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

from stream.log.contract import Log
from stream.processing.topic_reader import rows_of
from stream.schema.records import RatePoint, decode
from stream.schema.topics import RATES


def read_points(log: Log, since: date | None = None, until: date | None = None) -> Iterator[RatePoint]:
    """The newest record of each point whose day lies from `since` to `until`, both included.

    It holds only these in memory. What was appended long after `until` is looked through for points taken away only.
    """
    if RATES not in log.topics():
        return
    start, end = log.beginning(RATES)[0], None
    first, last = 0, None
    if since is not None:
        start = max(start, log.offset_at(RATES, _ms(since - _EARLY))[0])
        first = _ms(since)
    if until is not None and until < date.max - 2 * _EARLY:
        end = log.offset_at(RATES, _ms(until + 2 * _EARLY))[0]
        last = _ms(until + timedelta(days=1))
    newest: dict[bytes, bytes] = {}
    for kept, point in rows_of(RatePoint, log.read(RATES, 0, start)):
        if point is None or kept.value is None:
            newest.pop(kept.key, None)
        elif (end is None or kept.offset < end) and first <= point.at and (last is None or point.at < last):
            newest[kept.key] = kept.value
    for value in newest.values():
        yield decode(RatePoint, value)


_EARLY = timedelta(days=1)  # a point may have been appended a little before or after the time that it stands for


def _ms(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() * 1000)
