"""Check whether a crawl could start with its settings, without the network and without the log."""

from __future__ import annotations

import tempfile
from pathlib import Path

from crawler.errors import ArchiveUnwritable
from crawler.fetch.address_guard import FixedResolver
from crawler.fetch.dns_cache import DnsCache
from crawler.settings import CrawlSettings
from crawler.signing.request_signer import signer_of


def check_settings(settings: CrawlSettings, *, contact_required: bool = True) -> None:
    """Check the settings and the files that they name; writes nothing.

    Raises NoContact, BadCrawlSettings, BadSigningKey, MissingExtra.
    """
    settings.check(contact_required=contact_required)
    DnsCache(settings)
    FixedResolver(settings.resolve_to)
    signer_of(settings)


def check_crawl(settings: CrawlSettings) -> None:
    """As `check_settings`, and create the archive's folder. Raises ArchiveUnwritable too."""
    check_settings(settings)
    if not settings.warc_folder:
        return
    folder = Path(settings.warc_folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix=".writable-", dir=folder):
            pass
    except OSError as error:
        raise ArchiveUnwritable(
            f"crawl.warc_folder is {folder}: no file can be made there: {error.strerror or error}; change its owner, or"
            " set another folder"
        ) from error
