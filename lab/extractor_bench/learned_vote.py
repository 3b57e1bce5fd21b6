"""The learned vote em_13: whether a text node is main text, from the tools that have it.

As many nodes of main text as others are drawn; a classifier learns on 70% of the pages and is tested on 30%.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any

import msgspec
import numpy as np

from lab.extractor_bench.comparison import Comparison

_REPEATS, _LEARNED = 5, 0.7
_MOST_NODES = 50_000
_FEWEST_PAGES = 20


class LearnedVote(msgspec.Struct, frozen=True):
    """The accuracy of a classifier on balanced nodes of other pages: mean and standard deviation of several splits."""

    classifier: str
    members: int
    nodes: int
    accuracy: float
    deviation: float


def learned_votes(pages: Sequence[Comparison]) -> list[LearnedVote]:
    """Logistic regression and a random forest; none without scikit-learn, two tools, or enough pages."""
    members = pages[0].votes.shape[1]
    if find_spec("sklearn") is None or members < 2 or len(pages) < _FEWEST_PAGES:
        return []
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression

    table, labels = np.concatenate([page.votes for page in pages]), np.concatenate([page.belongs for page in pages])
    page_of = np.repeat(np.arange(len(pages)), [len(page.belongs) for page in pages])
    classifiers: dict[str, Callable[[int], Any]] = {
        "logistic regression": lambda seed: LogisticRegression(max_iter=1000, random_state=seed),
        "random forest": lambda seed: RandomForestClassifier(100, min_samples_leaf=5, random_state=seed),
    }
    found = []
    for name, make in classifiers.items():
        right, size = [], 0
        for seed in range(_REPEATS):
            rng = np.random.default_rng(seed)
            each = min(labels.sum(), (~labels).sum(), _MOST_NODES // 2)
            rows = np.concatenate([rng.choice(np.flatnonzero(labels == one), each, False) for one in (True, False)])
            learns = (rng.random(len(pages)) < _LEARNED)[page_of[rows]]
            if learns.all() or len(set(labels[rows[learns]].tolist())) < 2:
                return []
            model = make(seed).fit(table[rows[learns]], labels[rows[learns]])
            right.append(model.score(table[rows[~learns]], labels[rows[~learns]]))
            size = len(rows)
        found.append(LearnedVote(name, members, size, float(np.mean(right)), float(np.std(right))))
    return found
