"""Which headers of a response are kept with its page, and in which form."""

from __future__ import annotations

from collections.abc import Iterable

from crawler.robots.opt_outs import FIELD_END
from crawler.web.urls import URL_CAP
from crawler.web.wire_text import clean

KEPT_HEADERS = frozenset(
    {
        "content-type",
        "content-language",
        "content-encoding",
        "last-modified",
        "etag",
        "date",
        "server",
        "x-powered-by",
        "x-robots-tag",
        "tdm-reservation",
        "tdm-policy",
        "retry-after",
        "location",
    }
)
HEADER_CAP = 1000  # characters kept of a header


def kept_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """The headers that are kept, cleaned, names in lower case, repeated ones joined."""
    kept: dict[str, str] = {}
    for name, value in headers:
        lower = name.lower()
        if lower in KEPT_HEADERS:
            # One more than a URL may have: a location that is too long is refused, not cut
            cap = URL_CAP + 1 if lower == "location" else HEADER_CAP
            between = f"{FIELD_END} " if lower == "x-robots-tag" else ", "
            joined = f"{kept[lower]}{between}{value}" if lower in kept else value
            kept[lower] = clean(joined, cap)
    return kept
