"""The method `gaussian`: the sequential test on the scores themselves, as two bell curves, clipped.

Let the score x of a human site's page be normal with mean mu0 and standard deviation sd0, of an LLM site's page with
mu1 and sd1. A page adds

    l(x) = ln(sd0 / sd1) + (x - mu0)^2 / (2 sd0^2) - (x - mu1)^2 / (2 sd1^2)

to the sum of `scoring.sites.sequential`. A score far below the threshold is stronger evidence than one just below it,
so this test needs fewer pages than `sprt`. Three things bound a page's weight:

- scores are cut to [low, high] first: the tails of real scores (lists, quotations, broken extractions) are no bell, and
  the far tail of either side would speak for the wider bell;
- l is cut to +-clip. The bounds need exp(l) of a human page to have a mean of at most 1; cut on both sides that is no
  longer certain, and it is .44 on the real scores;
- the pages of a site resemble each other. With variance w within sites and b between them, r = b / (w + b) of a score's
  variance is the site's own, and the mean of m pages varies as if a page had the variance (w + b)(1 + (m - 1) r): the
  design effect of Kish. `fit_gaussian` takes that variance, for m = 8 pages, as sd^2, and the same for both labels, so
  l is a straight line.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import ClassVar

import msgspec

from scoring.errors import BadParameters, BadTrainingData, NoSiteTest, TooFewLabels
from scoring.interface import MethodName, PageScore
from scoring.sites.family import BINOCULARS_FALCON, not_as_measured
from scoring.sites.sequential import SequentialMethod, check_errors
from stream.text.ranges import MOST

DESIGN_PAGES = 8  # m above: about as many as the test takes to decide


class GaussianParams(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Parameters of the test. The defaults are for Binoculars with Falcon-7B: `fit_gaussian` on 69 real sites, 2025.

    Raises BadParameters if they make no test.
    """

    mu0: float = 0.985
    """Mean score of human sites' pages."""
    sd0: float = 0.075
    """Their standard deviation."""
    mu1: float = 0.860
    """Mean score of LLM sites' pages."""
    sd1: float = 0.075
    """Their standard deviation."""
    low: float = 0.75
    """Scores are cut to [low, high]."""
    high: float = 1.10
    """Scores are cut to [low, high]."""
    alpha: float = 0.001
    """A human site is called llm: at most about this often."""
    beta: float = 0.02
    """An LLM site is called human: at most about this often."""
    clip: float = 1.5
    """Largest step of one page, nats."""
    min_pages: int = 1
    """No verdict on fewer usable scores."""
    min_articles: int = 5
    """Fewer usable scores: unclassifiable. 5 are the fewest that can decide at the defaults."""

    def __post_init__(self) -> None:
        for name in ("mu0", "sd0", "mu1", "sd1", "low", "high", "clip"):
            if not abs(number := getattr(self, name)) <= MOST:  # including NaN
                raise BadParameters(f"gaussian needs finite numbers, not {name}={number}: at most {MOST:,} from 0")
        if self.mu0 == self.mu1 or min(self.sd0, self.sd1) <= 0:
            raise BadParameters("gaussian needs mu0 other than mu1, and sd0 and sd1 above 0")
        if not self.low < self.high or not self.clip > 0:
            raise BadParameters(f"gaussian needs low < high and clip > 0, not {self.low}, {self.high}, {self.clip}")
        check_errors(self.alpha, self.beta, self.min_pages, self.min_articles, "gaussian")


def gaussian_params_for(detector: str) -> GaussianParams:
    """The parameters that were measured for scores of this detector. Raises NoSiteTest if there are none."""
    if reason := not_as_measured(detector):
        raise NoSiteTest(
            f"the method gaussian has no numbers for {detector}, only for {BINOCULARS_FALCON} ({reason}): run"
            " `farmwatch train-sites` on scores of labelled sites and put what it prints into [tally.gaussian],"
            ' or set tally.method = "sprt"'
        )
    return GaussianParams()


class GaussianTest(SequentialMethod, frozen=True, tag="gaussian"):
    """The method `gaussian`. Pages without a score are skipped."""

    name: ClassVar[MethodName] = "gaussian"
    params: GaussianParams = msgspec.field(name="numbers")

    def step_of(self, page: PageScore) -> float | None:
        if page.score is None:
            return None
        params = self.params
        x = min(max(page.score, params.low), params.high)
        human, llm = (x - params.mu0) / params.sd0, (x - params.mu1) / params.sd1
        ratio = math.log(params.sd0 / params.sd1) + (human * human - llm * llm) / 2
        return min(max(ratio, -params.clip), params.clip)


def fit_gaussian(human: Sequence[Sequence[float]], llm: Sequence[Sequence[float]]) -> GaussianParams:
    """Parameters from the page scores of labelled sites, with equal weights of sites.

    `low` and `high` lie 1.5 sd beyond the outer means. Raises BadTrainingData for fewer than two sites of a label with
    two pages each.
    """
    means, variances = [], []
    for label, sites in (("human", human), ("llm", llm)):
        used = [site for site in sites if len(site) > 1]
        if len(used) < 2:
            raise TooFewLabels(f"{len(used)} {label} sites with at least 2 scores, at least 2 are needed")
        centres = [statistics.fmean(site) for site in used]
        within = statistics.fmean(statistics.pvariance(site) for site in used)
        between = statistics.pvariance(centres)
        total = within + between
        if not total > 0:
            raise BadTrainingData(f"all scores of the {label} sites are the same")
        means.append(statistics.fmean(centres))
        variances.append(total + (DESIGN_PAGES - 1) * between)
    sd = math.sqrt(statistics.fmean(variances))
    ends = sorted(means)
    if not ends[1] > ends[0]:
        raise BadTrainingData("human and llm sites have the same mean score")
    return GaussianParams(mu0=means[0], sd0=sd, mu1=means[1], sd1=sd, low=ends[0] - 1.5 * sd, high=ends[1] + 1.5 * sd)
