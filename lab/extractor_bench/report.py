"""The numbers of a bench, as its JSON file has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from itertools import combinations

import msgspec
import numpy as np
from numpy.typing import NDArray

from lab.extractor_bench.consequences import Consequences
from lab.extractor_bench.gold_errors import GoldError
from lab.extractor_bench.groups import QUARTILES, Groups
from lab.extractor_bench.learned_vote import LearnedVote
from lab.extractor_bench.metrics import Scores
from lab.extractor_bench.runs import ToolRun
from scoring.statistics.rounding import each_float

_PLACES = 4
Floats = NDArray[np.float64]
ByMetric = dict[str, float]


class ToolRow(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's numbers; none if it did not run, and `note` has the reason. Macro: the mean of sources."""

    name: str
    version: str
    note: str = ""
    cpu_ms: float | None = None  # mean of a page
    errors: dict[str, int] = {}
    mean: ByMetric = {}
    median: ByMetric = {}
    macro_mean: ByMetric = {}
    macro_median: ByMetric = {}
    quartiles: list[float] = []  # of ROUGE-LSum F1
    f1: dict[str, dict[str, float]] = {}  # grouping -> group -> mean of ROUGE-LSum F1
    consequences: Consequences | None = None


class Correlation(msgspec.Struct, frozen=True):
    """Of the tools' means of two metrics, each from bad to good; None if one of them is constant."""

    first: str
    second: str
    kendall: float | None
    spearman: float | None


class BenchReport(msgspec.Struct, frozen=True, kw_only=True):
    """All numbers of a bench."""

    command: str
    versions: dict[str, str]
    pages: int  # that the metrics are of
    skipped: int  # damaged, or there twice
    without_text: int  # no labelled main text
    set_aside: int  # see `gold_errors`
    groups: dict[str, dict[str, int]]  # grouping -> group -> pages
    complexity: dict[str, list[float]]  # source, "" = all -> quartiles
    tools: list[ToolRow]
    correlations: list[Correlation]
    learned_votes: list[LearnedVote]
    gold_errors: list[GoldError]

    def to_json(self) -> bytes:
        """Readable JSON, numbers to four places."""
        rounded = each_float(msgspec.to_builtins(self), lambda number: round(number, _PLACES))
        return msgspec.json.format(msgspec.json.encode(rounded), indent=1) + b"\n"


def tool_row(run: ToolRun, scores: Sequence[Scores], groups: Groups, found: Consequences | None) -> ToolRow:
    """The row of a tool with the scores of its texts."""
    if not scores:
        return ToolRow(name=run.name, version=run.version, note=run.note, errors=dict(run.errors))
    table = np.array(scores, np.float64)
    by_source = [table[rows] for rows in _rows(groups["source"]).values()]
    f1 = table[:, Scores._fields.index("f1")]
    return ToolRow(
        name=run.name,
        version=run.version,
        note=run.note,
        cpu_ms=run.cpu_ms,
        errors=dict(run.errors),
        mean=_named(table.mean(0)),
        median=_named(np.median(table, axis=0)),
        macro_mean=_named(np.mean([of.mean(0) for of in by_source], axis=0)),
        macro_median=_named(np.mean([np.median(of, axis=0) for of in by_source], axis=0)),
        quartiles=np.percentile(f1, QUARTILES).tolist(),
        f1={
            grouping: {name: float(f1[rows].mean()) for name, rows in _rows(of).items()}
            for grouping, of in groups.items()
        },
        consequences=found,
    )


def complexity_quartiles(complexity: Floats, sources: Sequence[str]) -> dict[str, list[float]]:
    """Source -> quartiles; "" = all."""
    rows = {"": np.arange(len(complexity)), **_rows(sources)}
    return {name: np.percentile(complexity[of], QUARTILES).tolist() for name, of in rows.items()}


def correlations(rows: Sequence[ToolRow]) -> list[Correlation]:
    """How alike each two metrics order the tools; none without SciPy."""
    known = [row for row in rows if row.mean]
    if len(known) < 2 or find_spec("scipy") is None:
        return []
    from scipy.stats import kendalltau, spearmanr

    means = {name: [(-1 if name == "distance" else 1) * row.mean[name] for row in known] for name in Scores._fields}
    found = []
    for first, second in combinations(means, 2):
        both = means[first], means[second]
        values = [float(of(*both).statistic) if all(map(np.ptp, both)) else None for of in (kendalltau, spearmanr)]
        found.append(Correlation(first, second, *values))
    return found


def group_sizes(groups: Groups) -> dict[str, dict[str, int]]:
    """Grouping -> group -> pages."""
    return {grouping: {name: len(rows) for name, rows in _rows(of).items()} for grouping, of in groups.items()}


def _rows(of: Sequence[str]) -> Mapping[str, NDArray[np.intp]]:
    names, places = np.unique(list(of), return_inverse=True)
    return {str(name): np.flatnonzero(places == number) for number, name in enumerate(names)}


def _named(numbers: Floats) -> ByMetric:
    return dict(zip(Scores._fields, numbers.tolist(), strict=True))
