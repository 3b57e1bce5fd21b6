"""Compares the sites of two runs: verdict changes and share changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import xxhash
from numpy.typing import NDArray

from replay.compare.comparison import SITE_KINDS, ChangeKind, ChangeRemark, ShareChange, SiteCells, SiteFlip
from scoring.estimate.clusters import WeightedSites, agreement
from scoring.estimate.fit import Cell, Fit, KnownSites
from scoring.estimate.intervals import Interval
from scoring.estimate.paired_bootstrap import FEWEST_SITES, paired_change
from scoring.estimate.reviewed_share import Review, moves_by_review
from scoring.estimate.share_change import NO_CELL, PairedCells, reviewed_change, share_change
from scoring.rates.direct_share import DirectShare, ShareState, by_review, share_of_rows
from stream.schema.records import SiteState

_KIND = {kind: number for number, kind in enumerate(SITE_KINDS)}
_ABSENT = SiteState(id="", site="", verdict="absent")
_LLM, _, _UNDECIDED = range(3)  # the classifiable kinds
_COLUMNS = ("pages", "articles", "through_segments", "scored", "abstained", "flagged", "unscored")

TITLES = {
    "share": "share of LLM sites",
    "site_rate": "LLM sites of classifiable ones",
    "article_share": "articles of pages",
    "flagged_share": "flagged of scored articles",
}


class BootstrapSettings(NamedTuple):
    """Parameters of the intervals; `same`: both runs have the same inputs and results."""

    seed: int
    resamples: int
    confidence: float
    same: bool = False


DirectFit = tuple[DirectShare, Fit | None]


class DirectPair(NamedTuple):
    """The share of each run, and the sites of known truth and the review that they use."""

    a: DirectFit
    b: DirectFit
    human: PairedCells
    llm: PairedCells
    review: Review | None


def share_of_run(
    rows: Sequence[SiteState], confidence: float, review: Review | None, known: KnownSites | None
) -> DirectFit:
    """The share of these sites as the rate has it, and the fit of the direct estimate."""
    share, fit = share_of_rows(rows, known, confidence)
    if review is not None and fit is not None:
        share = by_review(share, fit, rows, review, confidence)
    return share, fit


class PairedSites:
    """The sites with a row in either run, as columns."""

    def __init__(self, a: dict[str, SiteState], b: dict[str, SiteState]) -> None:
        self._sites = sites = sorted(a.keys() | b.keys())
        self._rows = [(a.get(site, _ABSENT), b.get(site, _ABSENT)) for site in sites]
        self._kinds = [
            np.array([_KIND[pair[run].verdict] for pair in self._rows], np.int64).reshape(-1) for run in (0, 1)
        ]
        self._sums = [
            np.array([_counts(pair[run]) for pair in self._rows], np.float64).reshape(len(sites), len(_COLUMNS))
            for run in (0, 1)
        ]

    @cached_property
    def cells(self) -> SiteCells:
        size = len(SITE_KINDS)
        counts = np.bincount(self._kinds[0] * size + self._kinds[1], minlength=size * size)
        return SiteCells(counts=counts.reshape(size, size).tolist())

    def changed(self, most: int) -> list[SiteFlip]:
        """Sites with different verdicts, most articles first, then by name; at most `most`."""
        apart = np.flatnonzero(self._kinds[0] != self._kinds[1])
        column = _COLUMNS.index("articles")
        articles = np.maximum(self._sums[0][apart, column], self._sums[1][apart, column])
        chosen = apart[np.argsort(-articles, kind="stable")][:most].tolist()
        return [
            SiteFlip(
                site=self._sites[number],
                verdict_a=a.verdict,
                verdict_b=b.verdict,
                articles_a=a.articles,
                articles_b=b.articles,
                unscored_a=_counts(a)[-1],
                unscored_b=_counts(b)[-1],
            )
            for number in chosen
            for a, b in (self._rows[number],)
        ]

    def totals(self) -> list[dict[str, int]]:
        """Sums over all sites of A and of B, by _COLUMNS."""
        return [dict(zip(_COLUMNS, sums.sum(axis=0).astype(int).tolist(), strict=True)) for sums in self._sums]

    @cached_property
    def equal(self) -> bool:
        """Whether every site has the same verdict and the same counts in both runs."""
        return bool((self._kinds[0] == self._kinds[1]).all() and (self._sums[0] == self._sums[1]).all())

    def changes(self, bootstrap: BootstrapSettings, direct: DirectPair) -> list[ShareChange]:
        """The changes of all shares over all sites."""
        return [
            self._share_change(bootstrap, direct) if name == "share" else self._change(name, bootstrap)
            for name in TITLES
        ]

    def _share_change(self, bootstrap: BootstrapSettings, direct: DirectPair) -> ShareChange:
        """The change of the direct estimate; its difference is not known if a run has no share."""
        a, b = direct.a[0], direct.b[0]
        columns = [_COLUMNS.index("scored"), _COLUMNS.index("flagged")]
        cells_a, cells_b = (map(tuple, sums[:, columns].astype(int).tolist()) for sums in self._sums)
        pairs: Counter[tuple[Cell, Cell]] = Counter(zip(cells_a, cells_b, strict=True))
        pairs.pop((NO_CELL, NO_CELL), None)
        sites = pairs.total()
        moved = sum(number for (of_a, of_b), number in pairs.items() if of_a != of_b)
        parts = [round((a.share or 0) * a.scored_sites), a.scored_sites]
        parts += [round((b.share or 0) * b.scored_sites), b.scored_sites]
        ends: dict[str, float | None] = {"a": a.share, "b": b.share, "difference": None, "low": None, "high": None}
        if a.share is None or b.share is None:
            remarks = [
                ChangeRemark(ChangeKind.NO_SHARE, (side,), share=share.remarks)
                for side, share in (("A", a), ("B", b))
                if share.share is None
            ]
        elif a.method != b.method:
            remarks = [ChangeRemark(ChangeKind.OTHER_METHODS)]
        else:
            interval = Interval(0.0, 0.0, 0.0) if bootstrap.same else self._difference(pairs, bootstrap, direct)
            ends |= {"difference": b.share - a.share, "low": round(interval.low, 9), "high": round(interval.high, 9)}
            remarks = _remarks(parts, sites, moved, bootstrap.same)
        return _row("share", ends, parts, sites, moved, [*remarks, *self._unscored()])

    def _difference(self, pairs: PairedCells, bootstrap: BootstrapSettings, direct: DirectPair) -> Interval:
        """The interval of the difference of two shares of one method, in which whole domains and queries vary."""
        (a, fit_a), (b, fit_b) = direct.a, direct.b
        assert fit_a is not None and fit_b is not None and a.share is not None and b.share is not None
        scored = [pair for pair in self._rows if any(row.scored for row in pair)]
        rows = [of_a if of_a.scored else of_b for of_a, of_b in scored]
        sides = [[pair[run] for pair in scored] for run in (0, 1)]
        reviewed = direct.review if a.method == ShareState.REVIEWED else None
        confidence = bootstrap.confidence
        of_a, of_b = (
            fit.moves(side) if reviewed is None else _moves_by_review(fit, side, reviewed, confidence)
            for fit, side in zip((fit_a, fit_b), sides, strict=True)
        )
        effect = agreement(WeightedSites(rows, np.ones(len(rows)), len(rows)), of_b - of_a).effect
        if reviewed is None:
            return share_change(fit_a, fit_b, pairs, direct.human, direct.llm, confidence, effect)
        half = reviewed_change(of_b - of_a, min(a.labelled, b.labelled), confidence, effect)
        difference = b.share - a.share
        return Interval(difference, max(difference - half, -1.0), min(difference + half, 1.0))

    def _change(self, name: str, bootstrap: BootstrapSettings) -> ShareChange:
        if name in ("article_share", "flagged_share"):
            part, whole = ("articles", "pages") if name == "article_share" else ("flagged", "scored")
            columns = [_COLUMNS.index(part), _COLUMNS.index(whole)]
            halves = [of_run[:, columns] for of_run in self._sums]
        else:
            of_runs = [np.stack([kinds == _LLM, kinds <= _UNDECIDED], axis=1) for kinds in self._kinds]
            halves = [of_run.astype(np.float64) for of_run in of_runs]
        sums = np.concatenate(halves, axis=1)
        stream = xxhash.xxh3_64_intdigest(name.encode())
        rng = np.random.default_rng([bootstrap.seed, stream])
        resamples, confidence = bootstrap.resamples, bootstrap.confidence
        change = paired_change(sums, rng, resamples=resamples, confidence=confidence, same=bootstrap.same)
        parts = sums.sum(axis=0).astype(int).tolist()
        sites = int(((sums[:, 1] > 0) | (sums[:, 3] > 0)).sum())
        moved = int((sums[:, :2] != sums[:, 2:]).any(axis=1).sum())
        if change is None:
            shares = [part / whole if whole else None for part, whole in (parts[:2], parts[2:])]
            ends = dict(zip(("a", "b", "difference", "low", "high"), (*shares, None, None, None), strict=True))
        else:
            ends = change._asdict()
        remarks = _remarks(parts, sites, moved, bootstrap.same)
        if name != "article_share":
            remarks += self._unscored()
        return _row(name, ends, parts, sites, moved, remarks)

    def _unscored(self) -> list[ChangeRemark]:
        a, b = self.totals()
        counts = (a["unscored"], a["articles"], b["unscored"], b["articles"])
        return [ChangeRemark(ChangeKind.UNSCORED, counts=counts)] if counts[0] or counts[2] else []


def _counts(row: SiteState) -> tuple[int, ...]:
    unscored = max(0, row.articles - row.scored - row.abstained)
    return row.pages, row.articles, row.through_segments, row.scored, row.abstained, row.flagged, unscored


def _moves_by_review(fit: Fit, rows: Sequence[SiteState], review: Review, confidence: float) -> NDArray[np.float64]:
    """The effect of each row on the share; a row without a scored article has none."""
    is_scored = np.array([row.scored > 0 for row in rows])
    moved = moves_by_review(fit.posterior, [row for row in rows if row.scored], review, confidence)
    moves = np.zeros(len(rows))
    moves[is_scored] = 0.0 if moved is None else moved
    return moves


def _row(
    name: str, ends: Mapping[str, Any], parts: Sequence[int], sites: int, moved: int, remarks: list[ChangeRemark]
) -> ShareChange:
    names = ("a_part", "a_whole", "b_part", "b_whole")
    counts = dict(zip(names, parts, strict=True))
    return ShareChange(name=name, title=TITLES[name], **ends, **counts, sites=sites, moved=moved, remarks=remarks)


def _remarks(parts: Sequence[int], sites: int, moved: int, same: bool) -> list[ChangeRemark]:
    if empty := tuple(side for side, whole in (("A", parts[1]), ("B", parts[3])) if not whole):
        return [ChangeRemark(ChangeKind.NO_DENOMINATOR, empty)]
    if same:
        return [ChangeRemark(ChangeKind.SAME_RUN)]
    remarks = [ChangeRemark(ChangeKind.FEW_SITES, counts=(sites,))] if sites < FEWEST_SITES else []
    return remarks if moved else [*remarks, ChangeRemark(ChangeKind.NONE_MOVED)]
