"""Errors of filters, and what the operator does about them. A page without a text is none: see `ExtractError`."""

from __future__ import annotations

from stream.text.user_errors import Exit, FarmwatchError


class FiltersError(FarmwatchError):
    """Any failure of the filters. `retriable`: the same batch may succeed when tried again."""


class MissingExtractor(FiltersError):
    """The configured extractor's package is not installed: run the `pip install` in the message, or set another."""


class WorkersUnavailable(FiltersError):
    """Workers die before they are ready, several times in a row: see their message on stderr; is memory enough?"""

    retriable = True


class BadRuleset(FiltersError):
    """A ruleset cannot be read, or has a wrong setting: correct it, or name another ruleset."""

    exit = Exit.USAGE
