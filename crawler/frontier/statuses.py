"""The life of a URL: its statuses, and whether a URL of each is fetched again.

| status | meaning | fetched again after |
|---|---|---|
| discovered | known, waits for its first request | as soon as it is its turn |
| fetch_error | the last request failed, another may succeed | `retry_s`, doubling; `tries` times |
| fetched | the page is on the log | `refetch_fetched_s`, with a conditional request; 0 = never |
| redirection | another URL redirects to it; it has no record of its own | never |
| error | failed for good: gone, no page, or tried `tries` times | never |
| refused | robots.txt, an opt-out, a decision, a budget, … | never |

A stopped site is not fetched again before its next term.
"""

from __future__ import annotations

import enum


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
        return self.name.lower()
