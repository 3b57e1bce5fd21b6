"""`farmwatch train-sites`: page scores of labelled sites -> the numbers of `deciles` and `gaussian`.

The errors are measured by leaving one site out: each site is judged by numbers that were learned without it, at 15
pages, drawn with a fixed seed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from scoring.errors import BadTrainingData, MissingExtra, TooFewLabels
from scoring.interface import PageScore
from scoring.sites.deciles import PAGES, DecileNumbers, HeldOutErrors, deciles
from scoring.sites.family import family
from scoring.sites.gaussian import GaussianParams, GaussianTest, fit_gaussian
from stream.schema.vocabulary import SiteClass

C = 1.0  # of the support vector machine: the limit of one training site's effect on a weight
MIN_SITES = 5  # of each label
DRAWS = 20  # selections of PAGES pages with which a site is tested
_DIGITS = 9  # of the written numbers


class LabelledSite(NamedTuple):
    """Page scores of a site of known origin."""

    name: str
    llm: bool
    scores: list[float]


class TrainingResult(NamedTuple):
    """The learned numbers, and their errors on sites left out."""

    deciles: DecileNumbers
    gaussian: GaussianParams
    gaussian_left_out: HeldOutErrors
    wrong: list[str]  # sites that `deciles` judged wrongly, by most of the draws
    too_small: int  # unused sites with fewer than PAGES scores
    human_draws_wrong: float  # share of all the draws from human sites that `deciles` judged wrongly
    llm_draws_wrong: float


def train_sites(sites: Sequence[LabelledSite], detector: str, seed: int = 0) -> TrainingResult:
    """Learn from labelled sites; the sites with fewer than 15 scores are left out.

    Raises BadTrainingData for fewer than 5 usable sites of a label, MissingExtra without scikit-learn.
    """
    used = [site for site in sites if len(site.scores) >= PAGES]
    humans, llms = sum(not site.llm for site in used), sum(site.llm for site in used)
    if min(humans, llms) < MIN_SITES:
        raise TooFewLabels(
            f"{humans} human and {llms} llm sites with at least {PAGES} scores; at least {MIN_SITES} of each are needed"
        )
    rng = random.Random(seed)  # noqa: S311  # reproducible, no secret
    wrong, gaussian_wrong = [], {False: 0, True: 0}  # by whether the site is an LLM site
    draws_wrong = {False: 0, True: 0}
    for site in used:
        others = [other for other in used if other is not site]
        numbers = _fit_deciles(others, detector, HeldOutErrors(0, 0, 0, 0))
        draws = [rng.sample(site.scores, PAGES) for _ in range(DRAWS)]
        misjudged = sum((numbers.margin(draw) > 0) != site.llm for draw in draws)
        draws_wrong[site.llm] += misjudged
        if misjudged * 2 > DRAWS:
            wrong.append(site)
        test = GaussianTest(_fit_gaussian(others))
        found = [test.decide([PageScore(None, score) for score in draw]).verdict for draw in draws]
        gaussian_wrong[site.llm] += found.count(SiteClass.HUMAN if site.llm else SiteClass.LLM) * 2 > DRAWS
    llm_wrong = sum(site.llm for site in wrong)
    gaussian = _fit_gaussian(used)
    rounded = {name: round(getattr(gaussian, name), 4) for name in ("mu0", "sd0", "mu1", "sd1", "low", "high")}
    return TrainingResult(
        deciles=_fit_deciles(used, detector, HeldOutErrors(humans, len(wrong) - llm_wrong, llms, llm_wrong)),
        gaussian=msgspec.structs.replace(gaussian, **rounded),
        gaussian_left_out=HeldOutErrors(humans, gaussian_wrong[False], llms, gaussian_wrong[True]),
        wrong=[site.name for site in wrong],
        too_small=len(sites) - len(used),
        human_draws_wrong=draws_wrong[False] / (DRAWS * humans),
        llm_draws_wrong=draws_wrong[True] / (DRAWS * llms),
    )


def _fit_deciles(sites: Sequence[LabelledSite], detector: str, left_out: HeldOutErrors) -> DecileNumbers:
    """A linear machine over standardised deciles, both labels weighing the same."""
    try:
        from sklearn.svm import SVC
    except ImportError as error:
        raise MissingExtra("training needs scikit-learn: run `pip install 'farmwatch[train]'`") from error
    rows = np.array([deciles(site.scores) for site in sites])
    centres, scales = rows.mean(axis=0), rows.std(axis=0)
    if not (np.isfinite(rows).all() and (scales > 0).all()):
        raise BadTrainingData("scores are not all finite, or are the same on every site")
    machine = SVC(kernel="linear", C=C, class_weight="balanced")
    machine.fit((rows - centres) / scales, [site.llm for site in sites])

    def rounded(values: Any) -> list[float]:
        return [round(float(value), _DIGITS) for value in values]

    return DecileNumbers(
        format="deciles-1",
        detector=family(detector),
        weights=rounded(machine.coef_[0]),
        centres=rounded(centres),
        scales=rounded(scales),
        offset=rounded(machine.intercept_)[0],
        human_sites=sum(not site.llm for site in sites),
        llm_sites=sum(site.llm for site in sites),
        pages=sum(len(site.scores) for site in sites),
        left_out=left_out,
    )


def _fit_gaussian(sites: Sequence[LabelledSite]) -> GaussianParams:
    human, llm = ([site.scores for site in sites if site.llm == label] for label in (False, True))
    return fit_gaussian(human, llm)
