"""What can go wrong at the front door, and which exit code it becomes."""

from __future__ import annotations

from stream.text.user_errors import Exit, FarmwatchError


class BadCanaries(FarmwatchError):
    """The file of canary pages cannot be used; the message names file and line. The operator mends it, or unsets it."""

    exit = Exit.USAGE


class NoLog(FarmwatchError):
    """The embedded log's folder does not exist. The operator names the right one, or starts `farmwatch up`."""


class NotSettled(FarmwatchError, TimeoutError):
    """The stages did not come to rest in time; the message says what is still open. The operator looks at the logs."""

    exit = Exit.PROBLEM
