"""The doctor's checks of the crawl, of what it serves, and of where hits come from. Nobody is asked."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING

from farmwatch.config.brokers import require_broker
from farmwatch.config.config import Config
from farmwatch.doctor.check_result import CheckResult, CheckState
from stream.log.errors import StreamError
from stream.schema.topics import CONTROL
from stream.text.user_errors import FarmwatchError
from stream.text.wording import one_line

if TYPE_CHECKING:
    from crawler.sources.settings import SourceSettings
    from crawler.sources.usage import Usage


def contact(config: Config) -> CheckResult:
    """That site owners can reach whoever runs this."""
    if not config.crawl.contact:
        return CheckResult(
            "contact",
            CheckState.FAIL,
            "crawl.contact is empty",
            "set it to a URL or address at which site owners reach you",
        )
    return CheckResult("contact", CheckState.OK, config.crawl.contact)


def crawl(config: Config) -> list[CheckResult]:
    """What `up` would refuse of the crawl, beside the contact: rude limits, nameservers, the folder of the archive."""
    from crawler.errors import ArchiveUnwritable, BadCrawlSettings, NoContact
    from crawler.preflight import check_crawl

    try:
        check_crawl(config.crawl)
    except NoContact:
        return []  # the line before has said so
    except (BadCrawlSettings, ArchiveUnwritable) as error:
        return [CheckResult("crawl", CheckState.FAIL, one_line(error), "do it (docs/reference/configuration.md)")]
    archive = f"archive in {config.crawl.warc_folder}" if config.crawl.warc_folder else "no archive is written"
    return [
        CheckResult("crawl", CheckState.OK, one_line(f"a request every {config.crawl.delay_s:g} s a host; {archive}"))
    ]


def ports(config: Config) -> CheckResult:
    """Whether each role could serve its metrics."""
    from farmwatch.config.role_names import metrics_port
    from stream.schema.roles import Role

    host, first = config.metrics.host, config.metrics.port
    if not first:
        return CheckResult("ports", CheckState.OK, "metrics on free ports")
    taken = []
    for role in Role:
        port = metrics_port(first, role)
        try:
            socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET).close()
        except OSError as error:
            taken.append(f"{host}:{port} ({role.value}): {error.strerror or error}")
    if taken:
        mend = "if it is not farmwatch that runs there, set metrics.port to another one, or to 0 for any"
        return CheckResult("ports", CheckState.WARN, "; ".join(taken), mend)
    return CheckResult("ports", CheckState.OK, f"metrics on {host}:{first} to {first + len(Role) - 1}")


def search(config: Config) -> list[CheckResult]:
    """A line per source of hits that was set up: that it has what it needs, and what of its quota is used.

    Nothing is asked of it.
    """
    from crawler.sources.catalogue import configured, open_source, settings_for
    from crawler.sources.source import SourceError

    findings = []
    names = configured(config.search, os.environ)
    usages = _usages(config, names)
    for name in names:
        mine = settings_for(config.search, name)
        try:
            open_source(config.search, name, os.environ, config.crawl)
        except SourceError as error:
            findings.append(
                CheckResult("search", CheckState.FAIL, one_line(error), "do what it says (docs/reference/sources.md)")
            )
            continue
        said = f"{name}: {_quota(mine, usages.get(name))}; {mine.rate:g} a second at most"
        findings.append(CheckResult("search", CheckState.OK, said))
    return findings or [CheckResult("search", CheckState.OK, "no source is set up: hits come from files")]


def _usages(config: Config, names: Sequence[str]) -> Mapping[str, Usage]:
    """What the log has counted of each source; nothing where it cannot be read, which has a line of its own."""
    from crawler.sources.ledger import Ledger
    from crawler.sources.usage import Usage
    from farmwatch.config.opening import log_exists, open_configured

    unused = dict.fromkeys(names, Usage())
    try:
        if not names or not log_exists(config):
            return unused
        require_broker(config)
        with closing(open_configured(config, read_only=True)) as log:
            ledgers = {name: Ledger(log, name) for name in names} if CONTROL in log.topics() else None
            return (
                unused if ledgers is None else {name: kept.usage for name, kept in ledgers.items() if kept.is_readable}
            )
    except (StreamError, FarmwatchError):
        return {}


def _quota(settings: SourceSettings, usage: Usage | None) -> str:
    """What of a source's quota is used and left, as the search counts it; `?` where no log says how much."""
    from crawler.sources.usage import left, used

    now_s = time.time()
    made = ["?", "?"] if usage is None else [f"{number:,}" for number in used(usage, now_s)]
    spans = zip(made, (settings.quota_day, settings.quota_month), ("of today", "of this month"), strict=True)
    of = [f"{done} of {limit:,} requests {span}" for done, limit, span in spans if limit]
    said = f"{' and '.join(of)} used" if of else f"no quota set, {made[1]} requests this month"
    still = None if usage is None else left(usage, settings, now_s)
    return said if still is None else f"{said}, {still:,} left"
