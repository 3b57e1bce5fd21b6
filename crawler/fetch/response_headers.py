"""Text from response headers: the part that is kept, made safe, and the value of Retry-After."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC
from email.utils import parsedate_to_datetime

from crawler.robots.opt_outs import FIELD_END
from crawler.web.urls import URL_CAP

# cf-… to x-sucuri-block: of networks in front of sites, which say so when they turn a request away
KEPT_HEADERS = frozenset(
    """content-type content-language content-encoding last-modified etag date server x-powered-by x-robots-tag
    tdm-reservation tdm-policy content-usage content-signal
    retry-after location cf-mitigated x-amzn-waf-action x-vercel-mitigated x-sucuri-block
    """.split()  # noqa: SIM905  # a table of words
)
HEADER_CAP = 1000  # characters kept of a header


def kept_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The headers that are kept, cleaned, with names in lower case; repeated ones are joined."""
    kept: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        if lower in KEPT_HEADERS:
            # One more than a URL may have: a longer location is refused, not cut
            cap = URL_CAP + 1 if lower == "location" else HEADER_CAP
            between = f"{FIELD_END} " if lower == "x-robots-tag" else ", "
            joined = f"{kept[lower]}{between}{value}" if lower in kept else value
            kept[lower] = clean(joined, cap)
    return kept


def retry_after_s(value: str, now_s: float) -> float | None:
    """The seconds from `now_s` (UTC) in a Retry-After header (RFC 9110 section 10.2.3); None if it is invalid."""
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


# Controls, line separators, and bidirectional controls
_UNWANTED = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]+")


def clean(text: str, cap: int) -> str:
    """`text` cut to `cap` characters, as valid Unicode, with runs of control characters as one space.

    aiohttp returns header bytes that are no UTF-8 as lone surrogates. They are read as ISO-8859-1 (RFC 9110 section
    5.5).
    """
    text = text[:cap]
    if text.isascii():
        if text.isprintable():
            return text.strip()
    else:
        text = "".join(chr(ord(c) - 0xDC00) if "\udc80" <= c <= "\udcff" else c for c in text)
        text = text.encode("utf-8", "replace").decode()  # surrogates of any other origin
    return _UNWANTED.sub(" ", text).strip()
