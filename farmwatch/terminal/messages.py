"""Output of commands: data on stdout (tables or JSON), messages and logs on stderr. Colour only on a terminal."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from stream.text.wording import escaped, one_line

if TYPE_CHECKING:
    from rich.table import Table

OUT_OF_PROCESSES = (
    "no further process or thread can be started: raise the limit (`ulimit -u`, TasksMax= of a unit, pids of a"
    " container), or start fewer (measure.workers, --jobs, --role)"
)
Advance = Callable[[int], None]


def message(text: str) -> None:
    """Print a sentence to the operator on stderr: wrapped at words on a terminal, otherwise as one line."""
    sys.stderr.write(f"{_broken(text, sys.stderr)}\n")  # one write: `print` makes two, others come between


def put(text: str) -> None:
    """Print one line of data on stdout."""
    print(text)  # noqa: T201 - this is the CLI's mouth


def put_json(value: Any) -> None:
    """Print one JSON document on one line of stdout, see `json_line`."""
    put(json_line(value))


def json_line(value: Any) -> str:
    """A JSON document on one line, in ASCII if a character would not print. Raises ValueError for NaN."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return text if text.isprintable() else json.dumps(value)


def put_table(
    headings: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "", *, less: Sequence[str] = ()
) -> Sequence[str]:
    """Print a table on stdout: fitted to the width of a terminal, otherwise tab-separated and whole.

    A terminal shows no empty columns. If the table is too wide and some may be left out, URLs are shown by their ends;
    while it still is, columns of `less` are left out in this order, with a note that has a column's value if it is the
    same in all rows; then cells are folded. Returns the shown headings.
    """
    cells = [[one_line(cell) for cell in row] for row in rows]
    if not sys.stdout.isatty():
        if title:
            put(f"# {title}")
        put("\t".join(headings))
        for row in cells:
            put("\t".join(row))
        return headings
    from rich.console import Console

    console = Console()
    columns = [(heading, [row[place] for row in cells]) for place, heading in enumerate(headings)]
    columns = [column for column in columns if any(column[1]) or not cells]
    if less and (too_wide := _width(columns) - console.width) > 0:
        columns = _shortened(columns, too_wide)
    left_out = []
    for column in sorted((column for column in columns if column[0] in less), key=lambda column: less.index(column[0])):
        if _width(columns) <= console.width:
            break
        columns.remove(column)
        heading, values = column[0], set(column[1])
        left_out.append(f"{heading} ({values.pop()})" if len(values) == 1 else heading)
    console.print(_table(columns, title, broken=_width(columns) > console.width))
    if left_out:
        put_wrapped(f"left out for width: {', '.join(left_out)}; --json has all")
    return [heading for heading, _ in columns]


_Columns = Sequence[tuple[str, Sequence[str]]]  # headings with their cells
_GAP = 2  # cells between two columns
_SHORTEST = 32  # cells of a URL that is shortened


def _width(columns: _Columns) -> int:
    from rich.cells import cell_len

    return sum(max(map(cell_len, (heading, *cells))) + _GAP for heading, cells in columns) - _GAP


def _shortened(columns: Sequence[tuple[str, list[str]]], cells: int) -> list[tuple[str, list[str]]]:
    """The columns, their URLs shorter by so many cells as far as their ends are left."""
    short = []
    for heading, texts in columns:
        most = max(_SHORTEST, _width([(heading, texts)]) - cells)
        short.append(
            (heading, [f"…{text[1 - most :]}" if "://" in text and len(text) > most else text for text in texts])
        )
    return short


def _table(columns: _Columns, title: str, *, broken: bool) -> Table:
    """The table for rich, with `broken` headings of a word a line. Text of crawled pages is no markup."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=escape(title) or None,
        title_justify="left",
        header_style="bold",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        collapse_padding=True,
    )
    for heading, _ in columns:
        table.add_column(Text(heading.replace(" ", "\n") if broken else heading), overflow="fold")
    for row in zip(*(cells for _, cells in columns), strict=True):
        table.add_row(*map(Text, row))
    return table


def put_wrapped(text: str, indent: str = "") -> None:
    """Print a paragraph on stdout: wrapped at words on a terminal, with `indent` from the second line on."""
    put(_broken(text, sys.stdout, indent))


def program_version() -> str:
    """Version of the installed distribution."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("farmwatch")
    except PackageNotFoundError:
        return "unknown"


@contextmanager
def counting(total: int | None, what: str) -> Iterator[Advance]:
    """A bar on stderr, if it is a terminal, over `total` things; `advance` gets the number of those processed since."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TaskProgressColumn(), TextColumn(what), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.update(task, advance=done)


def start_logging(level: str = "info", **bound: str) -> None:
    """Send structlog to stderr: readable on a terminal, logfmt elsewhere. `bound` is added to every event."""
    import logging

    import structlog

    from farmwatch.terminal.remedies import EVENTS

    def add_bound(_logger: object, _method: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
        known = {"mend": EVENTS[event["event"]]} if event["event"] in EVENTS else {}
        return {**bound, **event, **known}  # not by contextvars: those do not reach the process's other threads

    def escape(_logger: object, _method: str, event: structlog.types.EventDict) -> structlog.types.EventDict:
        return {name: escaped(value) if isinstance(value, str) else value for name, value in event.items()}

    on_terminal = sys.stderr.isatty()
    colours = on_terminal and not os.environ.get("NO_COLOR")
    renderer: structlog.types.Processor
    if on_terminal:
        renderer = structlog.dev.ConsoleRenderer(colors=colours)
    else:
        renderer = structlog.processors.LogfmtRenderer(key_order=["timestamp", "level", "event"], bool_as_flag=False)
    structlog.configure(
        processors=[
            add_bound,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            escape,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),  # one write a line, see `message`
        cache_logger_on_first_use=False,
    )
    # several lines a second while a broker is unavailable; our own events report the same once
    logging.getLogger("kafka").setLevel(logging.CRITICAL)


def _broken(text: str, stream: TextIO, indent: str = "") -> str:
    """The text for that stream. Words stay whole: paths and URLs are copied."""
    text = escaped(text)
    if not stream.isatty():
        return text
    import shutil
    import textwrap

    # one less: some terminals move to the next line when the last column is filled
    width = max(20, shutil.get_terminal_size().columns) - 1
    fill = textwrap.TextWrapper(
        width, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False, replace_whitespace=False
    ).fill
    is_copied = "next: farmwatch "  # a line break would end the command
    return "\n".join(line if len(line) <= width or is_copied in line else fill(line) for line in text.split("\n"))
