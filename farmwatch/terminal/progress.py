"""Progress bars over files that are read, and over things that are counted; only where somebody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from farmwatch.terminal.messages import error_console

Advance = Callable[[int], None]


@contextmanager
def reading(files: Sequence[Path], *, shown: bool) -> Iterator[Advance]:
    """A bar on stderr while `files` are read, if `shown`, stderr is a terminal, and the data goes elsewhere."""
    if not shown or sys.stdout.isatty():
        yield lambda _: None
        return
    is_known = all(file.is_file() for file in files)  # the end of a pipe is not
    with counting(sum(file.stat().st_size for file in files) if is_known else None, "of the input") as advance:
        yield advance


@contextmanager
def counting(total: int | None, what: str) -> Iterator[Advance]:
    """A bar on stderr, if it is a terminal, over `total` things; `advance` gets how many were dealt with since."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TaskProgressColumn(), TextColumn(what), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=error_console(), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.update(task, advance=done)
