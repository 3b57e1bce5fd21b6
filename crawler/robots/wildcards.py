"""An index of the patterns with `*` of a robots.txt, of any number, by rare runs of characters of each.

A URL that a pattern matches contains each of its pieces, and so each run of characters of a piece. A pattern keeps some
of its runs of RUN characters (of a shorter piece, all of it): those that are the rarest in the file. It is filed under
the rarest one. A lookup cuts the URL into its runs, takes the patterns that are filed under them, and tries those whose
other kept runs the URL has too, the longest first. Of a real file it tries a few of thousands.

A file may be written so that many must be tried. No owner writes one, so a URL for which the work exceeds WORK_CAP is
forbidden: that bounds a lookup at about 1 ms, with any 500 KiB and any URL. Matching never backtracks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from operator import add

from crawler.robots.lines import RobotsRule
from crawler.robots.path_patterns import PathPattern

RUN = 3
_KEPT = 6  # runs of a pattern
_FEW = 24  # patterns that are tried without a look at their runs, if their characters times those of the URL
_SHORT = 500_000  # are so few
FILED_CAP = 3000  # patterns whose runs are looked up for a URL
WORK_CAP = 1_000_000  # of the patterns tried: the characters of the longest piece times those of the URL, and
_TRIED = 2000  # for each pattern,
_PIECE = 400  # and for each of its pieces

TOO_COSTLY = RobotsRule(0, allow=False, pattern="")
"""Stands for the deciding rule of a URL for which too many patterns would have to be tried."""

Starred = tuple[PathPattern, RobotsRule]


class WildcardIndex:
    """The starred patterns of one file. Immutable."""

    def __init__(self, starred: Collection[Starred]) -> None:
        """Takes time linear in the patterns' characters."""
        ranked = sorted(starred, key=lambda entry: (-entry[0].octets, not entry[1].allow))
        common = Counter(run for pattern, _ in ranked for run in _runs_of(pattern))
        same = {run: run for run in common}  # one string for equal ones
        self._patterns = ranked
        self._characters = sum(len(pattern.text) for pattern, _ in ranked)
        self._kept: list[tuple[str, ...]] = []  # runs of each pattern
        self._filed: dict[str, list[int]] = {}  # run -> ranks
        for rank, (pattern, _) in enumerate(ranked):
            runs = sorted(set(_runs_of(pattern)), key=lambda run: (common[run], run))[:_KEPT]
            self._kept.append(tuple(same[run] for run in runs))
            self._filed.setdefault(runs[0] if runs else "", []).append(rank)
        self._sizes = {len(run) for kept in self._kept for run in kept}

    def find(self, target: str, best: RobotsRule | None, octets: int) -> RobotsRule | None:
        """The longest matching rule; of two as long, the one that allows. `best` is that of the plain patterns.

        `octets` is the length of `best`, -1 without one.
        """
        ranks = self._candidates(target)
        if ranks is None:
            return TOO_COSTLY
        work = 0
        for rank in ranks:
            pattern, rule = self._patterns[rank]
            if pattern.octets < octets or (best and pattern.octets == octets and best.allow >= rule.allow):
                break
            if pattern.octets - pattern.text.count("*") > len(target) + 1:
                continue
            pieces = pattern.text.split("*")
            work += _TRIED + _PIECE * len(pieces) + max(map(len, pieces)) * len(target)
            if work > WORK_CAP:
                return TOO_COSTLY
            if pattern.matches(target):
                return rule
        return best

    def _candidates(self, target: str) -> Sequence[int] | None:
        """Ranks of the patterns that may match, in their order; None: too many are filed under the URL's runs."""
        if len(self._patterns) <= _FEW and self._characters * len(target) <= _SHORT:
            return range(len(self._patterns))
        runs = self._runs_in(target)
        files = [self._filed[run] for run in runs & self._filed.keys()]
        if sum(map(len, files)) > FILED_CAP:
            return None
        kept, has_all = self._kept, runs.issuperset
        return sorted([rank for file in files for rank in file if has_all(kept[rank])])

    def _runs_in(self, target: str) -> set[str]:
        """The runs of a URL, of the sizes that are kept, and "" for patterns without one."""
        runs, longer = {""}, list(target)
        for size in range(1, RUN + 1):
            if size in self._sizes:
                runs.update(longer)
            longer = list(map(add, longer, target[size:]))
        return runs


def _runs_of(pattern: PathPattern) -> Iterator[str]:
    """The runs of a pattern's pieces, without the slash at its start: each URL has one."""
    for piece in pattern.text.removeprefix("/").split("*"):
        for at in range(max(1, len(piece) - RUN + 1) if piece else 0):
            yield piece[at : at + RUN]
