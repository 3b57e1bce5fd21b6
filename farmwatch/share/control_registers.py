"""Controls by register: what a detector flags of them by kind of page, length and language."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from farmwatch.share.scored_articles import ScoredArticle
from scoring.rates.canary import is_canary
from scoring.rates.controls import ControlCounts
from stream.schema.control_sites import is_control_site
from stream.schema.page_age import PageAge

ALL = "all"
FEWEST_OF_REGISTER = 5  # control sites of a register: with fewer they show nothing of it


class Register(NamedTuple):
    """The control pages of a register, beside all scored articles of it."""

    age: str  # control | declared
    by: str  # all | kind | length | language
    register: str  # "" = unknown
    articles: int  # scored, whatever their age
    counts: ControlCounts | None


def registers(articles: Iterable[ScoredArticle]) -> list[Register]:
    """A row for each class and register with scored articles, the largest first; canaries are left out.

    Of control sites of archives only the control pages count: they are not of the measured sites.
    """
    every: Counter[tuple[str, str]] = Counter()
    pages: defaultdict[tuple[str, str, str], defaultdict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    for article in articles:
        of_archive = is_control_site(article.site)
        if article.score.flag is None or (is_canary(article.site) and not of_archive):
            continue
        parts = {ALL: ALL, "kind": article.kind, "length": article.length, "language": article.language}
        every.update(dict.fromkeys(parts.items(), 0 if of_archive else 1))
        for part in parts.items() if article.age else ():
            pages[(article.age, *part)][article.site].append(article.score.flag)
    order = (ALL, "kind", "length", "language")
    rows = []
    for age in (PageAge.CONTROL, PageAge.DECLARED):
        for (by, register), number in sorted(every.items(), key=lambda item: (order.index(item[0][0]), -item[1])):
            flags: Mapping[str, list[bool]] = pages.get((age, by, register), {})
            if flags or age == PageAge.CONTROL:
                cells = Counter((len(of_site), sum(of_site)) for of_site in flags.values())
                rows.append(Register(age, by, register, number, ControlCounts.of(cells)))
    return rows


def worst_register(rows: Sequence[Register]) -> Register | None:
    """The register with the highest flagged share of control pages, among those with enough control sites."""
    known = [row for row in rows if row.age == PageAge.CONTROL and row.by != ALL and _sites(row) >= FEWEST_OF_REGISTER]
    return max(known, key=lambda row: row.counts.share if row.counts else 0.0, default=None)


def missing_registers(rows: Sequence[Register]) -> list[Register]:
    """The registers with too few control sites that have a tenth of the scored articles or more."""
    total = sum(row.articles for row in rows if row.age == PageAge.CONTROL and row.by == ALL)
    return [
        row
        for row in rows
        if row.age == PageAge.CONTROL and row.by != ALL and _sites(row) < FEWEST_OF_REGISTER
        if 10 * row.articles >= total
    ]


def _sites(row: Register) -> int:
    return row.counts.sites if row.counts else 0
