"""`farmwatch pages`."""

from __future__ import annotations

from itertools import chain, islice
from typing import Annotated

from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, Common, host_of
from farmwatch.config.opening import opened
from farmwatch.share.page_lines import PAGE_COLUMNS, PAGES_SHOWN, page_lines
from farmwatch.tables.listing import LISTING, Listing
from scoring.rates.canary import is_canary
from stream.text.user_errors import Exit, NotFound
from stream.text.wording import one_line


def pages(
    site: Annotated[str, Parameter(help="Only the pages of this host.")] = "",
    /,
    *,
    run: Annotated[str, Parameter(help="Verdicts of this run; default: the one that is live.")] = "",
    listing: Listing = LISTING,
    common: Common = DEFAULTS,
) -> int:
    """One row per page: an article or not, the rule that dropped it, and its score. `farmwatch page URL` says why.

    It reads the log's pages, which takes minutes where there are millions; those of one host are read sooner.
    """
    host = host_of(site, "SITE") if site else ""
    selection = listing.of(PAGE_COLUMNS)
    config = common.load().config
    with opened(config) as log:
        lines = (line for line in page_lines(log, config, run, host) if host or not is_canary(line.site))
        first = list(islice(lines, 1))
        if host and not first:
            raise NotFound(one_line(f"{host}: no page of this host is in the log"))
        selection.put(chain(first, lines), "page", PAGES_SHOWN)
    return Exit.OK
