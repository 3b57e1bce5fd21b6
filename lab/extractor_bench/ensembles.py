"""Ensembles: the text nodes of a page that at least k of n tools have in their text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lab.extractor_bench.gold_errors import words_of
from lab.extractor_bench.runs import ToolRun

FIVE = ("resiliparse", "bte", "trafilatura", "readability", "go_domdistiller")
EIGHT = (*FIVE, "boilerpipe", "justext", "goose3")
THIRTEEN = (*EIGHT, "newspaper4k", "inscriptis", "html-text", "bs4", "lxml-cleaner")
Bools = NDArray[np.bool_]


class Ensemble(NamedTuple):
    """Votes needed, of these tools."""

    votes: int
    members: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"em_{self.votes}_{len(self.members)}"

    def run(self, tools: Collection[str]) -> ToolRun:
        """A run that has no texts yet, and says which members are not among the tools; see `can_run`."""
        lacking = ", ".join(name for name in self.members if name not in tools)
        note = f"without {lacking}" if self.can_run(tools) else f"too few members: without {lacking}"
        return ToolRun(self.name, note=note if lacking else "")

    def can_run(self, tools: Collection[str]) -> bool:
        return len({*self.members}.intersection(tools)) >= self.votes

    def text(self, leaves: Sequence[str], votes: Mapping[str, Bools]) -> str:
        """The text nodes with enough votes of the members that there are."""
        total = np.sum([votes[name] for name in self.members if name in votes], axis=0)
        return "".join(compress(leaves, total >= self.votes))


ENSEMBLES = [*(Ensemble(votes, FIVE) for votes in (2, 3, 4)), *(Ensemble(votes, EIGHT) for votes in (4, 6))]


def nodes_in(texts: Sequence[str], leaves: Sequence[str]) -> list[Bools]:
    """For each text, whether it has each text node: its words, letters and digits, in a row."""
    wanted = [_as_words(leaf) for leaf in leaves]
    found = [{leaf: leaf in text for leaf in {*wanted}} for text in map(_as_words, texts)]
    return [np.array([has[leaf] for leaf in wanted], bool) for has in found]


def _as_words(text: str) -> str:
    return f" {' '.join(words_of(text))} "
