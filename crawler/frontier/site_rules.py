"""What a site asks of crawlers: its robots.txt and its tdmrep.json, texts beside its row, parsed on demand."""

from __future__ import annotations

from crawler.fetch.jobs import FetchOutcome, FetchResult
from crawler.frontier.rows import SiteRow, robots_key, tdm_key
from crawler.frontier.site_store import SiteStore
from crawler.robots.rules import RobotsRules, RobotsShelf
from crawler.robots.tdmrep import TDM_PATH, TdmRep

_TDM_REST_S = 60.0  # between attempts at a tdmrep.json that cannot be had: time for pages
RESERVED = "well-known:tdm-reservation"  # the opt-out signal of a page whose URL it reserves


class SiteRules:
    """The rules of sites. A `row` that is passed in is changed in place."""

    def __init__(self, store: SiteStore, shelf: RobotsShelf) -> None:
        """Parsed robots.txt files are held on `shelf`."""
        self._store = store
        self._shelf = shelf

    def rules(self, row: SiteRow) -> RobotsRules:
        """Those of the robots.txt at hand; all is allowed where there is none."""

        def text() -> bytes:
            return self._store.state.get(robots_key(row.site)) or b""

        return self._shelf.rules(row.site, row.robots_until, text)

    def keep_robots(self, row: SiteRow, answer: FetchResult, *, has_rules: bool) -> None:
        """Believe a robots.txt, or that there is none, from now on."""
        row.robots_until = answer.started_ms + int(self._store.settings.robots_ttl_s * 1000)
        if has_rules:
            self._store.state.put(robots_key(row.site), answer.body)
        else:
            self._store.state.delete(robots_key(row.site))

    def wants_tdm(self, row: SiteRow, rules: RobotsRules) -> bool:
        """Whether tdmrep.json is to be asked for; what robots.txt keeps us from counts as absent."""
        if not self._store.settings.ask_tdmrep or row.tdm_until > self._store.now_ms:
            return False
        if rules.allows(row.origin + TDM_PATH):
            return True
        self._forget_tdm(row)
        row.tdm_until = row.robots_until
        return False

    def keep_tdm(self, row: SiteRow, answer: FetchResult) -> None:
        """Believe a tdmrep.json, or that there is none, from now on.

        Where it could not be had, what was known of it stays; a failure that may pass is asked again soon, though never
        before there was time for pages. Nothing is reserved by a file that nobody has ever read.
        """
        settings = self._store.settings
        if answer.transient:
            soon_s = max(settings.robots_retry_s, _TDM_REST_S, 3 * row.delay_s)
            row.tdm_until = max(answer.started_ms, row.parked_until) + int(1000 * soon_s)
            return
        if answer.status or not answer.unreachable:
            self._forget_tdm(row)
        row.tdm_until = answer.started_ms + int(settings.robots_ttl_s * 1000)
        if answer.outcome is FetchOutcome.FETCHED and TdmRep.parse(answer.body).rules:
            self._store.state.put(tdm_key(row.site), answer.body)

    def signals(self, row: SiteRow, *urls: str) -> list[str]:
        """The opt-out signals that tdmrep.json sets on any of these URLs of the site."""
        text = self._store.state.get(tdm_key(row.site)) if row.tdm_until else None
        if text is None:
            return []
        reservation = TdmRep.parse(text)
        return [RESERVED] if any(reservation.reserves(url) for url in urls) else []

    def forget(self, row: SiteRow) -> None:
        """Drop the texts; both are asked for anew should the site be opened again."""
        row.robots_until = 0
        self._store.state.delete(robots_key(row.site))
        self._forget_tdm(row)
        row.tdm_until = 0

    def _forget_tdm(self, row: SiteRow) -> None:
        if row.tdm_until:
            self._store.state.delete(tdm_key(row.site))
