"""Groups of pages: by source, complexity, kind, and cluster of tags."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np
from numpy.typing import NDArray

from lab.extractor_bench.clusters import k_means, neighbours, principal, tag_ratios
from lab.extractor_bench.gold_errors import words_of
from lab.extractor_bench.page_facts import PageFacts
from lab.extractor_bench.pages import BenchPage

QUARTILES = (25, 50, 75)
NO_KIND = "no kind"
Groups = dict[str, list[str]]
"""Grouping -> the group of each page."""


def complexities(pages: Sequence[BenchPage], facts: Sequence[PageFacts]) -> NDArray[np.float64]:
    """100 x words of the main text / words of the page, at most 100; low = much of the page is something else."""
    shares = []
    for page, own in zip(pages, facts, strict=True):
        there = len(words_of("".join(own.leaves)))
        shares.append(min(100.0, 100 * len(words_of(page.gold)) / there) if there else 100.0)
    return np.array(shares)


def groups_of(pages: Sequence[BenchPage], facts: Sequence[PageFacts], complexity: NDArray[np.float64]) -> Groups:
    """The groups of the pages. The complex and the easy pages are a quarter each; clusters need scikit-learn."""
    low, _, high = np.percentile(complexity, QUARTILES)
    tables = dict[str, NDArray[np.float64] | None]()
    if find_spec("sklearn"):
        ratios = tag_ratios(facts)
        tables = {"tags": ratios, "tags-pca": principal(ratios), "tags-tsne": neighbours(ratios)}
    return {
        "source": [page.label.source for page in pages],
        "complexity": ["complex" if c <= low else "easy" if c >= high else "mid" for c in complexity.tolist()],
        "kind": [page.label.page_type or NO_KIND for page in pages],
        **{
            name: [f"cluster {number + 1}" for number in k_means(table).tolist()]
            for name, table in tables.items()
            if table is not None
        },
    }
