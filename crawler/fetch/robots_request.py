"""Requests robots.txt and tdmrep.json of one site outside of a crawl, as politely as the crawl."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from crawler.fetch.fetcher import Fetcher
from crawler.fetch.jobs import FetchResult, Job, RequestKind
from crawler.robots.rules import RobotsAnswer, RobotsRules, meaning_of
from crawler.robots.tdmrep import TDM_PATH
from crawler.settings import CrawlSettings
from crawler.web.urls import host_of, origin_of
from stream.schema.vocabulary import FetchOutcome

NOTHING_ALLOWED = b"User-agent: *\nDisallow: /\n"


@dataclass(slots=True)
class SiteAnswers:
    """The answers of a site. `tdm` is None if it was not requested."""

    robots: FetchResult
    tdm: FetchResult | None = None

    @property
    def meaning(self) -> RobotsAnswer:
        return meaning_of(self.robots.status, complete=self.robots.outcome is FetchOutcome.FETCHED)

    @property
    def rules(self) -> bytes:
        """The text that applies: robots.txt, nothing if there is none, or a text that forbids everything."""
        if self.meaning is RobotsAnswer.RULES:
            return self.robots.body
        return b"" if self.meaning is RobotsAnswer.UNAVAILABLE else NOTHING_ALLOWED


def ask_site(settings: CrawlSettings, url: str, excludes: Callable[[str], bool] = lambda _: False) -> SiteAnswers:
    """Request robots.txt, and tdmrep.json if it is wanted, of the site of a normalised URL.

    No request goes to a host that `excludes` names.

    Raises NoContact and BadCrawlSettings; failures of the site are results.
    """
    return asyncio.run(_ask(settings, url, excludes))


async def _ask(settings: CrawlSettings, url: str, excludes: Callable[[str], bool]) -> SiteAnswers:
    site, origin = host_of(url), origin_of(url)
    async with Fetcher(settings, excludes=excludes) as fetcher:
        job = Job(RequestKind.ROBOTS, site, f"{origin}/robots.txt", settings.delay_s)
        answers = SiteAnswers(await _fetched(fetcher, job))
        rules = RobotsRules(answers.rules, settings.name)
        slow = rules.crawl_delay_s > settings.crawl_delay_cap_s
        if settings.ask_tdmrep and not slow and rules.allows(origin + TDM_PATH):
            delay_s = max(settings.delay_s, rules.crawl_delay_s)
            answers.tdm = await _fetched(fetcher, Job(RequestKind.TDMREP, site, origin + TDM_PATH, delay_s, rules))
        return answers


async def _fetched(fetcher: Fetcher, job: Job) -> FetchResult:
    while True:
        answer = await fetcher.fetch(job)
        if answer.outcome is not FetchOutcome.DEFERRED:
            return answer
        await asyncio.sleep(max(0.1, answer.not_before_ms / 1000 - time.time()))
