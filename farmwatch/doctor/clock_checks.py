"""Checks of the clock: against its time service, and against the times that the log has stored."""

from __future__ import annotations

import time

from crawler.frontier.report import newest_row_at
from crawler.frontier.stored_times import CLOCK_SLACK_MS
from farmwatch.doctor.check_result import CheckState, Results, Subject, fail, ok, warn
from farmwatch.doctor.machine_checks import output_of
from stream.log.contract import Log, wall_ms
from stream.log.errors import BadRecord
from stream.schema.records import Page, read
from stream.schema.topics import HITS, PAGES
from stream.text.wording import moment

_NEWEST = 5  # offsets at the end of a partition, of which some may be markers of transactions


def clock(at: Subject) -> Results:
    """The clock is synchronised, and nothing in the log is from the future."""
    results = list(dates(at))
    yield from results
    if any(result.state is CheckState.FAIL for result in results):
        return
    if output_of("timedatectl", "show", "-p", "NTPSynchronized", "--value") == "no":
        yield warn("not synchronised", "turn on NTP: timedatectl set-ntp true")
    elif not results:
        yield ok(time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime()))


def dates(at: Subject) -> Results:
    """Hits, pages and sites of the crawl that are dated in the future; nothing if there are none."""
    if at.log is None:
        return
    limit_ms, topics = wall_ms() + CLOCK_SLACK_MS, at.log.topics()
    for topic in (name for name in (HITS, PAGES) if name in topics):
        newest_ms = _newest(at.log, topic)
        if newest_ms > limit_ms:
            yield fail(f"the newest {topic} are from the future: {moment(newest_ms)}", "set this machine's clock")
        elif at.log.offset_at(topic, limit_ms) != at.log.end(topic):
            said = f"some {topic} are from the future, newer ones are not: a clock was ahead when they were written"
            yield warn(said, "nothing mends their dates; counts by time have them where they are dated")
    if not at.log.forgets_offsets and HITS in topics:  # on Kafka the whole changelog would be read
        rows_ms = newest_row_at(at.log, topics[HITS])
        if rows_ms > limit_ms:
            said = f"the crawl has noted times up to {moment(rows_ms)}: its clock was ahead, or this one is behind"
            yield warn(said, "set this machine's clock; a running crawl then limits these times by its rules")


def _newest(log: Log, topic: str) -> int:
    """The time of the newest record of the partitions, or of the fetch of its page."""
    times = [0]
    for partition, (first, end) in enumerate(zip(log.beginning(topic), log.end(topic), strict=True)):
        for message in list(log.read(topic, partition, max(first, end - _NEWEST), end))[-1:]:
            times.append(message.timestamp_ms)
            if topic == PAGES and message.value:
                try:
                    times.append(read(Page, message).fetched_at)
                except BadRecord:  # MEASURE reports it
                    continue
    return max(times)
