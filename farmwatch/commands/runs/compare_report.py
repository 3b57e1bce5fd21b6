"""Prints a comparison: tables, differences in points, and the sample with reasons."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from farmwatch.runs.comparison_words import OTHER_WINDOWS, answer_of, notes_of, percent, points, remarks_of
from farmwatch.share.words import text_of
from farmwatch.terminal.messages import put, put_table, put_wrapped
from replay.compare.comparer import NO_THRESHOLD, condition, value_text
from replay.compare.comparison import SITE_KINDS, Comparison, FailedRule, Flip, ShareChange
from stream.schema.records import RuleOutcome
from stream.text.wording import counted, one_line

_SITES_SHOWN = 5  # of the changed sites; as many pages on which detectors disagree
_COUNTS = (  # titles, and the fields of a side
    ("sites", "sites"),
    ("classifiable sites", "classifiable"),
    ("  llm", "llm"),
    ("  human", "human"),
    ("  undecided", "undecided"),
    ("unclassifiable sites", "unclassifiable"),
    ("pages", "pages"),
    ("articles", "articles"),
    ("  scored", "scored"),
    ("    through segments", "through_segments"),
    ("  abstained", "abstained"),
    ("  unscored so far", "unscored"),
)
_KINDS = {"in": ("became an article", "became articles"), "out": ("was thrown out", "were thrown out")}


def show(compared: Comparison) -> None:
    """Print the comparison."""
    _head(compared)
    _changes(compared)
    _counts(compared)
    _sites(compared)
    _flags(compared)
    _rules(compared)
    _sample(compared)


def _head(compared: Comparison) -> None:
    put_wrapped(answer_of(compared), "  ")
    for name, side in (("A", compared.a), ("B", compared.b)):
        judged_by = f"ruleset {side.ruleset} {side.digest}, detector {side.detector or '-'}"
        text = f"{name}: run {side.run} ({side.state}), {judged_by}, site method {side.site_method or '-'}"
        put_wrapped(one_line(text), "   ")
    for note in notes_of(compared):
        put_wrapped(f"note: {one_line(note)}", "  ")


def _table(title: str, headings: Sequence[str], rows: Iterable[tuple[Any, ...]], less: Sequence[str] = ()) -> None:
    put("")
    put_table(headings, rows, title=title, less=less)


def _changes(compared: Comparison) -> None:
    _table(
        f"Shares, paired by site ({compared.resamples} resamples, seed {compared.seed})",
        ("share", "A", "B", "points", f"{compared.confidence:.0%} interval", "sites", "moved"),
        [(change.title, *_cells(compared, change), change.sites, change.moved) for change in compared.changes],
        less=("moved", "sites"),
    )
    if compared.other_windows:
        put_wrapped(f"* {OTHER_WINDOWS}: not caused by the rules alone, see the note on fetches above", "  ")
    for remark, titles in remarks_of((change.title, change) for change in compared.changes).items():
        put_wrapped(f"{', '.join(titles)}: {remark}", "  ")
    texts = {"A": text_of(compared.a.estimate.remarks), "B": text_of(compared.b.estimate.remarks)}
    if texts["A"] == texts["B"]:
        texts = {"A and B": texts["A"]}
    for name, text in texts.items():
        put_wrapped(f"{name}: {one_line(text)}", "  ")


def _cells(compared: Comparison, change: ShareChange) -> tuple[str, str, str, str]:
    if change.difference is None or change.low is None or change.high is None:
        return percent(change.a), percent(change.b), "-", "-"
    interval = f"{points(change.low)} to {points(change.high)}"
    mark = " *" if compared.other_windows else ""
    return percent(change.a), percent(change.b), points(change.difference) + mark, interval


def _counts(compared: Comparison) -> None:
    sides = compared.a, compared.b
    counts = [(title, name, *(getattr(side, name) for side in sides)) for title, name in _COUNTS]
    rows = [
        (title, a, b, f"{b - a:+d}" if b != a else "0")
        for title, name, a, b in counts
        if a or b or name != "through_segments"
    ]
    _table("What is counted", ("count", "A", "B", "B - A"), rows)
    pages = compared.pages
    _table(
        f"Verdicts of the {counted(pages.common, 'fetch')} that both judged"
        f" (only in A: {pages.only_in_a}, only in B: {pages.only_in_b})",
        ("fetches", "kept in B", "dropped in B"),
        [
            ("kept in A", pages.both_articles, pages.a_only_article),
            ("dropped in A", pages.b_only_article, pages.both_dropped),
        ],
    )
    if pages.other_class:
        put_wrapped(f"{pages.other_class} of the pages kept in both count by their segments in one of them only", "  ")
    if pages.other_text:
        put_wrapped(f"{pages.other_text} of the pages kept in both differ in the scored text", "  ")


def _sites(compared: Comparison) -> None:
    (both, a_only), (b_only, neither) = compared.sites.llm_table
    kinds = zip(SITE_KINDS, compared.sites.counts, strict=True)
    _table(
        "Verdicts of sites: rows are A, columns B",
        ("A \\ B", *SITE_KINDS),
        [(f"A: {kind}", *row) for kind, row in kinds if kind != "absent" or any(row)],
    )
    put_wrapped(
        f"classifiable in both: {both} llm in both, {a_only} in A only, {b_only} in B only, {neither} in neither", "  "
    )
    if shown := compared.changed_sites[:_SITES_SHOWN]:
        rest = len(shown) < compared.sites.changed
        more = f": {len(shown)} with most articles (--json has more)" if rest else ""
        put_wrapped(f"{counted(compared.sites.changed, 'site')} with another verdict{more}", "  ")
    for site in shown:
        verdicts = f"{site.verdict_a} -> {site.verdict_b}"
        put_wrapped(one_line(f"  {site.site}: {verdicts}, articles {site.articles_a} -> {site.articles_b}"), "    ")


def _flags(compared: Comparison) -> None:
    flags = compared.flags
    if flags is None:
        return
    put("")
    put_wrapped(
        f"{counted(flags.texts, 'text')} scored by both detectors: they agree on {flags.agreeing:,}"
        f" ({flags.both:,} flagged, {flags.neither:,} not) and disagree on {flags.disagreeing:,}"
        f" ({flags.a_only:,} flagged in A only, {flags.b_only:,} in B only)",
        "  ",
    )
    shown = flags.apart[:_SITES_SHOWN]
    if len(shown) < flags.disagreeing:
        put_wrapped(f"  the {len(shown)} most decisive disagreements (--json has more)", "  ")
    for page in shown:
        scores = f"scores {value_text(page.score_a)} and {value_text(page.score_b)}"
        put_wrapped(one_line(f"  {page.url}: flagged in {page.flagged_by} only, {scores}"), "    ")


def _rules(compared: Comparison) -> None:
    pages = compared.pages
    put("")
    put_wrapped(
        f"{counted(pages.b_only_article, 'fetch')} became articles, {pages.a_only_article} thrown out; by the rule that"
        " failed first (in brackets: the only one that failed)"
    )
    rows = [
        (
            rule.rule,
            rule.threshold_a or "not there",
            rule.threshold_b or "not there",
            f"{rule.let_in_first} ({rule.let_in_only})",
            f"{rule.thrown_first} ({rule.thrown_only})",
        )
        for rule in compared.rules
        if rule.let_in_any or rule.thrown_any
    ]
    if rows:
        put_table(("rule", "in A", "in B", "let in", "thrown out"), rows, title="Rules")
    idle = sum(
        not (rule.let_in_any or rule.thrown_any)
        and rule.threshold_a != rule.threshold_b
        and {rule.threshold_a, rule.threshold_b} != {"", NO_THRESHOLD}
        for rule in compared.rules
    )
    if idle:
        differ = "differs and flips" if idle == 1 else "differ and flip"
        put_wrapped(f"{counted(idle, 'other rule' if rows else 'rule')} {differ} nothing", "  ")
    for name, other, rules in (("A", "B", compared.only_in_a), ("B", "A", compared.only_in_b)):
        if rules:
            put_wrapped(f"in force in {name} and not in {other}: {', '.join(rules)}", "  ")


def _sample(compared: Comparison) -> None:
    if not compared.sample:
        return
    flips = sum(stratum.flips for stratum in compared.strata)
    put("")
    put_wrapped(f"{len(compared.sample)} of {counted(flips, 'flip')}, seed {compared.seed}; the kinds take turns:")
    for stratum in compared.strata:
        flipped = f"{stratum.flips} {_KINDS[stratum.kind][stratum.flips != 1]}"
        put_wrapped(f"  {flipped}, first failed {one_line(stratum.rule)}: {stratum.sampled} shown", "    ")
    for flip in compared.sample:
        put("")
        _flip(flip)


def _flip(flip: Flip) -> None:
    put_wrapped(f"{flip.kind:<3} {one_line(flip.url)}", "    ")
    for name, verdict, failed in (("A", flip.verdict_a, flip.failed_a), ("B", flip.verdict_b, flip.failed_b)):
        why = "; ".join(map(_reason, failed))
        put_wrapped(f"    {name}: {one_line(verdict)}{f': {why}' if why else ''}", "       ")


def _reason(rule: FailedRule) -> str:
    needed = condition(RuleOutcome(rule.name, rule.value, rule.op, rule.threshold, ""))
    value = "unknown" if rule.value is None else value_text(rule.value)
    return one_line(f"{rule.name} {value}, needs {needed}")
