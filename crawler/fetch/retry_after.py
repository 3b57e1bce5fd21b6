"""The Retry-After header (RFC 9110 section 10.2.3): seconds, or a date."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime


def retry_after_s(value: str, now_s: float) -> float | None:
    """Seconds to wait from `now_s` (UTC), never below 0; None where the header is absent or says nothing."""
    text = value.strip()
    if text.isascii() and text.isdigit():
        return float(text[:12])
    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - now_s)
