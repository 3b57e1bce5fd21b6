"""The method `sprt`: from page flags to a site verdict by Wald's sequential probability ratio test.

Let a page of a human site be flagged with probability p0 and a page of an LLM site with p1 > p0. After n pages with k
flags the logarithm of the likelihood ratio of "LLM site" to "human site" is

    llr = k ln(p1 / p0) + (n - k) ln((1 - p1) / (1 - p0)).

Wald (Sequential Tests of Statistical Hypotheses, Ann. Math. Statist. 16, 1945) decides at the first page with

    llr >= ln((1 - beta) / alpha)   -> llm,
    llr <= ln(beta / (1 - alpha))   -> human.

Among tests with these errors it needs the fewest pages on average (Wald and Wolfowitz 1948).

Pages that were in flight when the site was decided still arrive. They count in the sum, and where it crosses the
*other* bound later, the verdict changes. The errors do not grow if exp(step) of a human page has a mean of at most 1,
whatever came before. Then exp(llr) is a supermartingale, and by Ville's inequality (1939)

    P(exp(llr) >= x at any time at all) <= 1 / x.

So the probability that a human site is ever called llm is at most alpha / (1 - beta); for LLM sites exp(-llr) gives
beta / (1 - alpha). A correction adds no error. A site whose pages are flagged more often than p0 is beyond the
condition. The test ends when the site closes: pages fetched more than `close_after_ms` after the first decision are no
evidence, so a verdict does not move for months. All times are fetch times of pages: a replay gives the same verdict.

Two departures from Wald, both on the careful side:

- Pages of a site resemble each other, and some human sites are flagged twice as often as the mean. So p0 is the share
  of a *bad* human site: for every site below it the bound on alpha holds. `min_pages` looks at no bound before that
  many pages.
- `clip` bounds the ratio of one page, never the sum (a sum clipped at 3 could not reach a bound of 6.9). At moderate
  rates it does not bind (p0 = .30, p1 = .65: +0.77 and -0.69 nats), but where p0 or p1 is near 0 or 1 a single page
  would otherwise decide a site. Then both steps are shrunk by one factor t < 1, so that the larger one is `clip`. By
  Jensen's inequality E ratio^t <= (E ratio)^t = 1 for human pages and likewise for LLM ones, so both errors keep their
  bounds. Cutting only the larger step would break them: p0 = .30, p1 = .98 cut at 3 nats on the clear side has a mean
  of 1.015 for human pages.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import ClassVar, NamedTuple

import msgspec

from scoring.errors import BadParameters, NoSiteTest
from scoring.interface import MethodName, PageScore, SiteVerdict
from scoring.sites.bimodal import is_mixed
from scoring.sites.family import not_as_measured
from scoring.sites.method import NumberedMethod, describe_corrections, describe_too_few
from stream.schema.vocabulary import DECIDED, SiteClass
from stream.text.ranges import MOST

PLACES = 9  # after the point, of the sum and its bounds, nats


class SprtParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the sequential test. The defaults are for Binoculars at its accuracy threshold.

    Measured on 4,035 pages of 69 real sites, 2025 (docs/explanation/sites.md).
    Raises BadParameters if they make no test.
    """

    p0: float = 0.20
    """Share of a human site's pages that are flagged: of a bad one; the mean is .03."""
    p1: float = 0.65
    """Share of an LLM site's pages that are flagged."""
    alpha: float = 0.001
    """A human site is called llm: at most about this often."""
    beta: float = 0.02
    """An LLM site is called human: at most about this often."""
    clip: float = 3.0
    """Largest step of one page, nats."""
    min_pages: int = 1
    """No verdict on fewer usable scores."""
    min_articles: int = 5
    """Fewer usable scores: unclassifiable. 5 flags are the fewest that can decide at the defaults."""

    def __post_init__(self) -> None:
        if not 0 < self.p0 < self.p1 < 1:
            raise BadParameters(f"sprt needs 0 < p0 < p1 < 1, not p0={self.p0} p1={self.p1}")
        if not 0 < self.clip <= 1000:
            raise BadParameters(f"sprt needs a finite clip > 0 and <= 1000 (100 cuts nothing), not clip={self.clip}")
        if not (0 < self.alpha < 0.5 and 0 < self.beta < 0.5):
            raise BadParameters(f"sprt needs alpha and beta in (0, .5), not alpha={self.alpha} beta={self.beta}")
        if not (1 <= self.min_pages <= MOST and 1 <= self.min_articles <= MOST):
            raise BadParameters(f"sprt needs min_pages and min_articles from 1 to {MOST:,}")


class FewestPages(NamedTuple):
    """The fewest usable scores for a verdict: with all of them flagged, and with none."""

    llm: int
    human: int


def wald_bounds(alpha: float, beta: float) -> tuple[float, float]:
    """Lower and upper bound of the sum, nats: for errors alpha (a human site is called llm) and beta (the reverse)."""
    return round(math.log(beta / (1 - alpha)), PLACES), round(math.log((1 - beta) / alpha), PLACES)


def fewest_pages(params: SprtParams) -> FewestPages:
    """The fewest pages with which a test can say llm, and human."""
    lower, upper = wald_bounds(params.alpha, params.beta)
    flagged = min(math.log(params.p1 / params.p0), params.clip)
    clear = min(math.log((1 - params.p0) / (1 - params.p1)), params.clip)
    least = max(params.min_pages, params.min_articles)
    to_llm, to_human = math.ceil(round(upper / flagged, PLACES)), math.ceil(round(-lower / clear, PLACES))
    return FewestPages(max(to_llm, least), max(to_human, least))


# The built-in detector ranks sites well, but its zero point shifts with a site's register: so p0 is wide. How many
# pages of an LLM site it flags varies with generator and length: so p1 is far below the mean of .85, at which too many
# LLM sites were called human. With both, alpha and beta hold for sites whose shares scatter as stated in
# docs/explanation/sites.md.
LITE_NGRAM_PARAMS = SprtParams(p0=0.30, p1=0.65, min_pages=8, min_articles=8)

# Its set `careful` flags 0.3% of human texts and 44% of LLM texts, so it takes more pages.
LITE_CAREFUL_PARAMS = SprtParams(p0=0.08, p1=0.25, min_pages=8, min_articles=8)

# Binoculars at its low-FPR threshold finds 42% of an LLM site's articles, and of some sites 13%: it needs 18 pages on
# average and leaves half of the LLM sites undecided at 20. Use the accuracy threshold for site verdicts.
LOW_FPR_PARAMS = SprtParams(p0=0.08, p1=0.25, min_articles=7)


class _Known(NamedTuple):
    tag_place: int  # of the threshold set's tag in an identity, after the name
    params: Mapping[str, SprtParams]  # by tag, "" without one
    obstacle: Callable[[str], str] = lambda _: ""  # to their use for an identity


_MEASURED = {  # by detector; others have the defaults
    "lite-ngram": _Known(1, {"": LITE_NGRAM_PARAMS, "p0.95": LITE_NGRAM_PARAMS, "careful": LITE_CAREFUL_PARAMS}),
    "binoculars": _Known(3, {"": SprtParams(), "accuracy": SprtParams(), "low-fpr": LOW_FPR_PARAMS}, not_as_measured),
    "fast-detectgpt": _Known(3, {}),
}


def params_for(detector: str) -> SprtParams:
    """The test's parameters for scores of this detector (a name or an identity).

    Raises NoSiteTest for a pair of models, a precision, a length or a threshold for which none were measured.
    """
    name, *parts = detector.split("/")
    if (row := _MEASURED.get(name)) is None:
        return SprtParams()
    params = row.params.get("".join(parts[row.tag_place : row.tag_place + 1]))
    reason = row.obstacle(detector) if params else "at this threshold"
    if params is None or reason:
        raise NoSiteTest(
            f"it was not measured how many pages of a site {detector} flags, so it cannot judge sites ({reason})",
            detector=detector,
        )
    return params


def is_measured(detector: str) -> bool:
    """Whether `params_for` is based on measured sites for this detector (a name or an identity)."""
    return detector.partition("/")[0] in _MEASURED


class SiteTest(NumberedMethod, frozen=True, tag="sprt"):
    """The method `sprt`. Pages without a flag are skipped."""

    name: ClassVar[MethodName] = "sprt"
    params: SprtParams = msgspec.field(name="numbers")
    close_after_ms: int | None = None

    @cached_property
    def bounds(self) -> tuple[float, float]:
        return wald_bounds(self.params.alpha, self.params.beta)

    @cached_property
    def steps(self) -> tuple[float, float]:
        """The nats that a flagged and a clear page add, shrunk by one factor if the larger step exceeds the clip."""
        p0, p1 = self.params.p0, self.params.p1
        flagged, clear = math.log(p1 / p0), math.log((1 - p1) / (1 - p0))
        shrink = min(1.0, self.params.clip / max(flagged, -clear))
        return flagged * shrink, clear * shrink

    def decide(self, pages: Sequence[PageScore]) -> SiteVerdict:
        """Judge a site by its page flags in the order of their fetch.

        The first crossing of a bound decides, but no crossing before min_pages and min_articles pages. Until the site
        closes, a later crossing of the other bound corrects the verdict. The sum is rounded as the bounds are: a sum
        that meets a bound decides on every processor.
        """
        usable = [page for page in pages if page.flag is not None]
        total, llr, flagged, used, closes_at, closed = 0.0, 0.0, 0, 0, math.inf, False
        lower, upper = self.bounds
        if_flagged, if_clear = self.steps
        needed = max(self.params.min_pages, self.params.min_articles)
        decided = SiteVerdict(verdict=SiteClass.UNDECIDED, pages_used=0, flagged=0, llr=0.0, pages=0, method=self.name)
        for page in usable:
            closed = page.fetched_at > closes_at
            if closed:
                break
            used += 1
            flagged += bool(page.flag)
            total += if_flagged if page.flag else if_clear
            llr = round(total, PLACES)
            if lower < llr < upper or used < needed:
                continue
            verdict = SiteClass.LLM if llr >= upper else SiteClass.HUMAN
            if verdict == decided.verdict:
                continue
            first = decided.verdict == SiteClass.UNDECIDED
            if first and self.close_after_ms is not None and page.fetched_at > 0:
                closes_at = page.fetched_at + self.close_after_ms
            decided = SiteVerdict(
                verdict=verdict,
                pages_used=used,
                flagged=flagged,
                llr=llr,
                pages=used,
                method=self.name,
                decided_at=page.fetched_at if first else decided.decided_at,
                before="" if first else decided.verdict,
                before_pages=0 if first else decided.pages_used,
            )
        if decided.verdict == SiteClass.UNDECIDED:
            verdict = SiteClass.UNCLASSIFIABLE if used < self.params.min_articles else SiteClass.UNDECIDED
            decided = msgspec.structs.replace(decided, verdict=verdict, pages_used=used, flagged=flagged, llr=llr)
        return msgspec.structs.replace(decided, pages=used, closed=closed, mixed=is_mixed(usable[:used]))

    def needs(self, llr: float, pages: int) -> int:
        """The further articles that would decide a site if all were flagged, or none where its sum is below 0."""
        lower, upper = self.bounds
        if_flagged, if_clear = self.steps
        more = (upper - llr) / if_flagged if llr > 0 else (lower - llr) / if_clear
        return max(math.ceil(round(more, PLACES)), self.params.min_pages - pages, self.params.min_articles - pages)

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
