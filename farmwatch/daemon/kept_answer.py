"""What `farmwatch rate` says of a large log: TALLY's process keeps it, so that nobody has to read a million rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import msgspec

from farmwatch.daemon.rate_series import read_points
from replay.runs.site_table import Counts
from scoring.rates.settings import RateSettings
from scoring.rates.split_rates import RateLine
from stream.log.contract import Log, Output
from stream.schema.records import RatePoint, encode
from stream.schema.topics import RATES

LARGE = 20_000  # sites from which on an answer is kept; fewer are read in a second
ANSWER = "answer"


class KeptAnswer(msgspec.Struct, frozen=True):
    """The share over all sites at a time, once per versions."""

    at: int  # ms
    until: int  # ms: by then TALLY's process has renewed it, if it runs
    ends: list[int]  # of the topic of rows: the answer is exact while they are the same
    settings: RateSettings
    lines: list[RateLine]
    counts: Counts


def keep_answer(log: Log, topic: str, answer: KeptAnswer) -> None:
    """Append the answer for the rows of `topic`; it takes the place of the one before."""
    key = f"{ANSWER} {topic}"
    point = RatePoint(id=key, site="", at=answer.at, by=ANSWER, group=topic, answer=msgspec.json.encode(answer))
    log.append([Output(RATES, 0, key.encode(), encode(point))])


def read_answer(log: Log, topic: str, settings: RateSettings, now_ms: int) -> KeptAnswer | None:
    """The answer for the rows of `topic` by these settings, if it is exact or not older than it should be."""
    yesterday = datetime.fromtimestamp(now_ms / 1000, UTC).date() - timedelta(days=1)
    for point in read_points(log, max(yesterday, date(1970, 1, 2))):
        if (point.by, point.group) == (ANSWER, topic):
            try:
                answer = msgspec.json.decode(point.answer, type=KeptAnswer)
            except msgspec.MsgspecError:  # of another version of farmwatch: the rows say it too
                return None
            is_new = now_ms <= answer.until or answer.ends == list(log.end(topic))
            return answer if is_new and answer.settings == settings else None
    return None
