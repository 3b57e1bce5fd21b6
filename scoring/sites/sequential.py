"""A sequential test of two hypotheses with a verdict that may be corrected for a while: Wald's bounds, Ville's errors.

Each page adds the logarithm of the likelihood ratio of "LLM site" to "human site" to a running sum. Wald (Sequential
Tests of Statistical Hypotheses, Ann. Math. Statist. 16, 1945) decides at the first sum with

    sum >= ln((1 - beta) / alpha)   -> llm,
    sum <= ln(beta / (1 - alpha))   -> human.

Among tests with these errors it needs the fewest pages on average (Wald and Wolfowitz 1948).

Pages that were in flight when the site was decided still arrive. They count in the sum, and where it crosses the
*other* bound later, the verdict changes. The errors do not grow if exp(step) of a human page has a mean of at most 1,
whatever came before. Then exp(sum) is a supermartingale, and by Ville's inequality (1939)

    P(exp(sum) >= x at any time at all) <= 1 / x.

So the probability that a human site is ever called llm is at most alpha / (1 - beta); for LLM sites exp(-sum) gives
beta / (1 - alpha). A correction adds no error. The full likelihood ratio has the mean 1. `sprt` shrinks its steps and
keeps to the condition for every p0 and p1; `gaussian` cuts them, and has only measured it. A site whose pages are
flagged more often than p0 is beyond the condition.

The test ends when the site closes: pages fetched more than `close_after_ms` after the first decision are no evidence,
so a verdict does not move for months. All times are fetch times of pages: a replay gives the same verdict.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

import msgspec

from scoring.errors import BadParameters
from scoring.interface import PageScore, SiteVerdict
from scoring.sites.bimodal import is_mixed
from scoring.sites.method import NumberedMethod, describe_corrections, describe_too_few
from stream.schema.vocabulary import DECIDED, SiteClass
from stream.text.ranges import MOST

PLACES = 9  # after the point, of the sum and its bounds, nats


class Bounds(NamedTuple):
    """The bounds of the running sum, nats."""

    lower: float
    upper: float


def wald_bounds(alpha: float, beta: float) -> Bounds:
    """Bounds of the sum, rounded: for errors alpha (a human site is called llm) and beta (an LLM site, human)."""
    return Bounds(round(math.log(beta / (1 - alpha)), PLACES), round(math.log((1 - beta) / alpha), PLACES))


def check_errors(alpha: float, beta: float, min_pages: int, min_articles: int, method: str) -> None:
    """Check the parameters that all sequential tests have. Raises BadParameters."""
    if not (0 < alpha < 0.5 and 0 < beta < 0.5):
        raise BadParameters(f"{method} needs alpha and beta in (0, .5), not alpha={alpha} beta={beta}")
    if not (1 <= min_pages <= MOST and 1 <= min_articles <= MOST):
        raise BadParameters(f"{method} needs min_pages and min_articles from 1 to {MOST:,}")


class SequentialMethod(NumberedMethod, frozen=True):
    """A sequential test; a subclass defines the step of a page."""

    params: Any = msgspec.field(name="numbers")
    close_after_ms: int | None = None

    @cached_property
    def bounds(self) -> Bounds:
        return wald_bounds(self.params.alpha, self.params.beta)

    def step_of(self, page: PageScore) -> float | None:
        """The nats that a page adds to the sum; None for a page without the number that the method reads."""
        raise NotImplementedError

    def decide(self, pages: Sequence[PageScore]) -> SiteVerdict:
        """Judge a site by its page scores in the order of their fetch.

        The first crossing of a bound decides, but no crossing before min_pages and min_articles pages. Until the site
        closes, a later crossing of the other bound corrects the verdict. The sum is rounded as the bounds are: a sum
        that meets a bound decides on every processor.
        """
        steps = [(page, step) for page in pages if (step := self.step_of(page)) is not None]
        total, llr, flagged, used, closes_at, closed = 0.0, 0.0, 0, 0, math.inf, False
        lower, upper = self.bounds
        needed = max(self.params.min_pages, self.params.min_articles)
        found = SiteVerdict(verdict=SiteClass.UNDECIDED, pages_used=0, flagged=0, llr=0.0, pages=0, method=self.name)
        for page, step in steps:
            closed = page.fetched_at > closes_at
            if closed:
                break
            used += 1
            flagged += bool(page.flag)
            total += step
            llr = round(total, PLACES)
            if lower < llr < upper or used < needed:
                continue
            verdict = SiteClass.LLM if llr >= upper else SiteClass.HUMAN
            if verdict == found.verdict:
                continue
            first = found.verdict == SiteClass.UNDECIDED
            if first and self.close_after_ms is not None and page.fetched_at > 0:
                closes_at = page.fetched_at + self.close_after_ms
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
        if found.verdict == SiteClass.UNDECIDED:
            verdict = SiteClass.UNCLASSIFIABLE if used < self.params.min_articles else SiteClass.UNDECIDED
            found = msgspec.structs.replace(found, verdict=verdict, pages_used=used, flagged=flagged, llr=llr)
        mixed = is_mixed([page for page, _ in steps[:used]])
        return msgspec.structs.replace(found, pages=used, closed=closed, mixed=mixed)

    def evidence(self, verdict: SiteVerdict) -> str:
        if verdict.verdict == SiteClass.UNCLASSIFIABLE:
            return describe_too_few(verdict.pages, self.params.min_articles)
        lower, upper = self.bounds
        where = f"between {lower:.2f} and {upper:.2f}: not decided"
        if verdict.verdict in DECIDED:
            is_llm = verdict.verdict == SiteClass.LLM
            where = f"at or above {upper:.2f}" if is_llm else f"at or below {lower:.2f}"
        return (
            f"{verdict.flagged} of the first {verdict.pages_used} of {verdict.pages} scored articles are flagged;"
            f" log-likelihood ratio {verdict.llr:+.2f}, {where}{describe_corrections(verdict)}"
        )
