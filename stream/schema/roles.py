"""The roles of processes."""

from __future__ import annotations

import enum


class Role(enum.StrEnum):
    """The work of a process. Their order is the order of the data, and of the metrics ports."""

    CRAWL = "crawl"
    MEASURE = "measure"
    JUDGE = "judge"
    SCORE = "score"
    TALLY = "tally"
