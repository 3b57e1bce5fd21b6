"""Groups of pages by their tags: k-means on tag ratios, or on these in fewer dimensions.

The ratios are the number of each tag by that of all tags, with mean 0 and deviation 1.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from lab.extractor_bench.page_facts import PageFacts

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

TAGS = ("h1", "h2", "h3", "h4", "h5", "h6", "p", "li", "table", "a", "div", "br", "strong", "em")
"""The tags of the published code."""
CLUSTERS, DIMENSIONS = 3, 8
_STARTS = 300  # of k-means, of which the best is kept
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
    """The rows by exact t-SNE, None for pages too few or too many; needs scikit-learn."""
    if not _PERPLEXITY < len(rows) <= _MOST_PAGES:
        return None
    from sklearn.manifold import TSNE

    placed = TSNE(dimensions, perplexity=_PERPLEXITY, method="exact", init="random", random_state=0).fit_transform(rows)
    return np.asarray(placed, np.float64)


def k_means(rows: Floats) -> Ints:
    """The cluster of each row, the largest cluster first; needs scikit-learn."""
    from sklearn.cluster import KMeans

    found = KMeans(min(CLUSTERS, len(np.unique(rows, axis=0))), n_init=_STARTS, random_state=0).fit_predict(rows)
    return np.asarray(np.argsort(np.argsort(-np.bincount(found), kind="stable"))[found])
