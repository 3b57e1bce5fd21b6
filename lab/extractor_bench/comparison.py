"""One page: how near the texts of all tools are to its main text, and the texts of ensembles. A job for a process."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from lab.extractor_bench.ensembles import ENSEMBLES, THIRTEEN, Bools, nodes_in
from lab.extractor_bench.metrics import Scores, scores_of


class Comparison(NamedTuple):
    """What was found of a page."""

    scores: dict[str, Scores]  # of each tool, and of each ensemble that can run
    ensembles: dict[str, str]  # the texts of these
    votes: Bools  # [text nodes, members of THIRTEEN that ran]
    belongs: Bools  # whether a text node is main text


def compared(gold: str, leaves: list[str], texts: Mapping[str, str]) -> Comparison:
    """Compare the texts of tools, by name, with a main text. Tools with one text are measured once."""
    members = [name for name in THIRTEEN if name in texts]
    *votes, belongs = nodes_in([*(texts[name] for name in members), gold], leaves)
    by_name = dict(zip(members, votes, strict=True))
    ensembles = {of.name: of.text(leaves, by_name) for of in ENSEMBLES if of.can_run(texts)}
    named = {**texts, **ensembles}
    scores = dict(zip(named, scores_of(gold, list(named.values())), strict=True))
    return Comparison(scores, ensembles, np.array(votes, bool).reshape(len(members), len(leaves)).T, belongs)
