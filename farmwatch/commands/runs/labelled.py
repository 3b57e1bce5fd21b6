"""The labelled pages that a command is given: those of a folder, or those of a log that a file of labels names."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
from cyclopts import Parameter

from farmwatch.commands.options import Common
from farmwatch.config.opening import opened
from farmwatch.labels.fetches import LabelledFetches
from farmwatch.labels.labelled_pages import LabelledPage, LabelledPages
from farmwatch.terminal.jsonl import STDIN
from farmwatch.terminal.messages import Advance
from stream.text.user_errors import UsageError

Labels = Annotated[
    Path,
    Parameter(
        help="Folder with <source>/gold.jsonl and <source>/html/<id>.html.zst; or a file of `farmwatch review label`."
    ),
]


@contextmanager
def labelled(
    labels: Path, source: list[str], common: Common, jobs: int
) -> Iterator[tuple[LabelledPages | LabelledFetches, Callable[[Advance], Iterator[LabelledPage]]]]:
    """The labelled pages of a folder or a file, and an iterator over them with their features."""
    config = common.load().config
    if not labels.is_file() and str(labels) not in STDIN:
        pages = LabelledPages(labels, source)
        settings = msgspec.structs.replace(config.measure, workers=jobs)
        yield pages, lambda advance: pages.measured(settings, advance)
        return
    if source:
        raise UsageError(f"--source is for a folder of labelled pages, and {labels} is a file")
    fetches = LabelledFetches(labels)
    with opened(config) as log:
        yield fetches, lambda advance: fetches.measured(log, advance)
