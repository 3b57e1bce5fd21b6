"""The usage of a source: requests of this day and month, and until when it is parked. Pure.

A request is counted before it is sent, so our count is never below the provider's. The provider's own count, if it
sends one, also applies.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from crawler.sources.settings import SourceSettings

PARK_FIRST_S = 30.0  # the first wait after a failure; doubles with each
PARK_CAP_S = 3600.0  # longest wait by doubling
ASKED_CAP_S = 86_400.0  # longest wait by Retry-After
RENEWAL_CAP_S = 31 * 86_400.0  # a later renewal of a quota is ignored
_LEVELS = 16


class Usage(msgspec.Struct, array_like=True, frozen=True, kw_only=True):
    """Stored on the topic `control` under `search/<source>`. Times are Unix milliseconds; fields are appended only."""

    v: int = 1
    day: str = ""  # 2026-11-22, UTC
    day_used: int = 0
    month: str = ""  # 2026-11, UTC
    month_used: int = 0
    asked_ms: int = 0  # start of the last request
    parked_ms: int = 0  # the source is left alone until then
    parked_why: str = ""
    park_level: int = 0  # failures in a row
    provider_left: int = -1  # requests left by the provider's count; -1 = unknown
    provider_reset_ms: int = 0  # when they are renewed
    unresponsive: dict[str, str] = {}  # engine -> why it did not answer
    key_mark: str = ""  # of the key that the provider's count belongs to, see `Source.key_mark`


def counted(usage: Usage, now_s: float) -> Usage:
    """The usage with one more request that starts now."""
    day, month = _day(now_s), _day(now_s)[:7]
    left = usage.provider_left if usage.provider_reset_ms > now_s * 1000 else -1
    return msgspec.structs.replace(
        usage,
        day=day,
        day_used=usage.day_used + 1 if usage.day == day else 1,
        month=month,
        month_used=usage.month_used + 1 if usage.month == month else 1,
        asked_ms=int(now_s * 1000),
        provider_left=max(0, left - 1) if left >= 0 else -1,
    )


def used(usage: Usage, now_s: float) -> tuple[int, int]:
    """Our counts of requests in this day, and in this month."""
    day = _day(now_s)
    return usage.day_used if usage.day == day else 0, usage.month_used if usage.month == day[:7] else 0


def left(usage: Usage, settings: SourceSettings, now_s: float) -> int | None:
    """Requests left by our counts and by the provider's, the lower one; None = no limit known."""
    return min((number for number, _ in _limits(usage, settings, now_s)), default=None)


def renewed_s(usage: Usage, settings: SourceSettings, now_s: float) -> float:
    """Unix time at which a request is left again; `now_s` if one is left now."""
    return max((reset for number, reset in _limits(usage, settings, now_s) if number <= 0), default=now_s)


def parked(
    usage: Usage,
    why: str,
    wait_s: float | None,
    asked_s: float,
    now_s: float,
    draw: Callable[[], float] = random.random,
) -> Usage:
    """The usage after a failure of a request that started at `asked_s`; `wait_s` is the wait that the source asked for.

    Concurrent requests that fail together double the wait once. `draw` returns 0 to 1: it spreads the wait over its
    second half, so that clients do not return together.
    """
    level = usage.park_level
    if level == 0 or asked_s * 1000 >= usage.parked_ms:
        level = min(level + 1, _LEVELS)
    own_s = min(PARK_CAP_S, PARK_FIRST_S * 2 ** (level - 1)) * (0.5 + draw() / 2)
    until_s = now_s + (own_s if wait_s is None else min(max(wait_s, own_s), max(ASKED_CAP_S, own_s)))
    return msgspec.structs.replace(
        usage, parked_ms=max(usage.parked_ms, int(until_s * 1000)), parked_why=why, park_level=level
    )


def with_key(usage: Usage, mark: str) -> Usage:
    """The usage for the key with that mark: the provider's counts for another key are dropped."""
    if usage.key_mark == mark:
        return usage
    return msgspec.structs.replace(usage, key_mark=mark, provider_left=-1, provider_reset_ms=0)


def answered(
    usage: Usage, provider_left: int | None, reset_s: float, unresponsive: dict[str, str], now_s: float
) -> Usage:
    """The usage after results: the provider's limits, if plausible, and the engines that did not answer."""
    if provider_left is not None and 0 <= reset_s <= RENEWAL_CAP_S:
        usage = msgspec.structs.replace(
            usage, provider_left=provider_left, provider_reset_ms=int((now_s + reset_s) * 1000)
        )
    return msgspec.structs.replace(usage, unresponsive=unresponsive)


def calmed(usage: Usage) -> Usage:
    """The usage after an answer: not parked."""
    return msgspec.structs.replace(usage, parked_ms=0, parked_why="", park_level=0)


def free_s(usage: Usage, settings: SourceSettings, now_s: float) -> float:
    """Unix time at which the next request may start, by its rate and its park.

    A clock that was set back must not park a source for years.
    """
    rate_s = min(usage.asked_ms / 1000 + 1 / settings.rate, now_s + 1 / settings.rate)
    park_s = min(usage.parked_ms / 1000, now_s + ASKED_CAP_S)
    return max(now_s, rate_s, park_s)


def _limits(usage: Usage, settings: SourceSettings, now_s: float) -> list[tuple[int, float]]:
    of_day, of_month = used(usage, now_s)
    limits: list[tuple[int, float]] = []
    if settings.quota_day:
        limits.append((max(0, settings.quota_day - of_day), (now_s // 86_400 + 1) * 86_400))
    if settings.quota_month:
        limits.append((max(0, settings.quota_month - of_month), next_month_s(now_s)))
    if usage.provider_left >= 0 and usage.provider_reset_ms > now_s * 1000:
        limits.append((usage.provider_left, min(usage.provider_reset_ms / 1000, now_s + RENEWAL_CAP_S)))
    return limits


def _day(now_s: float) -> str:
    return datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%d")


def next_month_s(now_s: float) -> float:
    """Unix time of the start of the next calendar month (UTC)."""
    now = datetime.fromtimestamp(now_s, UTC)
    return datetime(now.year + now.month // 12, now.month % 12 + 1, 1, tzinfo=UTC).timestamp()
