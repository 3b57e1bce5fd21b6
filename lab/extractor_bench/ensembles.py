"""Ensembles: the text nodes of a page that at least k of n tools have in their text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.extractor_bench.gold_errors import words_of
from lab.extractor_bench.page_facts import PageFacts
from lab.extractor_bench.runs import ToolRun

FIVE = ("resiliparse", "bte", "trafilatura", "readability", "go_domdistiller")
EIGHT = (*FIVE, "boilerpipe", "justext", "goose3")
THIRTEEN = (*EIGHT, "newspaper4k", "inscriptis", "html-text", "bs4", "lxml-cleaner")
Votes = list[NDArray[np.bool_]]
"""Of each page: [text nodes, tools]."""


class Ensemble(NamedTuple):
    """Votes needed, of these tools."""

    votes: int
    members: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"em_{self.votes}_{len(self.members)}"


ENSEMBLES = [*(Ensemble(votes, FIVE) for votes in (2, 3, 4)), *(Ensemble(votes, EIGHT) for votes in (4, 6))]


def votes_of(members: Sequence[str], runs: Mapping[str, ToolRun], facts: Sequence[PageFacts]) -> Votes:
    """Whether each text node is in the text of each member that has texts: its words, letters and digits, in a row."""
    there = [runs[name].texts for name in members if name in runs and runs[name].texts]
    votes = []
    for place, page in enumerate(facts):
        texts = [as_words(of_tool[place]) for of_tool in there]
        table = [[leaf in text for text in texts] for leaf in map(as_words, page.leaves)]
        votes.append(np.array(table, bool).reshape(len(page.leaves), len(texts)))
    return votes


def as_words(text: str) -> str:
    """The words of a text, to be searched for in a row."""
    return f" {' '.join(words_of(text))} "


def combined(ensemble: Ensemble, runs: Mapping[str, ToolRun], facts: Sequence[PageFacts]) -> ToolRun:
    """The texts of an ensemble, without the members that did not run."""
    lacking = [name for name in ensemble.members if name not in runs or not runs[name].texts]
    if len(ensemble.members) - len(lacking) < ensemble.votes:
        return ToolRun(ensemble.name, note=f"too few members: without {', '.join(lacking)}")
    texts = [
        "".join(compress(page.leaves, votes.sum(1) >= ensemble.votes))
        for page, votes in zip(facts, votes_of(ensemble.members, runs, facts), strict=True)
    ]
    return ToolRun(ensemble.name, texts=texts, note=f"without {', '.join(lacking)}" if lacking else "")
