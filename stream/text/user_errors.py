"""Errors that a user can fix, and the exit codes of commands."""

from __future__ import annotations

import enum


class Exit(enum.IntEnum):
    """Exit codes of every command (docs/reference/cli.md)."""

    OK = 0  # done, nothing wrong
    PROBLEM = 1  # done, and something is wrong: audit broken, doctor FAIL, lines skipped, nothing found, too few labels
    USAGE = 2  # the command line or the configuration is wrong; nothing was done
    UNAVAILABLE = 3  # the log, a file, a model or a port is not there or cannot be used
    INTERRUPTED = 130  # Ctrl-C


class FarmwatchError(Exception):
    """A failure with a message for the operator: what, and where. `exit` is the command's exit code.

    The remedy for its class, which may name commands, is in `farmwatch.terminal.remedies`; `facts` fill it.
    """

    retriable = False
    exit = Exit.UNAVAILABLE

    def __init__(self, *message: object, **facts: object) -> None:
        super().__init__(*message)
        self.facts = facts


class ConfigError(FarmwatchError):
    """The configuration cannot be used; the message names the setting's path. The operator changes that setting."""

    exit = Exit.USAGE


class UsageError(FarmwatchError):
    """The arguments of a command contradict each other. The operator reads `--help`."""

    exit = Exit.USAGE


class MissingExtra(FarmwatchError):
    """Packages of an extra of farmwatch are missing. The operator installs them; the fact `extra` names it."""


class NotFound(FarmwatchError):
    """A named thing is not in the log or on disk. The operator checks the name and the log."""

    exit = Exit.PROBLEM


class LetterRefused(FarmwatchError):
    """A dead letter cannot be settled; nothing was changed. The message says why, and what to do."""

    exit = Exit.PROBLEM


class RunRefused(FarmwatchError):
    """The state of a run does not allow it; nothing was changed. The message says why, and what to do."""

    exit = Exit.PROBLEM
