"""`farmwatch` and `python -m farmwatch`."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from cyclopts import CycloptsError

from farmwatch.terminal.messages import OUT_OF_PROCESSES, message
from stream.text.user_errors import Exit, FarmwatchError
from stream.text.wording import one_line


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code. An error with a message for the operator becomes one line on stderr.

    If the reader of a pipe stops early, as `head` does, the exit code is 0, or that of the finished command.
    """
    code: int = Exit.OK
    try:
        code = _run(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)  # the flush at exit would fail again
        for stream in (sys.stdout, sys.stderr):
            os.dup2(nowhere, stream.fileno())
    return code


def _run(arguments: Sequence[str]) -> int:
    from farmwatch.commands.cli import in_words, run_command

    try:
        # a lone hyphen would be taken for an option; `farmwatch.terminal.jsonl.binary_input` knows both names
        code = run_command(["/dev/stdin" if argument == "-" else argument for argument in arguments])
        return Exit.OK if code is None else int(code)
    except CycloptsError as error:
        message(f"farmwatch: {one_line(in_words(error))}")
        return Exit.USAGE
    except FarmwatchError as error:
        from farmwatch.terminal.remedies import in_full

        message(f"farmwatch: {in_full(error)}")
        return error.exit
    except (RuntimeError, OSError) as error:
        is_refused_fork = isinstance(error, BlockingIOError) and error.strerror == os.strerror(errno.EAGAIN)
        if is_refused_fork or str(error) == "can't start new thread":
            message(f"farmwatch: {OUT_OF_PROCESSES}")
            return Exit.UNAVAILABLE
        if isinstance(error, RuntimeError) or error.filename is None or isinstance(error, BrokenPipeError):
            raise
        message(f"farmwatch: {error.filename}: {error.strerror}")
        return Exit.UNAVAILABLE


def main() -> NoReturn:
    """Entry point of the program."""
    # for a closed stream (`2>&-`) Python has None, and the next opened file would get its descriptor and output
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)  # it gets the lowest free descriptor
            os.set_inheritable(nowhere, True)  # for child processes
            setattr(sys, name, os.fdopen(nowhere, mode))
    os.environ.setdefault("PYTHONSAFEPATH", "1")  # processes that start from here import nothing of the working folder
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
