"""Errors of filters, with the operator's action. A page without a text is not an error here: see `ExtractError`."""

from __future__ import annotations

from stream.text.user_errors import Exit, FarmwatchError


class FiltersError(FarmwatchError):
    """Any failure of the filters. `retriable`: the same batch may succeed when tried again."""


class WorkersUnavailable(FiltersError):
    """Workers repeatedly exit before they are ready. The operator reads their stderr and checks the memory."""

    retriable = True


class BadRuleset(FiltersError):
    """A ruleset is unreadable or has a wrong setting: correct it, or name another ruleset."""

    exit = Exit.USAGE


class BadModel(FiltersError):
    """A trained model is unreadable or does not fit this version: train it again, or name another model."""

    exit = Exit.USAGE
