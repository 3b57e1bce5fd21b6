"""The progress of a job through the parts of a fetch, and how it ends."""

from __future__ import annotations

import errno
from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp.abc import ResolveResult

from crawler.fetch.jobs import FetchResult
from stream.schema.vocabulary import FetchOutcome

# Shortages of this machine: file descriptors, buffers, memory, ports
STARVED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL})


@dataclass(eq=False)
class FetchEnded(Exception):
    """Control flow: the job ends here. The fields are those of the result."""

    outcome: FetchOutcome
    reason: str = ""
    transient: bool = False
    unreachable: bool = False
    not_before_ms: int = 0


class StaleConnection(Exception):
    """Control flow: the server had closed a kept connection before it answered this request."""


class NoSocketLeft(Exception):
    """Control flow: this machine has no socket left for the request."""


class FetchContext(FetchResult, kw_only=True):
    """The result of a job in progress, filled in step by step, so that a failure reports all that is known."""

    delay_s: float  # of the current host
    spent_s: float = 0.0
    waited_s: float = 0.0  # for turns
    sent_ms: int = 0  # when the last request was sent
    pins: Sequence[ResolveResult] = ()  # the addresses that the request may use
    kept: bool = False  # over a kept connection
    is_repeated: bool = False  # after a stale connection
    stated: Sequence[str] = ()  # preferences in the robots.txt of the `www.` twin that redirects led to
    robots_tags: Sequence[str] = ()  # X-Robots-Tag fields in full

    def end(self, end: FetchEnded) -> None:
        self.outcome, self.reason, self.not_before_ms = end.outcome, end.reason, end.not_before_ms
        self.transient, self.unreachable = end.transient, end.unreachable
