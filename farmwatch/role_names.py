"""The roles by name, and which port each serves its metrics on."""

from __future__ import annotations

import enum


class Role(enum.StrEnum):
    """What a process does; their order is the order of the data, and of the metrics ports."""

    CRAWL = "crawl"
    MEASURE = "measure"
    JUDGE = "judge"
    SCORE = "score"
    TALLY = "tally"


def metrics_port(first: int, role: Role) -> int:
    """Port of a role's metrics: the first one plus the role's place; 0 stays 0 (any free port)."""
    return first + list(Role).index(role) if first else 0
