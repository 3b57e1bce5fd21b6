"""Errors of the lab on n-gram models, with the operator's action."""

from __future__ import annotations

from stream.text.user_errors import Exit, FarmwatchError


class TooLittleText(FarmwatchError):
    """A corpus is too small for a model. The operator names more text."""

    exit = Exit.PROBLEM
