"""The kinds of segments. Does not import numpy or lxml."""

from __future__ import annotations

from enum import StrEnum


class SegmentKind(StrEnum):
    """What a part of a page is."""

    ARTICLE = "article"  # one continuous text
    POST = "post"  # the first of a thread
    COMMENT = "comment"  # of visitors
    TEASER = "teaser"  # leads to a page of its own
    LIST = "list"  # of links


OF_SITE = (SegmentKind.ARTICLE, SegmentKind.POST, SegmentKind.TEASER)
"""Kinds of text that counts as the site's, unless a ruleset says otherwise."""

LEAST_RECORD_CHARS = 40
