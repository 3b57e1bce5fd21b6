"""What can go wrong in the crawler, and what the operator does about it."""

from __future__ import annotations


class CrawlError(Exception):
    """Any failure of the crawler that is no property of a page.

    `retriable` is for the stage loop: True means that the same batch may succeed when it is tried again.
    """

    retriable = False


class NoContact(CrawlError):
    """The crawler was started without a contact.

    Site owners must be able to reach whoever runs it: the operator sets `crawl.contact` to a URL or a mail address.
    """


class BadCrawlSettings(CrawlError):
    """Settings that contradict each other; the message names the setting and what it may be. The operator mends it."""


class OldFrontier(CrawlError):
    """The frontier in the log was written by a version that lays it out differently.

    The process ends, and nothing is lost. The operator lets the version that wrote it crawl it to its end
    (`farmwatch frontier` tells when nothing is active), or begins with a new log.
    """

    fatal = True


class UnusableUrl(CrawlError, ValueError):
    """A text that is no http or https URL with a host.

    In a hits file the line is reported and skipped; a hit on the topic goes to the dead letters. The operator mends
    the source of the hits, or lets it be.
    """


class PrivateAddress(OSError):
    """A host stands at an address that is not public, so nothing was sent to it.

    The page is recorded as refused. The operator does nothing; in tests, `allow_private` lifts the guard.
    """

    retriable = False


class UnresolvedHost(CrawlError, OSError):
    """DNS has no address for a host. `reason` tells why, in the words of `Page.reason`.

    `dns_no_name`: there is no such name; `dns_no_address`: the name has no address; `dns`: no nameserver answered, or
    one that failed. The site is tried again, then given up. The operator acts on `dns` for many sites: the nameservers
    of this machine, or `crawl.nameservers`, are to be mended.
    """

    retriable = False

    def __init__(self, message: str, *, reason: str = "dns") -> None:
        """`message` says what was asked for and what came."""
        super().__init__(message)
        self.reason = reason


class ArchiveUnwritable(CrawlError):
    """The WARC files cannot be written: the disk is full or fails, or the folder may not be written to.

    The crawl rests and loses nothing: the pages of the batch are fetched again later, and nothing new is asked for
    until a file can be written. The operator makes room, mends the disk, or sets another `crawl.warc_folder`.
    """

    retriable = True
