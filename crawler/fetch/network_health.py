"""Detects an outage of our own network from the results of all sites.

A single site without an answer has failed itself. Many sites in a row without any answer in between are an outage of
ours: the resolver, a route, a cable. Then no site is given up until one answers, or until the wait is over, because
dead sites look the same and a crawl must end. A router without its line may also answer that no name exists.

- The streak has _FAILURES requests without an answer, over _SITES different sites. With fewer sites nothing can be
  concluded, and each is given up as usual.
- One site of the streak has answered before, or no site has since this process started. So the dead sites at the end of
  a crawl are given up as usual.
"""

from __future__ import annotations

import structlog

from crawler.fetch.jobs import REDIRECTED, FetchResult
from crawler.reasons import UNANSWERED
from crawler.settings import CrawlSettings
from stream.schema.vocabulary import FetchOutcome

_log = structlog.get_logger()

_FAILURES, _SITES = 10, 5  # ten: with five failing sites, none has failed three times yet
_OURS = frozenset({"private_address", "internal_error"})  # reasons unrelated to the network


class NetworkWatch:
    """The current streak of failures."""

    def __init__(self, settings: CrawlSettings) -> None:
        self._settings = settings
        self._quiet_ms = int(settings.retry_s * 250)  # a quarter of it: well before a site is tried again
        self._wait_ms = int(settings.network_wait_s * 1000)
        self._failures = 0  # in a row
        self._sites: set[str] = set()  # the first _SITES of them
        self._since_ms = 0  # first failure of the streak
        self._last_ms = 0  # its last one
        self._any_answered = False  # since this process began
        self._one_had_answered = False  # of the streak, before it
        self._is_down = False

    def note(self, answer: FetchResult, now_ms: int, *, has_answered: bool) -> None:
        """Add a result; `has_answered` says whether its site had answered before."""
        if was_not_answered(answer):
            rest_ms = max(10_000 * self._settings.retry_s, (self._last_ms - self._since_ms) / 2)
            if self._failures and now_ms - self._last_ms > rest_ms:
                self._begin_anew()  # failures before a pause belong to another streak
            self._since_ms = self._since_ms or now_ms
            self._last_ms = now_ms
            self._failures += 1
            self._one_had_answered |= has_answered
            if len(self._sites) < _SITES:
                self._sites.add(answer.job.site)
        elif answer.outcome is not FetchOutcome.DEFERRED and answer.reason not in _OURS:
            self._any_answered = True
            self._begin_anew()

    def excused_wait_s(self, now_ms: int) -> float:
        """How long an excused site waits: a quarter of the outage so far, so that retries become rarer.

        An apparent outage may be a server of many sites that blocks us; it must not be flooded.
        """
        grown_s = (now_ms - self._since_ms) / 4000
        return min(max(self._settings.retry_s, grown_s), self._settings.park_cap_s)

    def _begin_anew(self) -> None:
        self._failures, self._since_ms, self._one_had_answered = 0, 0, False
        self._sites.clear()

    def is_down(self, now_ms: int) -> bool:
        """Whether our own network causes the failures; logs each change."""
        for_ms = now_ms - self._since_ms
        is_down = (
            self._failures >= _FAILURES
            and len(self._sites) >= _SITES
            and (self._one_had_answered or not self._any_answered)
            and self._quiet_ms <= for_ms < self._wait_ms
        )
        if is_down and not self._is_down:
            _log.warning(
                "no_network",
                failures=self._failures,
                for_s=for_ms // 1000,
                mend="no site answers: check DNS, routes, this machine's firewall and crawl.proxy; no site is given up"
                f" for {self._wait_ms // 3_600_000} hours, and the crawl goes on by itself",
            )
        elif self._is_down and not is_down and self._failures:
            _log.warning(
                "no_network_for_too_long", for_s=for_ms // 1000, mend="sites without an answer are given up now"
            )
        elif self._is_down and not is_down:
            _log.info("network_is_back")
        self._is_down = is_down
        return is_down


def was_not_answered(answer: FetchResult) -> bool:
    """Whether there was no answer: no address, tunnel or connection, or a timeout. A redirect counts as an answer."""
    redirected = any(request.outcome == REDIRECTED for request in answer.requests)
    return answer.unreachable and answer.reason in UNANSWERED and not redirected
