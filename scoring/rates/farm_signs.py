"""The signs of a content farm that are not in its text: publishing in mass, and earning by ads or affiliate links.

Each is yes, no or unknown (None), and so are both together: Kleene's three-valued logic. None of them is evidence of
who wrote the text.

| sign | yes | no | unknown |
|---|---|---|---|
| mass | enough article URLs in sitemaps | fewer, all files read | no sitemap; fewer, files unread; below 2 pages |
| monetised | an ad signal on 2 pages, or an affiliate one on 2 articles | neither | below 2 pages; not measured |

Article URLs are the URLs of the sitemaps times the part of the site's pages that are articles. A row counts pages with
an affiliate signal, and not articles: where pages that are no articles may be among the 2, the sign is unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Self

from scoring.estimate.remarks import Remark, RemarkKind
from stream.schema.records import Sitemaps, SiteState
from stream.schema.signals import SignalKind, kind_of_signal

ARTICLE_URLS = 100
"""Article URLs of a site that publishes in mass."""

FEWEST_PAGES = 2  # of a site of which anything is known, and with a signal that counts


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

    sitemaps: Mapping[str, Sitemaps]  # by site
    told: frozenset[str]  # feature epochs with signals: of another one, a page without any says nothing

    @classmethod
    def of(cls, rows: Iterable[SiteState], sitemaps: Mapping[str, Sitemaps]) -> Self:
        return cls(sitemaps, frozenset(row.epoch for row in rows if row.signals))

    def unknown(self, rows: Iterable[SiteState]) -> list[Remark]:
        """The signs that are unknown of all these sites."""
        scored = [row for row in rows if row.scored]
        remarks = []
        if all(self.mass(row) is None for row in scored):
            remarks.append(Remark(RemarkKind.NO_SITEMAPS))
        if all(self.monetised(row) is None for row in scored):
            remarks.append(Remark(RemarkKind.NO_SIGNALS))
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
        is_whole = sitemaps.files_read >= sitemaps.files_listed
        fewer = articles is not None or sitemaps.urls < least
        return False if is_whole and fewer else None

    def monetised(self, row: SiteState) -> bool | None:
        """Whether it earns by ads or affiliate links, by its signals."""
        if row.pages < FEWEST_PAGES or row.epoch not in self.told:
            return None
        ads, affiliate = (_most_pages(row.signals, kind) for kind in (SignalKind.ADS, SignalKind.AFFILIATE))
        on_articles = affiliate - max(row.pages - row.articles, 0)  # at least
        tagged = True if on_articles >= FEWEST_PAGES else None if affiliate >= FEWEST_PAGES else False
        return either(ads >= FEWEST_PAGES, tagged)

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


def _most_pages(signals: Mapping[str, int], kind: str) -> int:
    """The pages with the most frequent signal of a kind: of two signals on one page each, the pages may be one."""
    return max((pages for signal, pages in signals.items() if kind_of_signal(signal) == kind), default=0)
