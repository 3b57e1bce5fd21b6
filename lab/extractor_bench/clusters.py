"""Groups of pages by their tags: k-means on tag ratios, or on these in fewer dimensions.

The ratios are the number of each tag by that of all tags, with mean 0 and deviation 1. k-means starts as k-means++
(D. Arthur and S. Vassilvitskii, SODA 2007), and the best of several starts is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from lab.extractor_bench.page_facts import PageFacts

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

TAGS = ("h1", "h2", "h3", "h4", "h5", "h6", "p", "li", "table", "a", "div", "br", "strong", "em")
"""The tags of the published code."""
CLUSTERS, DIMENSIONS = 3, 8
_STARTS, _STEPS = 30, 300
_PERPLEXITY, _MOST_PAGES = 30, 1000  # exact t-SNE takes time with the square of the pages


def tag_ratios(facts: Sequence[PageFacts]) -> Floats:
    """[pages, tags], standardised; a page without tags has ratios of 0 before."""
    counts = np.array([[page.tags.get(tag, 0) for tag in TAGS] for page in facts], np.float64)
    total = np.array([max(1, sum(page.tags.values())) for page in facts])
    ratios = counts / total[:, None]
    deviation = ratios.std(0)
    return np.asarray((ratios - ratios.mean(0)) / np.where(deviation > 0, deviation, 1))


def principal(rows: Floats, dimensions: int = DIMENSIONS) -> Floats:
    """The rows on their first principal components."""
    centred = rows - rows.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    return np.asarray(centred @ axes[:dimensions].T)


def neighbours(rows: Floats, dimensions: int = DIMENSIONS) -> Floats | None:
    """The rows by exact t-SNE; None without scikit-learn, and for pages too few or too many."""
    if find_spec("sklearn") is None or not _PERPLEXITY < len(rows) <= _MOST_PAGES:
        return None
    from sklearn.manifold import TSNE

    placed = TSNE(dimensions, perplexity=_PERPLEXITY, method="exact", init="random", random_state=0).fit_transform(rows)
    return np.asarray(placed, np.float64)


def k_means(rows: Floats, clusters: int = CLUSTERS, seed: int = 0) -> Ints:
    """The cluster of each row, the largest cluster first."""
    rng, best, least = np.random.default_rng(seed), np.zeros(len(rows), np.intp), np.inf
    for _ in range(_STARTS):
        centres = rows[[rng.integers(len(rows))]]
        while len(centres) < min(clusters, len(rows)):
            nearest = _distances(rows, centres).min(1)
            total = nearest.sum()
            chance = nearest / total if total > 0 else None
            centres = np.concatenate([centres, rows[[rng.choice(len(rows), p=chance)]]])
        for _ in range(_STEPS):
            of = _distances(rows, centres).argmin(1)
            means = [rows[of == one].mean(0) if (of == one).any() else centres[one] for one in range(len(centres))]
            moved, centres = not np.allclose(means, centres), np.array(means)
            if not moved:
                break
        distances = _distances(rows, centres)
        if (spread := distances.min(1).sum()) < least - 1e-9:
            least, best = spread, distances.argmin(1)
    sizes = np.bincount(best, minlength=clusters)
    return np.argsort(np.argsort(-sizes, kind="stable"))[best]


def _distances(rows: Floats, centres: Floats) -> Floats:
    return np.asarray(((rows[:, None, :] - centres[None]) ** 2).sum(2))
