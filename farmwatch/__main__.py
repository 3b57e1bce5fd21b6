"""`farmwatch` and `python -m farmwatch`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import NoReturn, TextIO

from cyclopts import CycloptsError

from farmwatch.terminal.messages import message
from stream.text.user_errors import Exit, FarmwatchError


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code; failures become one line on stderr.

    A reader of a pipe who has enough, as `head` has, ends the command with 0; one that was through keeps its code.
    """
    code: int = Exit.OK
    try:
        code = _run(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        _lead_nowhere(sys.stdout, sys.stderr)
    return code


def _lead_nowhere(*streams: TextIO) -> None:
    """What they still hold must not fail once more at the end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in streams:
        os.dup2(nowhere, stream.fileno())


def _run(arguments: Sequence[str]) -> int:
    from farmwatch.commands.cli import run_command

    try:
        # a lone hyphen would be taken for an option; `farmwatch.terminal.jsonl.binary_input` knows both names
        code = run_command(["/dev/stdin" if argument == "-" else argument for argument in arguments])
        return Exit.OK if code is None else int(code)
    except CycloptsError:
        return Exit.USAGE  # cyclopts has said what is wrong
    except FarmwatchError as error:
        return _failed(error, error.exit)
    except (KeyboardInterrupt, BrokenPipeError):
        raise
    except OSError as error:
        if error.filename is None:
            raise
        return _failed(f"{error.filename}: {error.strerror}", Exit.UNAVAILABLE)
    except Exception as error:
        known = _known(error)
        if known is None:
            raise
        return _failed(error, known)


def _failed(error: Exception | str, code: Exit) -> Exit:
    """Say it, where anybody reads it and there is room for it."""
    try:
        message(f"farmwatch: {error}")
    except OSError:
        _lead_nowhere(sys.stderr)
    return code


def main() -> NoReturn:
    """Entry point of the program."""
    _open_what_is_closed()
    sys.exit(run(sys.argv[1:]))


def _open_what_is_closed() -> None:
    """Let a standard stream that was closed before, as `2>&-` does, lead nowhere; Python has None in its place.

    The next file that is opened would get its descriptor, and what is written to the stream: so do this first.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):  # as the lowest free descriptor is given out
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(nowhere, True)  # for processes that are started by this one
            setattr(sys, name, os.fdopen(nowhere, mode))


def _known(error: Exception) -> Exit | None:
    """Exit code of an error that a package raises on purpose, with a message for the operator; None for a bug."""
    from crawler.errors import ArchiveUnwritable, CrawlError, OldFrontier
    from filters.errors import BadRuleset, FiltersError
    from scoring.errors import BadParameters, ScoringError, TooFewLabels, UnknownDetector, UnknownThresholds
    from stream.log.errors import StreamError

    if isinstance(error, OldFrontier | ArchiveUnwritable):
        return Exit.UNAVAILABLE
    named_wrong = BadRuleset | UnknownDetector | UnknownThresholds
    if isinstance(error, CrawlError | BadParameters | named_wrong):
        return Exit.USAGE
    if isinstance(error, TooFewLabels):
        return Exit.PROBLEM
    if isinstance(error, FiltersError | ScoringError | StreamError):
        return Exit.UNAVAILABLE
    return None


if __name__ == "__main__":
    main()
