"""Errors of filters, and the operator's action for each. A page without a text is no error: see `ExtractError`."""

from __future__ import annotations

from stream.text.user_errors import Exit, FarmwatchError


class FiltersError(FarmwatchError):
    """Any failure of the filters. `retriable`: the same batch may succeed when tried again."""


class MissingExtractor(FiltersError):
    """The extractor's package is not installed. The operator runs the `pip install` in the message, or sets another."""


class WorkersUnavailable(FiltersError):
    """Workers repeatedly end before they are ready. The operator reads their stderr and checks the memory."""

    retriable = True


class BadRuleset(FiltersError):
    """A ruleset cannot be read, or has a wrong setting: correct it, or name another ruleset."""

    exit = Exit.USAGE
