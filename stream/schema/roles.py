"""The roles of processes."""

from __future__ import annotations

import enum


class Role(enum.StrEnum):
    """The work of a process, in the order of the metrics ports."""

    CRAWL = "crawl"
    MEASURE = "measure"
    JUDGE = "judge"
    SCORE = "score"
    TALLY = "tally"
    CONSOLE = "console"


# They process records, each in a group of the log, in the order of the data. The console only shows what they do
STAGES = (Role.CRAWL, Role.MEASURE, Role.JUDGE, Role.SCORE, Role.TALLY)
