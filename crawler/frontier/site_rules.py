"""The robots.txt, tdmrep.json and ads.txt of a site. The first two are stored next to its row, parsed on demand."""

from __future__ import annotations

from dataclasses import dataclass

from crawler.fetch.jobs import FetchResult
from crawler.frontier.rows import Ask, SiteRow, robots_key, tdm_key
from crawler.frontier.site_store import SiteStore
from crawler.robots.preferences import IN_HEADERS, capped
from crawler.robots.rules import RobotsRules, RobotsShelf
from crawler.robots.tdmrep import TDM_PATH, TdmRep
from crawler.web.ads_txt import ADS_TXT_PATH, StatedOwner, loads_google_ads
from stream.schema.records import AdsTxt
from stream.schema.topics import ADS_TXT
from stream.schema.vocabulary import FetchOutcome

_TDM_REST_S = 60.0  # between attempts at an unavailable tdmrep.json: time for pages
RESERVED = "well-known:tdm-reservation"  # opt-out signal of a reserved URL


@dataclass(slots=True)
class SiteRules:
    """The rules of sites. Methods change `row` in place."""

    store: SiteStore
    shelf: RobotsShelf

    def rules(self, row: SiteRow) -> RobotsRules:
        """The rules of the stored robots.txt; without one, everything is allowed."""
        return self.shelf.rules(row.site, row.robots_until, lambda: self.store.state.get(robots_key(row.site)) or b"")

    def keep_robots(self, row: SiteRow, answer: FetchResult, *, has_rules: bool) -> None:
        """Store a robots.txt, or its absence, and take the delay that it asks for, whether or not it is obeyed."""
        settings = self.store.settings
        row.robots_until = answer.started_ms + int(settings.robots_ttl_s * 1000)
        if has_rules:
            self.store.state.put(robots_key(row.site), answer.body)
        else:
            self.store.state.delete(robots_key(row.site))
        rules = self.rules(row)
        row.delay_s = max(settings.delay_s, rules.crawl_delay_s)
        row.preferences = capped(
            [*rules.preferences(f"{row.origin}/"), *(each for each in row.preferences if each.startswith(IN_HEADERS))]
        )
        row.robots_until = answer.started_ms + int(settings.robots_life_s(row.delay_s) * 1000)

    def wants_tdm(self, row: SiteRow, rules: RobotsRules) -> bool:
        """Whether to request tdmrep.json; if robots.txt forbids that, the file counts as absent."""
        if not self.store.settings.ask_tdmrep or row.tdm_until > self.store.now_ms:
            return False
        if rules.allows(row.origin + TDM_PATH):
            return True
        self._forget_tdm(row)
        row.tdm_until = row.robots_until
        return False

    def keep_tdm(self, row: SiteRow, answer: FetchResult) -> None:
        """Store a tdmrep.json, or its absence.

        After a failure the stored text stays; a transient failure is retried soon, but leaves time for pages in
        between.
        """
        settings = self.store.settings
        if answer.transient:
            soon_s = max(settings.robots_retry_s, _TDM_REST_S, 3 * row.delay_s)
            row.tdm_until = max(answer.started_ms, row.parked_until) + int(1000 * soon_s)
            return
        if answer.status or not answer.unreachable:
            self._forget_tdm(row)
        row.tdm_until = answer.started_ms + int(settings.robots_life_s(row.delay_s) * 1000)
        if answer.outcome is FetchOutcome.FETCHED and TdmRep.parse(answer.body).rules:
            self.store.state.put(tdm_key(row.site), answer.body)

    def note_ads(self, row: SiteRow, body: bytes) -> None:
        """Have ads.txt requested, once a term, if a page loads ads."""
        if self.store.settings.ask_ads_txt and row.ads_txt is Ask.NOT_YET and loads_google_ads(body):
            row.ads_txt = Ask.NOW

    def wants_ads_txt(self, row: SiteRow, rules: RobotsRules) -> bool:
        """Whether to request ads.txt; if robots.txt forbids that, it is not requested in this term."""
        if not self.store.wants_ads_txt(row):
            return False
        if rules.allows(row.origin + ADS_TXT_PATH):
            return True
        row.ads_txt = Ask.FORBIDDEN
        return False

    def keep_ads_txt(self, row: SiteRow, answer: FetchResult) -> None:
        """Emit what an ads.txt states, or that there is none. Text of another type is none (ads.txt 1.1, section 3.1).

        A failure that may pass leaves what an earlier term found.
        """
        row.ads_txt = Ask.DONE
        if answer.transient or not answer.status:
            return
        is_text = answer.outcome is FetchOutcome.FETCHED and answer.content_type in ("", "text/plain")
        stated = StatedOwner.read(answer.body) if is_text else StatedOwner()
        self.store.emit(
            ADS_TXT,
            AdsTxt(
                id=row.site,
                site=row.site,
                owner_domain=stated.domain,
                google_ids=list(stated.google_ids),
                read_at=answer.started_ms,
            ),
        )

    def signals(self, row: SiteRow, *urls: str) -> list[str]:
        """The signals that tdmrep.json and robots.txt set on any of these URLs of the site."""
        rules = self.rules(row) if row.robots_until else None
        stated = [signal for url in dict.fromkeys(urls) for signal in rules.preferences(url)] if rules else []
        text = self.store.state.get(tdm_key(row.site)) if row.tdm_until else None
        reservation = TdmRep.parse(text) if text is not None else None
        is_reserved = reservation is not None and any(reservation.reserves(url) for url in urls)
        return [*([RESERVED] if is_reserved else []), *capped(stated)]

    def _forget_tdm(self, row: SiteRow) -> None:
        if row.tdm_until:
            self.store.state.delete(tdm_key(row.site))
