"""The command `search`: hits from files, and from the APIs of search engines, once or on a schedule."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from cyclopts.validators import Number

from crawler.sources.catalogue import SOURCES
from crawler.sources.ledger import interval_s
from crawler.sources.queries import query_file
from crawler.web.columns import HIT_NAMES
from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.config.config import Config
from farmwatch.crawl.append_hits import AppendSummary, append_files
from farmwatch.crawl.search_rounds import run_search
from farmwatch.terminal.messages import message, put, put_json
from stream.text.user_errors import Exit, FarmwatchError, UsageError

FILE, WARC = "file", "warc"


def search(
    *,
    hits: Annotated[
        list[Path] | None,
        Parameter(
            help="Files with hits, or folders of them: CSV with a header, JSONL or one URL a line; `-` is stdin.",
            consume_multiple=True,
            negative="",
        ),
    ] = None,
    columns: Annotated[
        list[str] | None,
        Parameter(
            name="--columns",
            help="Columns of the files by name, as in url=Web,query='Search word'; source= takes none for it."
            " May be repeated.",
            negative="",
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        Parameter(
            help=f"file (with --hits), {', '.join(SOURCES)}, or a name of search.json_http; may be repeated."
            " Default: file.",
            negative="",
        ),
    ] = None,
    queries: Annotated[
        Path | None,
        Parameter(
            help="File with queries: one a line, or CSV and JSONL with query, query_id, language, country; or how-to,"
            " the list that ships with farmwatch."
        ),
    ] = None,
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
    """Append search results to the topic `hits`: from files, or by asking sources (docs/reference/sources.md).

    FileColumns have the names that search tools give them (docs/reference/formats.md); how they were read is printed.

    A line without a usable hit or query is reported with its number and skipped. A hit that the log has is not
    appended again.

    With --every it runs until SIGTERM, which ends it between two requests; a round that was broken off goes on at the
    next start.

    Exit code 1 when lines were skipped, or queries were refused, failed or left unasked; results that cannot be used
    are only counted. 2 when a source lacks its key or its address, 3 when a file or the log cannot be used, 130 after
    Ctrl-C of a search by hand.
    """
    names = list(dict.fromkeys(part.strip() for name in source or [FILE] for part in name.split(",") if part.strip()))
    if not names:
        raise UsageError("--source names no source")
    if WARC in names:
        raise UsageError("--source warc: WARC files are imported by another command, see `farmwatch import --help`")
    if FILE in names and len(names) > 1:
        raise UsageError("--source file stands alone: its hits come from --hits, not from --queries")
    if names == [FILE]:
        if not hits:
            raise UsageError("give --hits FILE, or --source NAME with --queries FILE")
        if queries or every or pages is not None:
            raise UsageError("--queries, --every and --pages are for sources that are asked: give --source NAME")
        return _append(common.load().config, hits, _given(columns or []), json)
    if hits or columns:
        raise UsageError("--hits and --columns go with --source file; sources that are asked take --queries FILE")
    if queries is None:
        raise UsageError("give --queries FILE: one query a line, or CSV or JSONL with a column query")
    try:
        every_s = None if every is None else interval_s(every)
    except ValueError as error:
        raise UsageError(f"--every: {error}") from error
    return run_search(common.load().config, names, query_file(queries), every_s, pages, as_json=json)


def _given(options: list[str]) -> dict[str, str]:
    """Field -> name of its column. A name may have commas."""
    given: dict[str, str] = {}
    for text in options:
        for part in re.split(rf",(?=(?:{'|'.join(HIT_NAMES)})=)", text):
            field, equals, name = part.partition("=")
            if not equals or field not in HIT_NAMES or field in given or (not name and field == "url"):
                fields = ", ".join(HIT_NAMES)
                raise UsageError(f"--columns {part}: write FIELD=NAME, each field once; the fields are {fields}")
            given[field] = name
    return given


def _append(config: Config, files: list[Path], columns: dict[str, str], as_json: bool) -> int:
    total = AppendSummary()
    for file, added in append_files(config, files, columns):
        if added == AppendSummary():
            raise FarmwatchError(f"{file}: no hit in it")
        if not added.hits and not columns:
            message(f"{file}: if it is a table, name its column of URLs: --columns url=NAME")
        total += added
    if as_json:
        put_json({"source": FILE, **asdict(total)})
    else:
        put(total.text)
    return Exit.PROBLEM if total.skipped else Exit.OK
