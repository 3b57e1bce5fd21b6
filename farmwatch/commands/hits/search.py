"""The command `hits search`: hits from the APIs of search engines, once or on a schedule."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from crawler.sources.catalogue import RECIPES, SOURCES
from crawler.sources.ledger import interval_s
from crawler.sources.queries import query_file
from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.crawl.search_rounds import run_search
from stream.text.user_errors import UsageError

_NOT_ASKED = {"file": "hits add", "warc": "log import"}  # source that is read from files -> command


def search(
    *,
    source: Annotated[
        list[str],
        Parameter(
            help=f"{', '.join([*SOURCES, *RECIPES])}, or a name of search.json_http; may be repeated.", negative=""
        ),
    ],
    queries: Annotated[
        Path,
        Parameter(
            help="File with queries: one a line, or CSV and JSONL with query, query_id, language, country; or how-to,"
            " the list that ships with farmwatch."
        ),
    ],
    every: Annotated[
        str | None, Parameter(help="Search again and again: 90m, 6h, 1d. A round that was missed is made up once.")
    ] = None,
    pages: Annotated[
        int | None,
        Parameter(help="Result pages per query, in place of the source's setting.", validator=Number(gte=1, lte=100)),
    ] = None,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Append search results to the topic `hits` by asking sources (docs/reference/sources.md).

    A line without a usable query is reported with its number and skipped. A hit that the log has is not appended again.

    With --every it runs until SIGTERM, which ends it between two requests; a round that was broken off goes on at the
    next start.

    Exit code 1 when lines were skipped, or queries were refused, failed or left unasked; results that cannot be used
    are only counted. 2 when a source lacks its key or its address, 3 when a file or the log cannot be used, 130 after
    Ctrl-C of a search by hand.
    """
    names = list(dict.fromkeys(part.strip() for name in source for part in name.split(",") if part.strip()))
    if not names:
        raise UsageError("--source names no source")
    for name in names:
        if name in _NOT_ASKED:
            raise UsageError(f"--source {name}: files are read by `farmwatch {_NOT_ASKED[name]}`")
    try:
        every_s = None if every is None else interval_s(every)
    except ValueError as error:
        raise UsageError(f"--every: {error}") from error
    return run_search(common.load().config, names, query_file(queries), every_s, pages, as_json=json)
