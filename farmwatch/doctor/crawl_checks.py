"""Checks of the crawl and of the sources of hits. Nobody is asked."""

from __future__ import annotations

import os
import time

from crawler.errors import BadCrawlSettings, NoContact
from crawler.preflight import check_crawl
from crawler.sources.catalogue import configured, open_source, settings_for
from crawler.sources.ledger import Ledger
from crawler.sources.settings import SourceSettings
from crawler.sources.source import SourceError
from crawler.sources.usage import Usage, left, used
from farmwatch.config.opening import log_exists
from farmwatch.doctor.check_result import Results, Subject, fail, ok
from stream.schema.topics import CONTROL
from stream.text.user_errors import ConfigError
from stream.text.wording import one_line

WHERE_THE_CONTACT_STANDS = "(in farmwatch.toml, by FARMWATCH_CRAWL_CONTACT, or by --set crawl.contact=...)"


def crawl(at: Subject) -> Results:
    """Contact, limits, nameservers, the archive's folder. Raises ConfigError, ArchiveUnwritable."""
    settings = at.config.crawl
    try:
        check_crawl(settings)
    except NoContact as error:
        raise ConfigError(f"{error} {WHERE_THE_CONTACT_STANDS}") from error
    except BadCrawlSettings as error:
        raise ConfigError(str(error)) from error
    archive = f"archive in {settings.warc_folder}" if settings.warc_folder else "no archive is written"
    yield ok(one_line(f"contact {settings.contact}; a request every {settings.delay_s:g} s a host; {archive}"))


def search(at: Subject) -> Results:
    """Check the configuration of each source, and show how much of its quota the log says is used."""
    search = at.config.search
    names = configured(search, os.environ)
    for name in names:
        settings = settings_for(search, name)
        try:
            open_source(search, name, os.environ, at.config.crawl)
        except SourceError as error:
            yield fail(one_line(error), "do what it says (docs/reference/sources.md)")
        else:
            yield ok(f"{name}: {_quota(settings, _usage(at, name))}; {settings.rate:g} a second at most")
    if not names:
        yield ok("no source is set up: hits come from files")


def _usage(at: Subject, name: str) -> Usage | None:
    """What the log has counted of a source; None where it cannot be read."""
    if at.log is None:
        return None if log_exists(at.config) else Usage()
    if CONTROL not in at.log.topics():
        return Usage()
    ledger = Ledger(at.log, name)
    return ledger.usage if ledger.is_readable else None


def _quota(settings: SourceSettings, usage: Usage | None) -> str:
    """What of a source's quota is used and left, as the search counts it; `?` where no log says how much."""
    now_s = time.time()
    made = ["?", "?"] if usage is None else [f"{number:,}" for number in used(usage, now_s)]
    spans = zip(made, (settings.quota_day, settings.quota_month), ("of today", "of this month"), strict=True)
    of = [f"{done} of {limit:,} requests {span}" for done, limit, span in spans if limit]
    said = f"{' and '.join(of)} used" if of else f"no quota set, {made[1]} requests this month"
    still = None if usage is None else left(usage, settings, now_s)
    return said if still is None else f"{said}, {still:,} left"
