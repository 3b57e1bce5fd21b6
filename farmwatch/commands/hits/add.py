"""The command `hits add`: hits from files."""

from __future__ import annotations

import re
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from crawler.web.columns import HIT_NAMES
from farmwatch.commands.options import DEFAULTS, AsJson, Common
from farmwatch.crawl.append_hits import AppendSummary, append_files
from farmwatch.terminal.messages import message, put, put_json
from stream.text.user_errors import Exit, FarmwatchError, UsageError


def add(
    files: Annotated[
        list[Path],
        Parameter(help="Files with hits: CSV with a header, JSONL or one URL a line; `-` is stdin.", negative=""),
    ],
    /,
    *,
    columns: Annotated[
        list[str] | None,
        Parameter(
            name="--columns",
            help="Columns of the files by name, as in url=Web,query='Search word'; source= takes none for it."
            " May be repeated.",
            negative="",
        ),
    ] = None,
    json: AsJson = False,
    common: Common = DEFAULTS,
) -> int:
    """Append search results from files to the topic `hits`.

    Columns have the names that search tools give them (docs/reference/formats.md); how they were read is printed.

    A line without a usable hit is reported with its number and skipped. A hit that the log has is not appended again.

    Exit code 1 when lines were skipped, 3 when a file or the log cannot be used.
    """
    names = _given(columns or [])
    config = common.load().config
    total = AppendSummary()
    for file, added in append_files(config, files, names):
        if added == AppendSummary():
            raise FarmwatchError(f"{file}: no hit in it")
        if not added.hits and not names:
            message(f"{file}: if it is a table, name its column of URLs: --columns url=NAME")
        total += added
    if json:
        put_json({"source": "file", **asdict(total)})
    else:
        put(total.text)
    return Exit.PROBLEM if total.skipped else Exit.OK


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
