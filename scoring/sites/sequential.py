"""A sequential test of two hypotheses whose verdict may still be corrected for a while: Wald's bounds, Ville's errors.

Each page adds the logarithm of the likelihood ratio of "LLM site" to "human site" to a running sum. Wald (Sequential
Tests of Statistical Hypotheses, Ann. Math. Statist. 16, 1945) decides at the first sum with

    sum >= ln((1 - beta) / alpha)   -> llm,
    sum <= ln(beta / (1 - alpha))   -> human.

Among tests with these errors it needs the fewest pages on average (Wald and Wolfowitz 1948).

Pages that were under way when the site was decided come in all the same. They go on in the sum, and where it crosses
the *other* bound later, the verdict changes. This costs nothing in errors, on one condition: that exp(step) of a human
page has a mean of at most 1, whatever came before. Then exp(sum) is a supermartingale, and by Ville's inequality (1939)

    P(exp(sum) >= x at any time at all) <= 1 / x,

whatever was crossed before, and for good. Hence a human site is ever called llm with probability at most
alpha / (1 - beta); of LLM sites exp(-sum) says the same of beta / (1 - alpha). A correction can only mend.

The whole likelihood ratio has the mean 1. What a method does so that no page says too much must keep to the condition:
`sprt` does for every p0 and p1, by the way in which it shrinks its steps; `gaussian` cuts, and has only measured it.
And it is a condition on the pages: a site whose pages are flagged more often than p0 says is beyond it.

The test ends when the site closes: pages fetched more than `close_after_ms` after the first decision are no evidence,
so that a site's verdict does not move for ever with what is crawled of it in later months. All times are fetch times of
pages, never a clock: the verdict is the same in a replay.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from scoring.errors import BadParameters
from scoring.interface import MethodName, PageScore, SiteVerdict
from scoring.sites.method import afterthoughts
from stream.schema.vocabulary import HUMAN, LLM, UNCLASSIFIABLE, UNDECIDED
from stream.text.ranges import MOST

PLACES = 9  # after the point, of the sum and its bounds, nats


class Bounds(NamedTuple):
    """Where the running sum decides, nats."""

    lower: float
    upper: float


def wald_bounds(alpha: float, beta: float) -> Bounds:
    """Bounds of the sum, rounded: for errors alpha (a human site is called llm) and beta (an LLM site, human)."""
    return Bounds(round(math.log(beta / (1 - alpha)), PLACES), round(math.log((1 - beta) / alpha), PLACES))


def check_errors(alpha: float, beta: float, min_pages: int, min_articles: int, method: str) -> None:
    """What the parameters of every sequential test must be. Raises BadParameters."""
    if not (0 < alpha < 0.5 and 0 < beta < 0.5):
        raise BadParameters(f"{method} needs alpha and beta in (0, .5), not alpha={alpha} beta={beta}")
    if not (1 <= min_pages <= MOST and 1 <= min_articles <= MOST):
        raise BadParameters(f"{method} needs min_pages and min_articles from 1 to {MOST:,}")


class SequentialTest:
    """The walk over the pages. `needed`: no verdict on fewer scores; `min_articles`: fewer make it unclassifiable."""

    def __init__(
        self, name: MethodName, bounds: Bounds, min_pages: int, min_articles: int, close_after_ms: int | None
    ) -> None:
        """Without `close_after_ms` a site never closes; with 0 it closes with the page that decides."""
        self.name = name
        self.bounds = bounds
        self.min_articles = min_articles
        self._needed = max(min_pages, min_articles)
        self._close_after_ms = close_after_ms

    def walk(self, steps: Iterable[tuple[PageScore, float]]) -> SiteVerdict:
        """Judge by pages in the order of their fetch, each with what it adds to the sum.

        The sum is rounded as the bounds are, so that one which meets a bound decides on every processor.
        """
        total, llr, flagged, used, closes_at, closed = 0.0, 0.0, 0, 0, math.inf, False
        lower, upper = self.bounds
        found = SiteVerdict(verdict=UNDECIDED, pages_used=0, flagged=0, llr=0.0, pages=0, method=self.name)
        for page, step in steps:
            closed = page.fetched_at > closes_at
            if closed:
                break
            used += 1
            flagged += bool(page.flag)
            total += step
            llr = round(total, PLACES)
            if lower < llr < upper or used < self._needed:
                continue
            verdict = LLM if llr >= upper else HUMAN
            if verdict == found.verdict:
                continue
            first = found.verdict == UNDECIDED
            if first and self._close_after_ms is not None and page.fetched_at > 0:
                closes_at = page.fetched_at + self._close_after_ms
            found = SiteVerdict(
                verdict=verdict,
                pages_used=used,
                flagged=flagged,
                llr=llr,
                pages=used,
                method=self.name,
                decided_at=page.fetched_at if first else found.decided_at,
                before="" if first else found.verdict,
                before_pages=0 if first else found.pages_used,
            )
        if found.verdict != UNDECIDED:
            return msgspec.structs.replace(found, pages=used, closed=closed)
        verdict = UNCLASSIFIABLE if used < self.min_articles else UNDECIDED
        return SiteVerdict(verdict=verdict, pages_used=used, flagged=flagged, llr=llr, pages=used, method=self.name)

    def evidence(self, verdict: SiteVerdict) -> str:
        """Why a verdict is what it is, in one sentence for people."""
        if verdict.verdict == UNCLASSIFIABLE:
            scores = "score" if verdict.pages == 1 else "scores"
            return f"{verdict.pages} usable {scores}, at least {self.min_articles} are needed"
        seen = f"{verdict.flagged} of the first {verdict.pages_used} of {verdict.pages} scored articles are flagged"
        ratio = f"log-likelihood ratio {verdict.llr:+.2f}"
        lower, upper = self.bounds
        if verdict.verdict == LLM:
            where = f"at or above {upper:.2f}"
        elif verdict.verdict == HUMAN:
            where = f"at or below {lower:.2f}"
        else:
            return f"{seen}; {ratio}, between {lower:.2f} and {upper:.2f}: not decided{afterthoughts(verdict)}"
        return f"{seen}; {ratio}, {where}{afterthoughts(verdict)}"
