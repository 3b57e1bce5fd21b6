"""When a round is due. Pure.

Rounds stand on a grid: the first one's start and multiples of the interval after it. One that was missed is made up
once, at once; the next is on the grid again. One that was broken off goes on.
"""

from __future__ import annotations

import re

from crawler.sources.ledger import Round

_EVERY = re.compile(r"(\d{1,9})\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
LEAST_S = 60  # a shorter interval is a mistake, or rude
MOST_S = 366 * 86_400


def interval_s(text: str) -> int:
    """Seconds of `6h`, `90m`, `1d`. Raises ValueError saying what may be written."""
    found = _EVERY.fullmatch(text.strip().lower())
    seconds = int(found[1]) * _SECONDS[found[2]] if found else 0
    if not LEAST_S <= seconds <= MOST_S:
        raise ValueError(f"{text[:40]!r}: write a number and a unit from 1m to 366d, such as 90m, 6h, 1d")
    return seconds


def next_round(last: Round | None, queries: str, total: int, every_s: int, now_ms: int) -> tuple[int, Round]:
    """(when, which): Unix milliseconds at which to start or go on, and the round as it stands then.

    `queries` is the digest of the `total` queries. A round that was broken off goes on where it was; when the queries
    are others by now it begins anew, as the same round, so that results found twice have one id.
    """
    if last is None or last.started_ms > now_ms + every_s * 1000:  # the second: of a clock that was set back
        return now_ms, Round(started_ms=now_ms, queries=queries, total=total)
    if not last.finished:
        same = last.queries == queries and last.total == total
        return now_ms, last if same else Round(started_ms=last.started_ms, queries=queries, total=total)
    passed = max(1, (now_ms - last.started_ms) // (every_s * 1000))
    started_ms = last.started_ms + passed * every_s * 1000
    return max(started_ms, now_ms), Round(started_ms=started_ms, queries=queries, total=total)
