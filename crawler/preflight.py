"""Whether a crawl could start as it is configured, found without asking anybody and without the log."""

from __future__ import annotations

import tempfile
from pathlib import Path

from crawler.errors import ArchiveUnwritable
from crawler.fetch.address_guard import FixedResolver
from crawler.fetch.dns_cache import DnsCache
from crawler.settings import CrawlSettings


def check_crawl(settings: CrawlSettings) -> None:
    """Find what no restart mends; the folder of the archive is made.

    Raises NoContact, BadCrawlSettings, and ArchiveUnwritable where no file can be made in `warc_folder`.
    """
    settings.check()
    DnsCache(nameservers=settings.nameservers)
    FixedResolver(settings.resolve_to)
    if settings.warc_folder:
        _require_writable(Path(settings.warc_folder))


def _require_writable(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(prefix=".writable-", dir=folder):
            pass
    except OSError as error:
        raise ArchiveUnwritable(
            f"crawl.warc_folder is {folder}: no file can be made there: {error.strerror or error}; change its owner, or"
            " set another folder"
        ) from error
