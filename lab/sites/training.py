"""`farmwatch train-sites`: page scores of labelled sites -> the numbers of `deciles`.

The errors are measured by leaving one site out: each site is judged by numbers that were learned without it, at 15
pages, drawn with a fixed seed.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from lab.extras import require_sklearn
from scoring.errors import BadTrainingData, TooFewLabels
from scoring.sites.deciles import PAGES, DecileNumbers, HeldOutErrors, deciles
from scoring.sites.family import family

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
    wrong: list[LabelledSite] = []
    draws_wrong = {False: 0, True: 0}  # by whether the site is an LLM site
    for site in used:
        others = [other for other in used if other is not site]
        numbers = _fit_deciles(others, detector, HeldOutErrors(0, 0, 0, 0))
        draws = [rng.sample(site.scores, PAGES) for _ in range(DRAWS)]
        misjudged = sum((numbers.margin(draw) > 0) != site.llm for draw in draws)
        draws_wrong[site.llm] += misjudged
        if misjudged * 2 > DRAWS:
            wrong.append(site)
    llm_wrong = sum(site.llm for site in wrong)
    return TrainingResult(
        deciles=_fit_deciles(used, detector, HeldOutErrors(humans, len(wrong) - llm_wrong, llms, llm_wrong)),
        wrong=[site.name for site in wrong],
        too_small=len(sites) - len(used),
        human_draws_wrong=draws_wrong[False] / (DRAWS * humans),
        llm_draws_wrong=draws_wrong[True] / (DRAWS * llms),
    )


def _fit_deciles(sites: Sequence[LabelledSite], detector: str, left_out: HeldOutErrors) -> DecileNumbers:
    """A linear machine over standardised deciles, both labels weighing the same."""
    require_sklearn()
    from sklearn.svm import SVC

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
