"""`farmwatch train-sites`: page scores of labelled sites -> the numbers of `deciles` and `gaussian`, measured honestly.

Every site is judged by numbers that were learned without it (leave one site out), at 15 pages: a site that taught the
machine is no test of it. The pages are drawn with a fixed seed. scikit-learn is imported here only, when it trains.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from scoring.errors import BadTrainingData, MissingExtra, TooFewLabels
from scoring.interface import PageScore
from scoring.sites.deciles import FORMAT, PAGES, DecileNumbers, HeldOutErrors, deciles
from scoring.sites.family import family
from scoring.sites.gaussian import GaussianParams, GaussianTest, fit_gaussian
from stream.schema.vocabulary import DECIDED, HUMAN, LLM

C = 1.0  # of the support vector machine: one training site may pull a weight by no more
MIN_SITES = 5  # of each label
DRAWS = 20  # selections of PAGES pages a site is tested by
_DIGITS = 9  # of the numbers written


class LabelledSite(NamedTuple):
    """Page scores of a site of which it is known who wrote it."""

    name: str
    llm: bool
    scores: list[float]


class Trained(NamedTuple):
    """What training gives, and how often the gaussian test was wrong of sites it had not seen."""

    deciles: DecileNumbers
    gaussian: GaussianParams
    gaussian_left_out: HeldOutErrors
    wrong: list[str]  # sites that `deciles` judged wrongly, by most of the draws
    too_small: int  # sites with fewer than PAGES scores: not used
    human_draws_wrong: float  # share of all the draws from human sites that `deciles` judged wrongly
    llm_draws_wrong: float


def train_sites(sites: Sequence[LabelledSite], detector: str, seed: int = 0) -> Trained:
    """Learn from labelled sites; the sites with fewer than 15 scores are left out.

    Raises BadTrainingData for fewer than 5 usable sites of a label, MissingExtra without scikit-learn.
    """
    used = [site for site in sites if len(site.scores) >= PAGES]
    count = {llm: sum(site.llm == llm for site in used) for llm in (False, True)}
    if min(count.values()) < MIN_SITES:
        raise TooFewLabels(
            f"{count[False]} human and {count[True]} llm sites with at least {PAGES} scores;"
            f" at least {MIN_SITES} of each are needed"
        )
    rows = np.array([deciles(site.scores) for site in used])
    labels = np.array([site.llm for site in used])
    whole = _fit(rows, labels)
    rng = random.Random(seed)  # noqa: S311  # reproducible, no secret
    wrong, gaussian_wrong = [], {LLM: 0, HUMAN: 0}
    draws_wrong = {False: 0, True: 0}
    for place, site in enumerate(used):
        others = np.arange(len(used)) != place
        fitted = _fit(rows[others], labels[others])
        numbers = _numbers(fitted, detector, used, HeldOutErrors(0, 0, 0, 0))
        draws = [rng.sample(site.scores, PAGES) for _ in range(DRAWS)]
        misjudged = sum((numbers.margin(draw) > 0) != site.llm for draw in draws)
        draws_wrong[site.llm] += misjudged
        if misjudged * 2 > DRAWS:
            wrong.append(site.name)
        test = GaussianTest(_fit_gaussian([other for other in used if other is not site]))
        found = [test.decide([PageScore(None, score) for score in draw]).verdict for draw in draws]
        truth = LLM if site.llm else HUMAN
        if sum(verdict in DECIDED and verdict != truth for verdict in found) * 2 > DRAWS:
            gaussian_wrong[truth] += 1
    is_llm = {site.name: site.llm for site in used}
    llm_wrong = sum(is_llm[name] for name in wrong)
    left_out = HeldOutErrors(count[False], len(wrong) - llm_wrong, count[True], llm_wrong)
    return Trained(
        deciles=_numbers(whole, detector, used, left_out),
        gaussian=_rounded(_fit_gaussian(used)),
        gaussian_left_out=HeldOutErrors(count[False], gaussian_wrong[HUMAN], count[True], gaussian_wrong[LLM]),
        wrong=wrong,
        too_small=len(sites) - len(used),
        human_draws_wrong=draws_wrong[False] / (DRAWS * count[False]),
        llm_draws_wrong=draws_wrong[True] / (DRAWS * count[True]),
    )


class _Fitted(NamedTuple):
    weights: Any  # numpy float64 [9]
    centres: Any
    scales: Any
    offset: float


def _fit(rows: Any, labels: Any) -> _Fitted:
    """A linear machine over standardised deciles, both labels weighing the same."""
    try:
        from sklearn.svm import SVC
    except ImportError as error:
        raise MissingExtra("training needs scikit-learn: run `pip install 'farmwatch[train]'`") from error
    centres, scales = rows.mean(axis=0), rows.std(axis=0)
    if not (np.isfinite(rows).all() and (scales > 0).all()):
        raise BadTrainingData("scores are not all finite, or are the same on every site")
    machine = SVC(kernel="linear", C=C, class_weight="balanced").fit((rows - centres) / scales, labels)
    return _Fitted(machine.coef_[0], centres, scales, float(machine.intercept_[0]))


def _numbers(fitted: _Fitted, detector: str, sites: Sequence[LabelledSite], left_out: HeldOutErrors) -> DecileNumbers:
    return DecileNumbers(
        format=FORMAT,
        detector=family(detector),
        weights=[round(float(value), _DIGITS) for value in fitted.weights],
        centres=[round(float(value), _DIGITS) for value in fitted.centres],
        scales=[round(float(value), _DIGITS) for value in fitted.scales],
        offset=round(fitted.offset, _DIGITS),
        human_sites=sum(not site.llm for site in sites),
        llm_sites=sum(site.llm for site in sites),
        pages=sum(len(site.scores) for site in sites),
        left_out=left_out,
    )


def _fit_gaussian(sites: Sequence[LabelledSite]) -> GaussianParams:
    human, llm = ([site.scores for site in sites if site.llm == label] for label in (False, True))
    return fit_gaussian(human, llm)


def _rounded(params: GaussianParams) -> GaussianParams:
    numbers = {name: round(getattr(params, name), 4) for name in ("mu0", "sd0", "mu1", "sd1", "low", "high")}
    return msgspec.structs.replace(params, **numbers)
