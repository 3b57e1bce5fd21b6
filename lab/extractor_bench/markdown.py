"""A bench as Markdown, and as a picture of F1 by tool."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from farmwatch.console.drawings import saved
from farmwatch.console.pictures import Strip, shares
from lab.extractor_bench.gold_errors import PRINTED, SET_ASIDE
from lab.extractor_bench.report import BenchReport, ToolRow
from scoring.statistics.shares import Share
from stream.text.wording import counted

_MEANS = ("precision", "recall", "f1", "words", "set_f1", "jaccard", "shingles", "distance")
_HEADINGS = {"f1": "F1", "words": "F1 of words", "set_f1": "F1 of sets", "distance": "edit distance"}
_NO_VOTE = "none: it needs scikit-learn (the extra `train`), two tools of the ensembles and 20 pages"
_LEARNED = ("measure-blocks", "measure-auto")
_MOST_ERRORS = 50  # pages that are named
Cells = Sequence[str]


def markdown(report: BenchReport) -> str:
    """The report."""
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    left_out = (
        f"{report.without_text} without a labelled main text, {report.skipped} damaged or there twice,"
        f" {report.set_aside} with words that the page lacks (below)"
    )
    lines = ["# Extractors beside labelled main texts", "", f"`{report.command}`", "", versions, ""]
    lines.append(f"{counted(report.pages, 'page')}. Left out: {left_out}.")
    if any(row.name in _LEARNED for row in report.tools):
        lines += ["", f"{' and '.join(_LEARNED)} flatter themselves on pages that their model learned from."]
    for title, headings, rows in _sections(report):
        lines += ["", f"## {title}", "", *table(headings, rows)]
    return "\n".join([*lines, ""])


def _sections(report: BenchReport) -> Iterator[tuple[str, Cells, Sequence[Cells]]]:
    """Title, headings and cells of each table."""
    ran = [row for row in report.tools if row.mean]
    yield ("Tools: means by ROUGE-LSum (precision, recall, F1) and others; CPU ms of a page", *tool_table(report.tools))
    medians = [(row.median["f1"], row.macro_mean["f1"], row.macro_median["f1"], row.median["distance"]) for row in ran]
    yield (
        "Median, and mean and median of sources",
        ["tool", "median F1", "mean of sources", "mean of their medians", "median edit distance"],
        [[row.name, *(f"{number:.3f}" for number in of)] for row, of in zip(ran, medians, strict=True)],
    )
    for grouping, sizes in report.groups.items():
        heads = ["tool", *(f"{name} ({size})" for name, size in sizes.items())]
        rows = [[row.name, *(f"{row.f1[grouping][name]:.3f}" for name in sizes)] for row in ran]
        yield f"F1 by {grouping}", heads, rows
    quartiles = [[name or "all", *(f"{of:.1f}" for of in row)] for name, row in report.complexity.items()]
    title = "Complexity: 100 × words of the main text / words of the page"
    yield title, ["source", "P25", "P50", "P75"], quartiles
    yield ("What it means for the share: kept by rulesets; flagged, with intervals over sites", *consequence_table(ran))
    pairs = [
        [c.first, c.second, *map(_number, (c.kendall, c.spearman))]
        for c in report.correlations
        if "f1" in (c.first, c.second)
    ]
    yield "Order of tools by two metrics", ["metric", "and", "Kendall", "Spearman"], pairs
    learned = [
        [f"{of.classifier}, {of.members} tools", str(of.nodes), f"{of.accuracy:.3f} ± {of.deviation:.4f}"]
        for of in report.learned_votes
    ] or [[_NO_VOTE, "", ""]]
    yield "Learned vote on balanced text nodes of other pages", ["classifier", "nodes", "accuracy"], learned
    causes = Counter((error.source, error.cause, error.set_aside) for error in report.gold_errors)
    counts = [[*of[:2], str(number), "yes" if of[2] else "no"] for of, number in sorted(causes.items())]
    title = f"Main texts with more than {PRINTED:.0%} words that the page lacks"
    yield title, ["source", "cause", "pages", f"set aside (above {SET_ASIDE:.0%})"], counts
    worst = sorted(report.gold_errors, key=lambda error: -error.error)[:_MOST_ERRORS]
    cells = [[e.source, e.id[:12], f"{e.error:.1%}", e.cause, " ".join(e.words[:3])] for e in worst]
    yield "The worst of them", ["source", "page", "E", "cause", "words"], cells


def tool_table(tools: Sequence[ToolRow]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells, one row for each tool."""
    rows = []
    for row in tools:
        errors = ", ".join(f"{name} {number}" for name, number in row.errors.items())
        numbers = [f"{row.mean[name]:.3f}" if row.mean else "" for name in _MEANS]
        cpu = "" if row.cpu_ms is None else f"{row.cpu_ms:.1f}"
        rows.append([row.name, row.version, *numbers, cpu, "; ".join(filter(None, (errors, row.note)))])
    return ["tool", "version", *(_HEADINGS.get(name, name) for name in _MEANS), "CPU", "errors and notes"], rows


def consequence_table(tools: Sequence[ToolRow]) -> tuple[list[str], list[list[str]]]:
    """Headings and cells: pages kept by ruleset, and flagged articles."""
    known = [(row.name, row.consequences) for row in tools if row.consequences]
    rulesets = list(known[0][1].kept) if known else []
    rows = [[name, *map(_percent, of.kept.values()), _interval(of.flagged)] for name, of in known]
    judged = next((of.total for of in known[0][1].kept.values()), 0) if known else 0
    return [f"tool ({judged} pages)", *rulesets, "flagged of `default`"], rows


def table(headings: Cells, rows: Sequence[Cells]) -> list[str]:
    """The lines of a table; text of pages is no markup."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return [f"| {' | '.join(row)} |" for row in (headings, ["---"] * len(headings), *cells)]


def distributions(report: BenchReport) -> str:
    """A picture: quartiles of F1 by tool, and its mean."""
    strips = [
        Strip(row.name, row.quartiles[1], row.quartiles[0], row.quartiles[2], "", row.mean["f1"])
        for row in report.tools
        if row.quartiles
    ]
    return saved(shares("F1 of ROUGE-LSum: median, quartiles, and mean as a line", strips))


def _percent(of: Share) -> str:
    return "-" if of.share is None else f"{of.share:.1%}"


def _interval(of: Share) -> str:
    return "-" if of.low is None or of.high is None else f"{_percent(of)} ({of.low:.1%} to {of.high:.1%}) of {of.total}"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
