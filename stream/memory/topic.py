"""One partition of a topic in memory."""

from __future__ import annotations

from bisect import bisect_left
from operator import attrgetter

from stream.log.contract import Message, Output, TopicSize

TOMBSTONE_MS = 86_400_000  # how long a reader has to see a removal
_offset = attrgetter("offset")


class MemoryPartition:
    """Records in the order of their offsets; compaction leaves gaps."""

    def __init__(self) -> None:
        self._records: list[Message] = []
        self.end = 0

    @property
    def first(self) -> int:
        """First offset still kept, the end if none is."""
        return self._records[0].offset if self._records else self.end

    def append(self, output: Output, now_ms: int) -> None:
        """Give a record the next offset."""
        time_ms = now_ms if output.timestamp_ms is None else output.timestamp_ms
        headers = dict(output.headers)
        self._records.append(
            Message(output.topic, output.partition, self.end, output.key, output.value, headers, time_ms)
        )
        self.end += 1

    def range(self, start: int, stop: int, limit: int | None = None) -> list[Message]:
        """Up to `limit` records with start <= offset < stop."""
        low = bisect_left(self._records, start, key=_offset)
        high = bisect_left(self._records, stop, key=_offset)
        return self._records[low : high if limit is None else min(high, low + limit)]

    def offset_at(self, time_ms: int) -> int:
        """First offset whose timestamp is >= time_ms, the end if none is."""
        return next((record.offset for record in self._records if record.timestamp_ms >= time_ms), self.end)

    @property
    def size(self) -> TopicSize:
        """Offsets from beginning to end, and bytes of the keys and values kept."""
        return TopicSize(self.end - self.first, sum(map(_size, self._records)))

    def outlived(self, now_ms: int, retention_ms: int | None, retention_bytes: int | None, stop: int) -> int:
        """How many of the oldest records below `stop` are too old or more than the partition holds."""
        before_ms = None if retention_ms is None else now_ms - retention_ms
        left, count = self.size.bytes, 0
        for number, record in enumerate(self._records, 1):
            too_old = before_ms is not None and record.timestamp_ms < before_ms
            too_much = retention_bytes is not None and left > retention_bytes
            left -= _size(record)
            if record.offset >= stop:
                break
            if too_old or too_much:
                count = number
            elif record.timestamp_ms <= now_ms:
                break
        return count

    def shorten(self, count: int) -> int:
        """Remove the oldest records; returns the bytes freed."""
        freed = sum(map(_size, self._records[:count]))
        del self._records[:count]
        return freed

    def compact(self, now_ms: int) -> int:
        """Keep the newest record of each key, and tombstones for a day; returns the bytes freed."""
        newest = {record.key: record.offset for record in self._records}
        before = self.size.bytes
        self._records = [
            record
            for record in self._records
            if newest[record.key] == record.offset
            and (record.value is not None or record.timestamp_ms >= now_ms - TOMBSTONE_MS)
        ]
        return before - self.size.bytes


def _size(record: Message) -> int:
    return len(record.key) + len(record.value or b"")
