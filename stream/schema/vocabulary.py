"""The words of records that several stages share; a record holds the value."""

from __future__ import annotations

import enum


class SiteClass(enum.StrEnum):
    """A site verdict: the values of `SiteState.verdict`."""

    LLM = "llm"
    HUMAN = "human"
    UNDECIDED = "undecided"
    UNCLASSIFIABLE = "unclassifiable"


DECIDED = (SiteClass.LLM, SiteClass.HUMAN)


class PageClass(enum.StrEnum):
    """The verdict of a ruleset on a page: the values of `Verdict.verdict`."""

    ARTICLE = "article"
    SEGMENTS = "segments"  # no article: its segments are scored
    DROPPED = "dropped"


KEPT = (PageClass.ARTICLE, PageClass.SEGMENTS)


class FetchOutcome(enum.StrEnum):
    """How a job of the crawler ended: the values of `Page.outcome`, and DEFERRED: no request was made."""

    FETCHED = "fetched"
    UNCHANGED = "unchanged"  # 304 to a conditional request
    NO_PAGE = "no_page"  # a bot challenge, a login wall, …: the reason says which
    REFUSED = "refused"
    FAILED = "failed"
    DEFERRED = "deferred"


class Truth(enum.StrEnum):
    """The author of a text, page or site, where it is known: of canaries and labels."""

    HUMAN = "human"
    LLM = "llm"
