"""The command `site`: why a site counts as it does."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated

import msgspec
from cyclopts import Parameter

from farmwatch.commands.crawl.frontier import read_site, site_in_words
from farmwatch.commands.options import DEFAULTS, AsJson, Common, host_of
from farmwatch.config.detector_config import caveats, print_caveats
from farmwatch.config.opening import opened
from farmwatch.crawl.orders import NotVisited
from farmwatch.share.page_lines import PAGE_COLUMNS, page_lines
from farmwatch.share.signal_words import signal_words
from farmwatch.share.site_farm import SiteFarm
from farmwatch.share.site_lines import ListedSite, one_site, site_fields, verdict_words
from farmwatch.tables.columns import fields_of
from farmwatch.tables.listing import Listing
from farmwatch.terminal.messages import put, put_json, put_wrapped
from stream.text.user_errors import Exit, NotFound
from stream.text.wording import counted, one_line

_SHOWN = ("url", "result", "p_llm", "flag", "why", "score", "fetched_at")


def site(
    host: Annotated[str, Parameter(help="The host; a URL of it is accepted.")],
    /,
    *,
    run: Annotated[str, Parameter(help="Of this run; default: the one that is live.")] = "",
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Why a site counts as it does: its verdict and evidence, where its crawl stands, and its articles.

    `farmwatch pages HOST` lists all its pages, `farmwatch page URL` says why one was kept or dropped.

    JSON: one object, with all pages.
    """
    name = host_of(host, "HOST")
    config = common.load().config
    now_ms = int(time.time() * 1000)
    crawled = None
    with opened(config) as log:
        line, farm = one_site(log, config, run, now_ms, name) or (None, None)
        with suppress(NotFound):
            crawled = read_site(log, config, name, now_ms, 0) if config.log.url.startswith("sqlite:") else None
        pages = list(page_lines(log, config, run, name))
        not_visited = NotVisited.of(log).why(name)
    if line is None and crawled is None and not pages:
        raise NotFound(one_line(f"{name}: no hit, page or row of this host is in the log"), case="no site")
    if json:
        put_json(
            {
                **(site_fields(line) if line is not None else {"site": name}),
                "content_farm": farm and farm.fields(),
                "crawl": msgspec.to_builtins(crawled),
                "not_visited": not_visited,
                "pages_listed": [fields_of(PAGE_COLUMNS, page) for page in pages],
            }
        )
        return Exit.OK
    for text in _in_words(name, line, farm):
        put_wrapped(one_line(text), "  ")
    if not_visited:
        put_wrapped(one_line(f"  {not_visited}"), "    ")
    for text in list(site_in_words(crawled, now_ms))[1:] if crawled is not None and not not_visited else ():
        put_wrapped(one_line(f"  {text}"), "    ")
    put("")
    Listing(sort="p_llm").of(PAGE_COLUMNS).put(pages, "page", _SHOWN)
    if line is not None:
        print_caveats(caveats(config, [line.row.detector]), short=True)
    return Exit.OK


def _in_words(name: str, line: ListedSite | None, farm: SiteFarm | None) -> Iterator[str]:
    if line is None:
        yield f"{name}: {verdict_words('', 0)}"
        return
    row = line.row
    p_llm = "" if line.p_llm is None else f"; probability of an LLM site {line.p_llm:.2f}"
    yield f"{name}: {verdict_words(row.verdict, row.scored)}{p_llm}"
    if line.called.label:
        yield f"  {line.called.words}"
    yield f"  {row.flagged:,} of {counted(row.scored, 'scored article')} flagged; evidence {row.llr:+.2f}"
    if line.needs is not None:
        kind = "flagged" if row.llr > 0 else "not flagged"
        yield f"  open: a verdict asks for {counted(line.needs, 'more article')} in a row, {kind}"
    if line.too_old:
        yield "  its term has ended and it was not measured again: it counts in no share"
    if line.earlier_verdict:
        yield f"  measured again; until then {line.earlier_verdict} counts"
    dropped = ", ".join(f"{rule} {pages:,}" for rule, pages in row.dropped_by.items())
    drops = f"; dropped by {dropped}" if dropped else ""
    through = f", {row.through_segments:,} through segments" if row.through_segments else ""
    yield f"  {counted(row.pages, 'page')}, {counted(row.articles, 'article')}{through}{drops}"
    if row.signals:
        yield f"  signals, by pages: {signal_words(row.signals, row.signals)}"
    if farm is not None:
        yield f"  content farm: {farm.words}"
    if said := line.operator.words:
        yield f"  operator: {'; '.join(said)}"
    if line.no_page:
        yield f"  no page: {line.no_page}"
    found = f"; best rank {row.best_rank}" if row.best_rank else ""
    yield f"  {counted(row.hits, 'hit')} from {', '.join(row.sources) or 'no source'}{found}"
    yield f"  ruleset {row.ruleset or '-'} {row.digest[:8]}; detector {row.detector or '-'}"
