"""Quotas, back-off and schedule of sources: pure functions of the time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crawler.sources.ledger import Round, interval_s, next_round
from crawler.sources.settings import BraveSettings
from crawler.sources.usage import (
    ASKED_CAP_S,
    PARK_CAP_S,
    PARK_FIRST_S,
    Usage,
    answered,
    calmed,
    counted,
    free_s,
    left,
    parked,
    renewed_s,
    with_key,
)

HOUR_MS = 3_600_000
SETTINGS = BraveSettings(quota_day=3, quota_month=4, rate=2.0)


def _at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def _after(*times: float) -> Usage:
    usage = Usage()
    for now_s in times:
        usage = counted(usage, now_s)
    return usage


def test_the_quota_that_is_nearer_its_end_counts() -> None:
    """Of three a day and four a month, the month's quota is spent on the second day and renews with the month."""
    first, second = _at("2026-11-29"), _at("2026-11-30")
    usage = _after(first, first, first)
    assert left(usage, SETTINGS, first) == 0
    assert renewed_s(usage, SETTINGS, first) == second
    usage = counted(usage, second)
    assert left(usage, SETTINGS, second) == 0
    assert renewed_s(usage, SETTINGS, second) == _at("2026-12-01")
    assert left(usage, SETTINGS, _at("2026-12-01")) == 3
    assert left(usage, BraveSettings(), second) is None


@given(
    gaps=st.lists(st.integers(0, 40 * 86_400), min_size=1, max_size=60),
    quota_day=st.integers(0, 5),
    quota_month=st.integers(1, 9),
)
def test_no_quota_is_ever_overdrawn(gaps: list[int], quota_day: int, quota_month: int) -> None:
    """If requests are made only within what is left, no day and no month exceeds its quota."""
    settings = BraveSettings(quota_day=quota_day, quota_month=quota_month)
    usage, now_s = Usage(), _at("2026-01-30")
    made: dict[str, int] = {}
    for gap in gaps:
        now_s += gap
        if left(usage, settings, now_s) == 0:
            assert renewed_s(usage, settings, now_s) > now_s
            continue
        usage = counted(usage, now_s)
        day = datetime.fromtimestamp(now_s, UTC).strftime("%Y-%m-%d")
        for span in (day, day[:7]):
            made[span] = made.get(span, 0) + 1
    assert all(count <= (quota_month if len(span) == 7 else quota_day or count) for span, count in made.items())


def test_what_the_provider_says_counts_beside_our_own_count() -> None:
    """The smaller of the provider's count and our own holds until renewal, because another program may use the key."""
    now_s = _at("2026-11-10")
    usage = answered(_after(now_s), 1, 3600.0, {}, now_s)
    assert left(usage, SETTINGS, now_s) == 1
    usage = counted(usage, now_s)
    assert (left(usage, SETTINGS, now_s), renewed_s(usage, SETTINGS, now_s)) == (0, now_s + 3600)
    assert left(usage, SETTINGS, now_s + 3600) == 1


def test_what_no_provider_can_mean_is_not_believed() -> None:
    """A renewal in 30 million years is ignored; no spent quota causes a wait of more than a month."""
    now_s = _at("2026-11-10")
    usage = answered(_after(now_s), 0, 1e15, {}, now_s)
    assert left(usage, BraveSettings(), now_s) is None
    assert renewed_s(Usage(provider_left=0, provider_reset_ms=10**18), BraveSettings(), now_s) == now_s + 31 * 86_400


def test_another_key_has_its_own_quota() -> None:
    """With a new key, the provider's count for the old key is dropped; our own counts stay."""
    now_s = _at("2026-11-10")
    usage = answered(with_key(_after(now_s), "one"), 0, 3600.0, {}, now_s)
    assert left(with_key(usage, "one"), SETTINGS, now_s) == 0
    assert left(with_key(usage, "two"), SETTINGS, now_s) == 2


def test_waits_double_up_to_a_cap_and_are_spread() -> None:
    """Each failure in a row doubles the wait up to a cap; jitter removes at most half; an answer ends it."""
    usage, now_s, waits = Usage(), 1e9, []
    for _ in range(12):
        usage = parked(usage, "429", None, now_s, now_s, lambda: 1.0)
        waits.append(usage.parked_ms / 1000 - now_s)
        now_s = usage.parked_ms / 1000
    assert waits[:3] == [PARK_FIRST_S, 2 * PARK_FIRST_S, 4 * PARK_FIRST_S]
    assert waits[-1] == PARK_CAP_S
    low = parked(Usage(), "429", None, now_s, now_s, lambda: 0.0)
    assert low.parked_ms / 1000 - now_s == PARK_FIRST_S / 2
    assert calmed(usage).parked_ms == calmed(usage).park_level == 0


def test_requests_that_fail_together_count_once() -> None:
    """Four requests in flight that fail together count as one failure."""
    usage = Usage()
    for _ in range(4):
        usage = parked(usage, "429", None, 1e9, 1e9 + 1, lambda: 1.0)
    assert (usage.park_level, usage.parked_ms) == (1, int((1e9 + 1 + PARK_FIRST_S) * 1000))


def test_retry_after_is_obeyed_and_capped() -> None:
    """Retry-After never shortens our own wait, so 0 changes nothing; it is capped at one day."""
    for asked, kept_s in (0.0, PARK_FIRST_S), (600.0, 600.0), (1e9, ASKED_CAP_S):
        usage = parked(Usage(), "429", asked, 1e9, 1e9, lambda: 1.0)
        assert usage.parked_ms / 1000 - 1e9 == kept_s


def test_the_next_request_waits_for_its_rate_and_the_park() -> None:
    """Two requests a second start half a second apart; a clock set back parks no source for years."""
    usage = counted(Usage(), 1e9)
    assert free_s(usage, SETTINGS, 1e9) == 1e9 + 0.5
    assert free_s(usage, SETTINGS, 1e9 + 9) == 1e9 + 9
    far = parked(usage, "429", 600.0, 1e9, 1e9, lambda: 1.0)
    assert free_s(far, SETTINGS, 1e9) == 1e9 + 600
    assert free_s(far, SETTINGS, 1e8) == 1e8 + ASKED_CAP_S


def test_an_interval_is_a_number_and_a_unit() -> None:
    """The forms of `--every` are read; too short, too long and other values are refused with the allowed ones."""
    assert [interval_s(text) for text in ("6h", "90m", "1d", " 2W ")] == [21_600, 5400, 86_400, 1_209_600]
    for text in ("", "6", "h", "-1h", "1.5h", "30s", "9999999w", "6h 30m"):
        with pytest.raises(ValueError, match="such as 90m, 6h, 1d"):
            interval_s(text)


def test_rounds_start_on_a_grid() -> None:
    """The first round is at once, the next one six hours later. After three missed rounds, one is made at once."""
    due_ms, first = next_round(None, "d", 5, 6 * 3600, 0)
    assert (due_ms, first.started_ms, first.done) == (0, 0, 0)
    finished = Round(started_ms=0, queries="d", total=5, done=5)
    for now, due, started in ((1, 6, 6), (20, 20, 18)):
        due_ms, round_ = next_round(finished, "d", 5, 6 * 3600, now * HOUR_MS)
        assert (due_ms, round_.started_ms) == (due * HOUR_MS, started * HOUR_MS)
    due_ms, after = next_round(Round(started_ms=18 * HOUR_MS, total=5, done=5), "d", 5, 6 * 3600, 20 * HOUR_MS)
    assert due_ms == after.started_ms == 24 * HOUR_MS


def test_a_round_that_was_broken_off_goes_on() -> None:
    """An interrupted round resumes; with other queries it restarts, so that repeated results keep their id."""
    broken = Round(started_ms=1000, queries="d", total=5, done=2)
    assert next_round(broken, "d", 5, 3600, 50 * HOUR_MS) == (50 * HOUR_MS, broken)
    due_ms, anew = next_round(broken, "other", 6, 3600, 50 * HOUR_MS)
    assert (due_ms, anew.started_ms, anew.done, anew.total) == (50 * HOUR_MS, 1000, 0, 6)
