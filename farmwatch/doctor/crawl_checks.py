"""Checks of the crawl and of the sources of hits, without requests to sites."""

from __future__ import annotations

import os
import socket
import time

from crawler.errors import BadCrawlSettings, NoContact
from crawler.settings import PROXY
from crawler.sources.ledger import Ledger
from crawler.sources.settings import SourceSettings
from crawler.sources.source import SourceError
from crawler.sources.usage import Usage, left, used
from crawler.stages.orders import free_bytes, order_text
from farmwatch.config.opening import log_exists
from farmwatch.daemon.roles import disks_of
from farmwatch.doctor.check_result import Results, Subject, fail, ok, warn
from farmwatch.terminal.remedies import in_full
from stream.schema.forgotten import Forgotten
from stream.schema.orders import Orders
from stream.schema.topics import CONTROL
from stream.text.user_errors import ConfigError
from stream.text.wording import counted, one_line, size

_ASK_S = 3.0  # for a connection to the proxy
WHERE_THE_CONTACT_STANDS = "(in farmwatch.toml, by FARMWATCH_CRAWL_CONTACT, or by --set crawl.contact=...)"


def crawl(at: Subject) -> Results:
    """Contact, limits, nameservers, the archive's folder. Raises ConfigError, ArchiveUnwritable."""
    from crawler.stages.preflight import check_crawl

    settings = at.config.crawl
    try:
        check_crawl(settings)
    except NoContact as error:
        raise ConfigError(f"{error} {WHERE_THE_CONTACT_STANDS}") from error
    except BadCrawlSettings as error:
        raise ConfigError(in_full(error)) from error
    archive = f"archive in {settings.warc_folder}" if settings.warc_folder else "no archive is written"
    signed = f"; signed as {settings.signature_agent}" if settings.signature.key else ""
    yield ok(one_line(f"contact {settings.contact}{signed}; a request every {settings.delay_s:g} s a host; {archive}"))


def proxy(at: Subject) -> Results:
    """The proxy accepts a connection. Its user and password are not shown."""
    found = PROXY.fullmatch(at.config.crawl.proxy)
    if found is None:  # none is set, or the check of the crawl says what is wrong with it
        return
    host, _, port = found[2].rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _ASK_S).close()
    except OSError as error:
        mend = "start it, open the way to it, or correct crawl.proxy; until then nothing is crawled"
        yield fail(one_line(f"{found[2]}: {error.strerror or error}"), mend)
    else:
        yield ok(f"{found[2]} accepts connections")


def orders(at: Subject) -> Results:
    """Pauses of the crawl, by an operator or for want of disk, and a removal that is not done. Raises BadRecord."""
    standing = Orders(at.log) if at.log is not None else None
    mark = at.config.crawl.pause_below_bytes
    if standing is not None and standing.pause.on:
        yield warn(f"the crawl is paused {order_text(standing.pause.changes[-1])}", "`farmwatch crawl resume` ends it")
    for name, folder in disks_of(at.config).items():
        free = free_bytes(folder)
        if free is not None and free < mark:
            low = f"the disk of the {name} has {size(free)} free: the crawl pauses below {size(mark)}"
            yield warn(one_line(low), "free disk space, or lower crawl.pause_below_bytes; the crawl resumes by itself")
    if at.log is not None and Forgotten(at.log).is_pending:
        said = "a host is being forgotten, or its removal was interrupted"
        yield warn(
            said, "if no such command runs, repeat it: readers see nothing of the host, but its bytes may be left"
        )
    excluded = sum(order.on for order in standing.exclusions.values()) if standing is not None else 0
    yield ok(f"{counted(excluded, 'exclusion')} (`farmwatch crawl exclude`)")


def search(at: Subject) -> Results:
    """Check the configuration of each source, and show the used part of its quota by the log."""
    from crawler.sources.catalogue import configured, open_source, settings_for

    search = at.config.search
    names = configured(search, os.environ)
    for name in names:
        settings = settings_for(search, name)
        try:
            open_source(search, name, os.environ)
        except SourceError as error:
            yield fail(one_line(error), "do what it says (docs/reference/sources.md)")
        else:
            usage = Usage() if at.log is not None or not log_exists(at.config) else None  # None: it cannot be read
            if at.log is not None and CONTROL in at.log.topics():
                ledger = Ledger(at.log, name)
                usage = ledger.usage if ledger.is_readable else None
            yield ok(f"{name}: {_quota(settings, usage)}; {settings.rate:g} a second at most")
    if not names:
        yield ok("no source is set up: hits come from files")


def _quota(settings: SourceSettings, usage: Usage | None) -> str:
    """The used and remaining quota of a source, as the search counts it; `?` without a log."""
    now_s = time.time()
    made = ["?", "?"] if usage is None else [f"{number:,}" for number in used(usage, now_s)]
    spans = zip(made, (settings.quota_day, settings.quota_month), ("of today", "of this month"), strict=True)
    of = [f"{done} of {limit:,} requests {span}" for done, limit, span in spans if limit]
    said = f"{' and '.join(of)} used" if of else f"no quota set, {made[1]} requests this month"
    still = None if usage is None else left(usage, settings, now_s)
    return said if still is None else f"{said}, {still:,} left"
