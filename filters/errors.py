"""What can go wrong in filters, and what the operator does about it.

A page that cannot be extracted is no error: its features say so in `extract_error` (see
`filters.extraction.extractor`).
"""

from __future__ import annotations


class FiltersError(Exception):
    """Any failure of the filters. `retriable` tells the stage loop that the same batch may succeed when tried again."""

    retriable = False


class MissingExtractor(FiltersError):
    """The configured extractor needs a package that is not installed. Nothing was extracted.

    The operator runs the `pip install` in the message, or sets another `extractor`.
    """


class WorkersUnavailable(FiltersError):
    """Extraction workers die before they are ready, several times in a row.

    No page was given up for it; the loop tries the batch again. The operator looks at the worker's own message on
    stderr just before (a broken installation, or a memory limit that is too small to start in).
    """

    retriable = True


class BadRuleset(FiltersError):
    """A ruleset has an unknown rule or field, or a wrong or impossible value. Nothing was judged with it.

    The operator corrects the setting in the message, or names another ruleset.
    """
