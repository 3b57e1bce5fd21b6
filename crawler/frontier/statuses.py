"""The life of a URL: its statuses, and when a URL of each is fetched again.

| status | meaning | fetched again after |
|---|---|---|
| discovered | known, waits for its first request | as soon as it is its turn |
| fetch_error | the last request failed, another may succeed | `retry_s`, doubling; `tries` times |
| fetched | the page is on the log | `refetch_fetched_s`, with a conditional request |
| redirection | another URL redirects to it; it has no record of its own | `refetch_redirection_s` |
| error | failed for good: gone, no page, or tried `tries` times | `refetch_error_s` |
| refused | robots.txt, an opt-out, a decision, a budget, … | `refetch_refused_s`, for robots.txt and opt-outs only |

An interval of 0 means never. A stopped site is not fetched again before its next term.
"""

from __future__ import annotations

import enum

from crawler.settings import CrawlSettings


class Status(enum.IntEnum):
    """The status of a URL. Its number is stored in rows and never reused."""

    DISCOVERED = 0
    FETCH_ERROR = 1
    FETCHED = 2
    REDIRECTION = 3
    ERROR = 4
    REFUSED = 5

    @property
    def label(self) -> str:
        """Its name in metrics and reports."""
        return self.name.lower()


_REFETCH = {
    Status.FETCHED: "refetch_fetched_s",
    Status.REDIRECTION: "refetch_redirection_s",
    Status.ERROR: "refetch_error_s",
    Status.REFUSED: "refetch_refused_s",
}
_MAY_BE_LIFTED = frozenset({"robots", "opt_out"})  # refusals that a site's owner can lift


def refetch_s(settings: CrawlSettings, status: Status, reason: str) -> float:
    """Seconds after which a URL with this status and reason is fetched again; 0 = never."""
    if status not in _REFETCH or (status is Status.REFUSED and reason not in _MAY_BE_LIFTED):
        return 0.0
    return float(getattr(settings, _REFETCH[status]))
