"""Errors of the crawler, and the operator's action for each."""

from __future__ import annotations

from stream.text.user_errors import Exit, FarmwatchError


class CrawlError(FarmwatchError):
    """A failure of the crawler that no page caused.

    `retriable` is for the stage loop: True means that the same batch may succeed on the next attempt.
    """

    exit = Exit.USAGE


class NoContact(CrawlError):
    """No contact is configured. The operator sets `crawl.contact` to a URL or a mail address for site owners."""


class BadCrawlSettings(CrawlError):
    """Settings contradict each other. The message names the setting and the allowed values."""


class BadSigningKey(CrawlError):
    """The key that signs requests cannot be used. The message names its file; the operator mends it."""


class OldFrontier(CrawlError):
    """Another version wrote the frontier in the log. The operator uses that version, or starts with a new log."""

    exit = Exit.UNAVAILABLE
    fatal = True


class UnusableUrl(CrawlError, ValueError):
    """The text is no http or https URL with a host. The operator may fix the source of the hits."""


class PrivateAddress(OSError):
    """A host has an address that is not public, so nothing was sent. The page is recorded as refused."""

    retriable = False


class UnresolvedHost(CrawlError, OSError):
    """DNS has no address for a host. `reason` is the value of `Page.reason`.

    `dns_no_name`: the name does not exist; `dns_no_address`: the name has no address; `dns`: no nameserver answered, or
    one failed. The site is retried, then given up. If many sites fail with `dns`, the operator fixes the nameservers of
    the machine or `crawl.nameservers`.
    """

    retriable = False

    def __init__(self, message: str, *, reason: str = "dns") -> None:
        super().__init__(message)
        self.reason = reason


class ArchiveUnwritable(CrawlError):
    """The WARC files cannot be written. The crawl pauses and loses nothing until the operator mends the disk."""

    exit = Exit.UNAVAILABLE
    retriable = True
