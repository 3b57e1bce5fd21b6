"""Rows of sites in their terms."""

from __future__ import annotations

from stream.schema.records import SiteState

DAY_MS = 86_400_000
FIRST_DAY = 20_457  # a Monday
TERM = 90
VERSIONS = {"ruleset": "default", "digest": "d1", "detector": "fake/1", "method_digest": "m"}


def term_row(site: str, verdict: str, term: int = 0, days: tuple[int, ...] = (), **fields: object) -> SiteState:
    """A row of a term with 10 articles, all flagged or none; days are counted from FIRST_DAY."""
    start = (FIRST_DAY + term * TERM) * DAY_MS
    known = {
        **VERSIONS,
        **dict.fromkeys(("pages", "articles", "scored"), 10),
        "flagged": 10 if verdict == "llm" else 0,
        "term": term,
        "term_start": start,
        "term_end": start + TERM * DAY_MS,
        "days": [FIRST_DAY + day for day in days],
        "sources": ["file"] if days else [],
    }
    return SiteState(id=site, site=site, verdict=verdict, **(known | fields))  # type: ignore[arg-type]


def at_day(day: int) -> int:
    """The beginning of a day after FIRST_DAY, ms."""
    return (FIRST_DAY + day) * DAY_MS
