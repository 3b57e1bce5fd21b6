"""Progress bars over files that are read, and over things that are counted; only where somebody watches."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from farmwatch.terminal.messages import error_console

Advance = Callable[[int], None]  # told the bytes of each line, or how many things were dealt with


@contextmanager
def reading(files: Sequence[Path], *, shown: bool) -> Iterator[Advance]:
    """A bar on stderr while `files` are read, if `shown`, stderr is a terminal, and the data goes elsewhere."""
    if not (shown and sys.stderr.isatty() and not sys.stdout.isatty()):
        yield lambda _: None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.fields[lines]} lines, {task.fields[rate]}/s"),
        BarColumn(),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=error_console(), transient=True) as bar:
        task = bar.add_task("", total=_total(files), lines=0, rate="-")
        lines = 0

        def advance(size_bytes: int) -> None:
            nonlocal lines
            lines += 1
            elapsed_s = bar.tasks[task].elapsed or 0.0
            rate = f"{lines / elapsed_s:.1f}" if elapsed_s else "-"
            bar.update(task, advance=size_bytes, lines=lines, rate=rate)

        yield advance


@contextmanager
def counting(total: int, what: str) -> Iterator[Advance]:
    """A bar on stderr, if it is a terminal, over `total` things; told how many were dealt with since."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=error_console(), transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.update(task, advance=done)


def _total(files: Sequence[Path]) -> int | None:
    """Bytes of all files; None where one of them is a pipe, whose end nobody knows."""
    if all(file.is_file() for file in files):
        return sum(file.stat().st_size for file in files)
    return None
