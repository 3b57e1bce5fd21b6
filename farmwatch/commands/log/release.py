"""The command `release`: a citable bundle of a run."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from farmwatch.commands.options import DEFAULTS, Common
from farmwatch.config.opening import opened
from farmwatch.share.words import text_of
from farmwatch.terminal.messages import message
from stream.log.file_lock import lock_named
from stream.text.user_errors import Exit, FarmwatchError, UsageError
from stream.text.wording import counted, one_line


def release(
    to: Annotated[Path, Parameter(help="A new or empty folder.")],
    /,
    *,
    run: Annotated[str, Parameter(help="Of this run; default: the one that is live.")] = "",
    common: Common = DEFAULTS,
) -> int:
    """Write a citable bundle: sites, verdicts, scores, ruleset, versions, the numbers and how to compute them again.

    It holds addresses and digests, and no text of pages. README.md describes each file; SHA256SUMS has their checksums.
    While stages work, files may differ by a few records: release a restored backup, or stop farmwatch first.
    """
    from farmwatch.archive.release import write_release

    config = common.load().config
    to.parent.mkdir(parents=True, exist_ok=True)
    with _unfinished(to.absolute()) as unfinished:
        with opened(config) as log:
            written = write_release(log, config, unfinished, run, int(time.time() * 1000))
        unfinished.chmod(0o755)
        unfinished.rename(to)
    message(one_line(text_of(written.rate.remarks)))
    if written.left_out:
        message(f"left out: {counted(written.left_out, 'row')} of another ruleset, detector or method, or old canaries")
    message(one_line(f"{counted(written.sites, 'site')} in {to}; complete the authors in {to / 'CITATION.cff'}"))
    return Exit.OK


@contextmanager
def _unfinished(to: Path) -> Iterator[Path]:
    """An empty folder beside `to` for the block, which renames it; no other process fills it meanwhile.

    It is removed after an error. Raises UsageError if `to` is used, FarmwatchError if another process makes it.
    """
    folder = to.with_name(f".{to.name}.unfinished")
    folder.mkdir(mode=0o700, exist_ok=True)
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if not lock_named(held, folder):
            raise FarmwatchError(f"{to}: another release writes it: wait for its end, or name another folder")
        try:
            if to.exists() and (not to.is_dir() or any(to.iterdir())):
                raise UsageError(f"{to} is not empty: name an empty or a new folder")
            for leftover in folder.iterdir():  # of a release that was killed
                leftover.unlink()
            yield folder
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
    finally:
        os.close(held)
