"""The command `log export`: a table of the log into a file."""

from __future__ import annotations

import time
from itertools import chain, islice
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from farmwatch.archive.tables import ExportWindow, What, columns_of_table, incomplete_before, rows_of
from farmwatch.commands.options import DEFAULTS, Common
from farmwatch.config.opening import opened
from farmwatch.share.cut_options import read_days
from farmwatch.tables.files import Format, format_of, write_table
from farmwatch.terminal.messages import message
from stream.processing.topic_reader import UnreadableCounter, reporting_to
from stream.text.user_errors import Exit, NotFound, UsageError
from stream.text.wording import counted, moment, one_line


def export(
    out: Annotated[Path, Parameter(help="A new file, or a folder, which gets a file named after the table.")],
    /,
    *,
    what: Annotated[What, Parameter(help="The table; `rate` is the series that is kept of the rate.")],
    format: Annotated[
        Format | None,
        Parameter(
            help="Format of the file; parquet needs the extra of that name. Default: as its name ends, or jsonl."
        ),
    ] = None,
    since: Annotated[
        str, Parameter(name="--from", help="Only what was fetched on this day or later, such as 2026-05-01; UTC.")
    ] = "",
    until: Annotated[str, Parameter(name="--to", help="Only what was fetched on this day or before.")] = "",
    run: Annotated[str, Parameter(help="Verdicts, sites and rate of this run; default: the one that is live.")] = "",
    common: Common = DEFAULTS,
) -> int:
    """Write hits, pages, verdicts, scores, sites, sitemaps, ads_txt or the kept rates of the log into a file.

    A record of the window that retention has removed is missing; a message says before which time. If it has removed
    all of them, nothing is written. Canary sites are left out. The file appears when it is whole.

    Exit code 1 if records could not be read: they are missing.
    """
    config = common.load().config
    now_ms = int(time.time() * 1000)
    window = ExportWindow(*read_days(since, until, now_ms))
    if what == "sites" and window != ExportWindow():
        raise UsageError("--from and --to: a site has one row, the newest; export `rate`, `verdicts` or `scores`")
    if run and what in ("hits", "pages", "scores", "sitemaps", "ads_txt"):
        raise UsageError(f"--run: {what} are those of all runs")
    form = format or ("jsonl" if out.is_dir() or not out.suffix else format_of(out))
    file = out / f"{what}.{form}" if out.is_dir() else out
    unreadable = UnreadableCounter()
    with opened(config) as log, reporting_to(unreadable):
        missing_before = incomplete_before(log, what, window, run, now_ms)
        table_rows = rows_of(log, what, window, run, config, now_ms)
        first = list(islice(table_rows, 1))
        removed = f"retention has removed {what} from before {moment(missing_before)}"
        if missing_before and not first:
            raise NotFound(f"{removed}, and nothing of the window is left: no file was written")
        rows = write_table(file, form, columns_of_table(what, config.measure.max_html_bytes), chain(first, table_rows))
    if missing_before:
        message(f"{removed}: they are missing here")
    message(one_line(f"{counted(rows, 'row')} of {what} in {file}"))
    if what == "rate" and not rows:
        message(f"no point of the rate is kept for this: TALLY keeps one every {config.rate.series_s} s while it runs")
    for line in unreadable.lines():
        message(one_line(f"{line}; see `farmwatch doctor`"))
    return Exit.PROBLEM if unreadable.lines() else Exit.OK
