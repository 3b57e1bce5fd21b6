"""Explains which line of a robots.txt decides on a URL."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from crawler.robots.lines import Line, RobotsRule, group_of, lines_of
from crawler.robots.path_patterns import target_of
from crawler.robots.rules import ALWAYS_ALLOWED, RuleTable


class DecisionReason(enum.StrEnum):
    """What decided."""

    RULE = "rule"
    NO_RULE = "no_rule"  # no rule of our group matches
    NO_GROUP = "no_group"  # no group names us, and none names `*`
    ROBOTS_TXT = "robots_txt"  # itself is always allowed
    UNREACHABLE = "unreachable"  # robots.txt cannot be read
    TOO_COSTLY = "too_costly"  # more wildcards than are tried, or more rules than are kept


@dataclass(frozen=True, slots=True)
class RobotsExplanation:
    """The decision on one URL and its lines; line numbers count from 1, 0 is none."""

    allowed: bool
    why: DecisionReason
    rule: RobotsRule | None
    agents: tuple[Line, ...]  # the lines that name us
    rules: int  # in our group
    crawl_delay_s: float
    crawl_delay_line: int
    sitemaps: tuple[Line, ...]


def explain(text: bytes, agent: str, url: str) -> RobotsExplanation:
    """Decide on a normalised URL under a robots.txt for our product token, and say why."""
    group, sitemaps = group_of(lines_of(text), agent)
    table, target = RuleTable(group.rules), target_of(url)
    found = None
    if target == ALWAYS_ALLOWED:
        why = DecisionReason.ROBOTS_TXT
    elif table.too_costly:
        why = DecisionReason.TOO_COSTLY
    elif (found := table.find(target)) is not None:
        why = DecisionReason.RULE
    else:
        why = DecisionReason.NO_RULE if group.agents else DecisionReason.NO_GROUP
    return RobotsExplanation(
        allowed=found.allow if found else why is not DecisionReason.TOO_COSTLY,
        why=why,
        rule=found,
        agents=tuple(group.agents),
        rules=len(group.rules),
        crawl_delay_s=group.delay_s,
        crawl_delay_line=group.delay_line,
        sitemaps=tuple(sitemaps),
    )


def unread() -> RobotsExplanation:
    """The decision for every URL of a site whose robots.txt is unreachable (RFC 9309 section 2.3.1.4)."""
    return RobotsExplanation(False, DecisionReason.UNREACHABLE, None, (), 0, 0.0, 0, ())
