"""How well an article classifier does on pages of domains that it did not learn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from scoring.calibration.labelled_scores import auroc
from scoring.statistics.rounding import SCORE_DIGITS, significant
from scoring.statistics.shares import Share, share

RESAMPLES = 1000
_SEED = 0
Floats = NDArray[np.float64]


class HeldOutPage(NamedTuple):
    """A labelled page and what a model that saw no page of its domain says of it."""

    kind: str
    domain: str  # registrable
    probability: float  # of an article; 0 for a page without a main text, which no threshold keeps
    guess: str  # kind; "" for a page without a main text


class Estimate(msgspec.Struct, frozen=True):
    """A number with its 95% interval; None where it is not defined."""

    value: float | None
    low: float | None
    high: float | None


class ThresholdErrors(msgspec.Struct, frozen=True, kw_only=True):
    """What a threshold keeps; intervals are percentiles of a bootstrap over domains."""

    threshold: float
    f1: Estimate
    precision: Estimate
    recall: Estimate
    others_kept: Estimate  # share of the pages that are no articles


class ArticleErrors(msgspec.Struct, frozen=True, kw_only=True):
    """All measures; `confusion` counts pages by label and guess."""

    auroc: float
    thresholds: list[ThresholdErrors]
    kept: dict[str, Share]
    confusion: dict[str, dict[str, int]]


def article_errors(
    pages: Sequence[HeldOutPage], article: str, thresholds: Sequence[float], threshold: float
) -> ArticleErrors:
    """Measure predictions. `kept` is at `threshold`. There are pages of the kind `article`, and others."""
    is_article = np.array([page.kind == article for page in pages])
    probability = np.array([page.probability for page in pages])
    _, domains = np.unique([page.domain for page in pages], return_inverse=True)
    drawn = np.random.default_rng(_SEED).multinomial(
        domains.max() + 1, [1 / (domains.max() + 1)] * (domains.max() + 1), RESAMPLES
    )
    kinds = sorted({page.kind for page in pages})
    guesses = Counter((page.kind, page.guess) for page in pages)
    area = auroc(probability[~is_article], probability[is_article])
    assert area is not None
    return ArticleErrors(
        auroc=significant(area, SCORE_DIGITS),
        thresholds=[_errors(is_article, probability >= at, domains, drawn, at) for at in thresholds],
        kept={kind: kept_share([page for page in pages if page.kind == kind], threshold) for kind in kinds},
        confusion={
            kind: {guess: number for (of, guess), number in sorted(guesses.items()) if of == kind} for kind in kinds
        },
    )


def kept_share(pages: Sequence[HeldOutPage], threshold: float) -> Share:
    """The share of pages that a threshold keeps, with an interval in which whole domains vary."""
    _, domains = np.unique([page.domain for page in pages], return_inverse=True)
    return share(np.array([page.probability >= threshold for page in pages]), domains)


def _errors(
    is_article: NDArray[np.bool_],
    kept: NDArray[np.bool_],
    domains: NDArray[np.intp],
    drawn: NDArray[np.int_],
    at: float,
) -> ThresholdErrors:
    parts = [is_article & kept, ~is_article & kept, is_article, ~is_article]
    counts = np.stack([np.bincount(domains, part) for part in parts], axis=1)
    whole, resampled = counts.sum(axis=0), drawn @ counts

    def estimate(part: Sequence[int], total: Sequence[int], factor: int = 1) -> Estimate:
        """`factor` times the sum of the columns `part` / the sum of the columns `total`."""
        if not whole[list(total)].sum():
            return Estimate(None, None, None)
        below = resampled[:, list(total)].sum(axis=1)
        shares = factor * resampled[:, list(part)].sum(axis=1)[below > 0] / below[below > 0]
        value = factor * whole[list(part)].sum() / whole[list(total)].sum()
        low, high = np.percentile(shares, (2.5, 97.5))
        return Estimate(*(significant(float(number), SCORE_DIGITS) for number in (value, low, high)))

    return ThresholdErrors(
        threshold=at,
        f1=estimate([0], [0, 1, 2], 2),
        precision=estimate([0], [0, 1]),
        recall=estimate([0], [2]),
        others_kept=estimate([1], [3]),
    )
