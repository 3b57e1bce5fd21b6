"""The signs of a content farm that are not in its text: publishing in mass, and earning by ads or affiliate links.

Each is yes, no or unknown (None), and so are both together: Kleene's three-valued logic. None of them is evidence of
who wrote the text.

| sign | yes | no | unknown |
|---|---|---|---|
| mass | enough article URLs in sitemaps | surely fewer, all files read | else |
| monetised | ads on 2 pages, or affiliate links on 2 articles | surely neither | else; below 2 pages; not measured |

Article URLs are the URLs of the sitemaps times the part of the site's pages that are articles. Only some pages were
fetched, so there are surely fewer where the upper end of this part's 95% interval gives fewer.

A row counts the pages with each signal. Two signals on one page each may be on one page or on two, and of the pages
with an affiliate signal some may be no articles: then the sign is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from scoring.estimate.intervals import Z95, wilson
from scoring.estimate.remarks import Remark, RemarkKind
from scoring.rates.canary import is_canary
from stream.schema.projection import projection_of
from stream.schema.records import Record, Sitemaps, SiteState
from stream.schema.signals import SignalKind

ARTICLE_URLS = 100
"""Article URLs of a site that publishes in mass."""

FEWEST_PAGES = 2  # of a site of which anything is known, and with a signal that counts


@projection_of(Sitemaps)
class ListedUrls(Record, frozen=True, kw_only=True):
    """What is needed of `Sitemaps`, in a quarter of their memory."""

    urls: int
    files_read: int
    files_listed: int


def both(*signs: bool | None) -> bool | None:
    """Whether all hold: no if one does not, else unknown if one is."""
    if False in signs:
        return False
    return None if None in signs else True


def either(*signs: bool | None) -> bool | None:
    """Whether one holds: yes if one does, else unknown if one is."""
    if True in signs:
        return True
    return None if None in signs else False


@dataclass(frozen=True, slots=True)
class FarmSigns:
    """What the signs of sites are read from."""

    sitemaps: Mapping[str, ListedUrls | Sitemaps]  # by site
    told: frozenset[str]  # feature epochs with signals: of another one, a page without any says nothing

    @classmethod
    def of(cls, rows: Iterable[SiteState], sitemaps: Mapping[str, ListedUrls | Sitemaps]) -> Self:
        return cls(sitemaps, frozenset(row.epoch for row in rows if any(row.signals.values())))

    def unknown(self, rows: Iterable[SiteState]) -> list[Remark]:
        """The signs that are unknown of all these sites."""
        scored = [row for row in rows if row.scored and not is_canary(row.site)]
        remarks = []
        if all(self.mass(row) is None for row in scored):
            number = sum(row.site in self.sitemaps for row in scored)
            remarks.append(Remark.of(RemarkKind.NO_SITEMAPS, number=number, sites=len(scored)))
        if all(self.monetised(row) is None for row in scored):
            number = sum(any(row.signals.values()) for row in scored)
            remarks.append(Remark.of(RemarkKind.NO_SIGNALS, number=number, sites=len(scored)))
        return remarks

    def farm(self, row: SiteState, least: int = ARTICLE_URLS) -> bool | None:
        """Whether the site is a farm if a language model writes it."""
        return both(self.mass(row, least), self.monetised(row))

    def mass(self, row: SiteState, least: int = ARTICLE_URLS) -> bool | None:
        """Whether its sitemaps list so many article URLs."""
        sitemaps = self.sitemaps.get(row.site)
        if sitemaps is None:
            return None
        articles = self.article_urls(row)
        if articles is not None and articles >= least:
            return True
        most = 1.0 if row.pages < FEWEST_PAGES else wilson(min(row.articles, row.pages), row.pages, Z95).high
        is_whole = sitemaps.files_read >= sitemaps.files_listed
        return False if is_whole and sitemaps.urls * most < least else None

    def monetised(self, row: SiteState) -> bool | None:
        """Whether it earns by ads or affiliate links, by its signals."""
        if row.pages < FEWEST_PAGES or row.epoch not in self.told:
            return None
        others = max(row.pages - row.articles, 0)
        ads = _on_pages(row.signals, SignalKind.ADS)
        return either(_enough(*ads), _enough(*_on_pages(row.signals, SignalKind.AFFILIATE), others))

    def article_urls(self, row: SiteState) -> float | None:
        """The article URLs of its sitemaps: a lower bound where not all files were read."""
        sitemaps = self.sitemaps.get(row.site)
        if sitemaps is None or row.pages < FEWEST_PAGES:
            return None
        return sitemaps.urls * min(row.articles / row.pages, 1.0)

    def articles_a_year(self, row: SiteState, now_ms: int) -> float | None:
        """Those of the last 12 months, by the scored articles with a trusted day of publication; None without one."""
        articles, dated = self.article_urls(row), sum(scored for scored, _ in row.quarters.values())
        if articles is None or not dated:
            return None
        now = datetime.fromtimestamp(now_ms / 1000, UTC)
        newest = 4 * now.year + (now.month - 1) // 3
        gone = ((now.month - 1) % 3 + (now.day - 1) / 31) / 3  # part of this quarter
        recent = 0.0
        for quarter, (scored, _) in row.quarters.items():
            age = newest - (4 * int(quarter[:4]) + int(quarter[6:]) - 1)
            recent += scored if age < 4 else scored * (1 - gone) if age == 4 else 0
        return articles * recent / dated


def _on_pages(signals: Mapping[str, int], kind: SignalKind) -> tuple[int, int]:
    """On how many pages signals of a kind are, at least and at most: those of two names may be the same pages."""
    pages: dict[str, int] = {}
    for signal, number in signals.items():
        of, name, *_ = signal.split(":")  # those with an id are on pages of the name
        if of == kind:
            pages[name] = max(pages.get(name, 0), number)
    return max(pages.values(), default=0), sum(pages.values())


def _enough(least: int, most: int, others: int = 0) -> bool | None:
    """Whether so many pages are enough, of which up to `others` do not count."""
    return True if least - others >= FEWEST_PAGES else None if most >= FEWEST_PAGES else False
