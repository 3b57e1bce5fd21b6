"""The choice of the ruleset `default`: `python -m tests.tools.choose_default docs`.

The goal is the highest F1 of article against the rest on wcxb, seven page types. Its sites are split in two halves by a
hash. On the first half, for m = 0, 1, 2, … optional rules, the best set of m is searched greedily: add the rule that
helps most, then change single thresholds, block definition or rules while that helps. Cross-validation within the first
half, with the search repeated in every fold, decides on m: the fewest rules whose F1 out of fold is within one standard
error (bootstrap) of the best, as Breiman et al. prune trees (1984). The second half is read once, for the report.

Articles of wcxb are long: F1 alone would drop every second page of a news collection. So a choice must also keep, of
the English pages of each of three sources of news and blogs, at least KEEPS of those that the rules below keep.

Every ruleset has the rules that wcxb cannot judge, as in the users' notes: `duplicate_share` (its sites have one page
each), `language` (all of it is English) and `url_kind`; and `min_tokens`, never below the 150 words that the built-in
detector needs.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from farmwatch.labels.evaluation_tables import Table, tables_of
from farmwatch.labels.evaluation_tables import report as evaluation_report
from farmwatch.labels.labelled_pages import LabelledPage, LabelledPages
from filters.extraction.blocks import Definition
from filters.rules.evaluation import LabelledVerdict, evaluate
from filters.rules.judgement import judge
from filters.rules.kinds import Rule
from filters.rules.ruleset import Ruleset, load_ruleset, shipped_rulesets
from filters.settings import MeasureSettings
from tests.tools.generated import document, renewed

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int_]
COMMAND = "python -m tests.tools.choose_default docs"
FOLDS, REPEATS, RESAMPLES, MOST_RULES = 8, 5, 2000, 8

GUARDED = ("aeb", "dragnet", "trafilatura_eval")
KEEPS = 0.9

_OF_NOTES = {kind for rule in load_ruleset("notes").rules for kind, _ in rule.patterns}
URL_KINDS = {
    kind: pattern for rule in load_ruleset("default").rules for kind, pattern in rule.patterns if kind not in _OF_NOTES
}
"""Kinds of URL that may be added to the users' five, as common names of paths.

Left out, because articles have them too: /p/ (Substack), /wiki/, /guide/, /features/.
"""

GOPHER_REPETITION = tuple(rule for rule in load_ruleset("gopher").rules if re.search("_(duplicate|top)_", rule.name))


@dataclass(frozen=True)
class Option:
    """One setting of a rule, or of a group of rules that are chosen together."""

    rules: tuple[Rule, ...]

    def __str__(self) -> str:
        first = self.rules[0]
        chars = f" of {first.block_chars}" if first.block_chars else ""
        more = f" and {len(self.rules) - 1} more" if len(self.rules) > 1 else ""
        shown = f"and {', '.join(first.threshold)}" if isinstance(first.threshold, list) else first.threshold
        return f"{first.name} {shown}{chars}{more}"


def options_of(name: str, *thresholds: float, block_chars: int = 0) -> list[Option]:
    return [Option((Rule(name=name, threshold=threshold, block_chars=block_chars),)) for threshold in thresholds]


def url_rule(kinds: Sequence[str]) -> Rule:
    """The rule that drops some of URL_KINDS."""
    return Rule(name="url_kind", threshold=list(kinds), patterns=tuple((kind, URL_KINDS[kind]) for kind in kinds))


CANDIDATES: dict[str, list[Option]] = {
    "link_code_share": options_of("link_code_share", 0.05, 0.1, 0.2),
    "longest_block": options_of("longest_block", 150, 250, 400, 600),
    "large_block_share": [
        option
        for chars in (80, 120, 200)
        for option in options_of("large_block_share", 0.4, 0.5, 0.6, 0.75, 0.85, block_chars=chars)
    ],
    "list_table_share": [
        option
        for chars in (100, 200)
        for option in options_of("list_table_share", 0.05, 0.1, 0.2, 0.3, block_chars=chars)
    ],
    "punctuated lines": options_of("fineweb_min_punctuated_line_share", 0.12, 0.3, 0.4, 0.5, 0.6, 0.7),
    "short lines": options_of("fineweb_max_short_line_share", 0.1, 0.2, 0.3, 0.45, 0.67),
    "newlines": options_of("fineweb_max_newlines_per_word", 0.03, 0.05, 0.08, 0.12, 0.3),
    "unpunctuated lines": options_of("dolma_max_unpunctuated_line_share", 0.3, 0.5, 0.7),
    "sentences": options_of("c4_min_sentences", 3, 5, 10, 15, 20),
    "words with a letter": options_of("gopher_min_alpha_word_share", 0.8, 0.9),
    "stop words": options_of("gopher_min_stop_words", 2, 5, 7, 8),
    "duplicate lines": options_of("fineweb_max_duplicate_line_char_share", 0.01, 0.05, 0.1),
    "repetition": [Option(GOPHER_REPETITION)],
    "kinds of URL": [
        Option((url_rule(kinds),)) for size in range(1, len(URL_KINDS) + 1) for kinds in combinations(URL_KINDS, size)
    ],
}
"""Group -> its possible settings; a ruleset has at most one per group. Written before the second half was read."""

LENGTHS = options_of("min_tokens", 150, 200, 250, 300, 400)
FIXED = ("extracted", "duplicate_share", "language", "url_kind")


@dataclass(frozen=True)
class Choice:
    """A candidate ruleset: block definition, number of words, and options by group."""

    blocks: Definition
    length: int  # index in LENGTHS
    chosen: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        names = [str(LENGTHS[self.length]), *(str(CANDIDATES[group][place]) for group, place in self.chosen)]
        return f"{self.blocks} blocks; {', '.join(names)}"


NOTHING_MORE = Choice(Definition.RUN, 1)
Guard = Callable[[Choice], bool]


class Pages:
    """Pages, and the pages that each option keeps: every choice is a conjunction of rows of flags."""

    def __init__(self, pages: Sequence[LabelledPage]) -> None:
        self.articles = np.array([page.label.page_type == "article" for page in pages])
        self._pages = pages
        notes = load_ruleset("notes")
        fixed = tuple(rule for rule in notes.rules if rule.name in FIXED)
        self._fixed = self._kept(Definition.PARAGRAPH, fixed)
        self._rows = {
            (blocks, group, place): self._kept(blocks, option.rules)
            for blocks in Definition
            for group, ways in {"min_tokens": LENGTHS, **CANDIDATES}.items()
            for place, option in enumerate(ways)
        }

    def kept(self, choice: Choice) -> Flags:
        kept = self._fixed & self._rows[choice.blocks, "min_tokens", choice.length]
        for group, place in choice.chosen:
            kept = kept & self._rows[choice.blocks, group, place]
        return kept

    def kept_by(self, ruleset: Ruleset) -> Flags:
        return np.array([judge(page.features, ruleset).verdict == "article" for page in self._pages])

    def _kept(self, blocks: Definition, rules: tuple[Rule, ...]) -> Flags:
        extracted = () if rules[0].name == "extracted" else (Rule(name="extracted", threshold="ok"),)
        return self.kept_by(Ruleset("candidate", "", blocks, extracted + rules))


def guard_of(pages: Sequence[LabelledPage]) -> Guard:
    """Whether a choice keeps enough of each of the sources that are mostly articles."""
    english = [page for page in pages if page.features.measures.get("language") == "en"]
    sources = [Pages([page for page in english if page.label.source == source]) for source in GUARDED]
    least = [KEEPS * source.kept(NOTHING_MORE).sum() for source in sources]
    return lambda choice: all(
        source.kept(choice).sum() >= needed for source, needed in zip(sources, least, strict=True)
    )


def f1(articles: Flags, kept: Flags) -> float:
    """2 tp / (2 tp + fp + fn)."""
    return 2 * float((articles & kept).sum()) / max(1, int(articles.sum() + kept.sum()))


def search(pages: Pages, guard: Guard, places: Places) -> list[Choice]:
    """The best choice with m optional rules, for m = 0 … MOST_RULES, on some of the pages."""

    def value(choice: Choice) -> float:
        score = f1(pages.articles[places], pages.kept(choice)[places])
        return score if guard(choice) else score - 1

    best = improved(NOTHING_MORE, value)
    found = [best]
    for _ in range(MOST_RULES):
        best = improved(max(larger(best), key=value), value)
        found.append(best)
    return found


def improved(choice: Choice, value: Callable[[Choice], float]) -> Choice:
    """Change one setting at a time, with the same number of rules, while that helps."""
    while True:
        best = max(moves(choice), key=value)
        if value(best) <= value(choice):
            return choice
        choice = best


def larger(choice: Choice) -> Iterator[Choice]:
    """Add one rule."""
    used = dict(choice.chosen)
    for group, ways in CANDIDATES.items():
        for place in range(len(ways)) if group not in used else ():
            yield replace(choice, chosen=tuple(sorted({**used, group: place}.items())))


def moves(choice: Choice) -> Iterator[Choice]:
    """Another block definition, number of words or threshold, or one rule replaced by another."""
    for blocks in Definition:
        yield replace(choice, blocks=blocks)
    for length in range(len(LENGTHS)):
        yield replace(choice, length=length)
    for group, _ in choice.chosen:
        yield from larger(replace(choice, chosen=tuple(pair for pair in choice.chosen if pair[0] != group)))


class Step(NamedTuple):
    """F1 out of fold of a number of optional rules, and its standard error."""

    f1: float
    error: float


def cross_validated(pages: Pages, guard: Guard, places: Places) -> list[Step]:
    """F1 out of fold for m = 0 … MOST_RULES optional rules, with the whole search repeated in every fold."""
    random = np.random.default_rng(0)
    kept = np.zeros((REPEATS, MOST_RULES + 1, len(places)), bool)
    for repeat in range(REPEATS):
        folds = random.permutation(len(places)) % FOLDS
        for fold in range(FOLDS):
            for m, choice in enumerate(search(pages, guard, places[folds != fold])):
                kept[repeat, m, folds == fold] = pages.kept(choice)[places[folds == fold]]
    articles = pages.articles[places]

    def mean_f1(m: int, sample: Places) -> float:
        return float(np.mean([f1(articles[sample], kept[repeat, m, sample]) for repeat in range(REPEATS)]))

    samples = [random.integers(0, len(places), len(places)) for _ in range(RESAMPLES // 10)]
    return [
        Step(mean_f1(m, np.arange(len(places))), float(np.std([mean_f1(m, sample) for sample in samples])))
        for m in range(MOST_RULES + 1)
    ]


def fewest(steps: Sequence[Step]) -> int:
    """The fewest rules within one standard error of the best number."""
    best = max(steps, key=lambda step: step.f1)
    return next(m for m, step in enumerate(steps) if step.f1 >= best.f1 - best.error)


def report(pages: Pages, places: Places, kept: Mapping[str, Flags]) -> Table:
    """F1, precision and recall with 95 % bootstrap intervals over pages."""
    random = np.random.default_rng(1)
    samples = [random.choice(places, len(places)) for _ in range(RESAMPLES)]
    rows = []
    for name, flags in kept.items():
        shown = []
        for divisor in (None, flags, pages.articles):
            values = [_ratio(pages.articles[s], flags[s], None if divisor is None else divisor[s]) for s in samples]
            value = _ratio(pages.articles[places], flags[places], None if divisor is None else divisor[places])
            low, high = np.quantile(values, [0.025, 0.975])
            shown.append(f"{value:.3f} ({low:.3f}-{high:.3f})")
        rows.append([name, *shown])
    title = f"The second half, {len(places)} pages, {pages.articles[places].sum()} of them articles"
    return Table(f"{title} (95% intervals, bootstrap)", ["ruleset", "F1", "precision", "recall"], rows)


def _ratio(articles: Flags, kept: Flags, divisor: Flags | None) -> float:
    if divisor is None:
        return f1(articles, kept)
    return float((articles & kept).sum() / max(1, int(divisor.sum())))


def first_half(site: str) -> bool:
    """The half of a site, which never changes."""
    return hashlib.sha256(site.encode()).digest()[0] % 2 == 0


def chosen(measured: Sequence[LabelledPage]) -> list[Table]:
    """The choice from all labelled pages: the search on the first half, and the report on the second."""
    wcxb = [page for page in measured if page.label.page_type]
    pages, guard = Pages(wcxb), guard_of(measured)
    half = np.array([first_half(page.features.site) for page in wcxb])
    first, second = np.flatnonzero(half), np.flatnonzero(~half)
    found = search(pages, guard, first)
    steps = cross_validated(pages, guard, first)
    m = fewest(steps)
    searched = [
        [
            f"{number}{', the choice' if number == m else ''}",
            f"{f1(pages.articles[first], pages.kept(choice)[first]):.3f}",
            f"{step.f1:.3f} ({step.error:.3f})",
            str(choice),
        ]
        for number, (choice, step) in enumerate(zip(found, steps, strict=True))
    ]
    title = f"The first half, {len(first)} pages, {pages.articles[first].sum()} of them articles"
    headings = ["optional rules", "F1", "F1 out of fold (standard error)", "best ruleset found"]
    notes = load_ruleset("notes")
    kept = {
        "every page with a text": pages.kept_by(replace(notes, rules=(notes.rules[0],))),
        **{name: pages.kept_by(load_ruleset(name)) for name in ("c4", "gopher", "dolma", "fineweb", "notes")},
        "notes with run blocks": pages.kept_by(replace(notes, blocks=Definition.RUN)),
        "the choice": pages.kept(found[m]),
        "default": pages.kept_by(load_ruleset("default")),
    }
    return [
        Table(title, headings, searched),
        report(pages, second, kept),
        left_out(pages, kept["the choice"]),
    ]


def left_out(pages: Pages, kept: Flags) -> Table:
    """Pages kept by the choice that the users' other rules would drop."""
    notes = load_ruleset("notes")
    rows = []
    for rule in notes.rules:
        if rule.name not in (*FIXED, "min_tokens"):
            dropped = kept & ~pages.kept_by(replace(notes, blocks=Definition.RUN, rules=(notes.rules[0], rule)))
            articles = int((dropped & pages.articles).sum())
            rows.append([f"{rule.name} {rule.threshold}", str(articles), str(int(dropped.sum()) - articles)])
    return Table("What the users' other rules, with run blocks, would drop of it", ["rule", "articles", "others"], rows)


def shipped(measured: Sequence[LabelledPage]) -> list[Table]:
    """The shipped rulesets on all labelled pages, each with its rules."""
    names = shipped_rulesets()
    rulesets = [load_ruleset(name) for name in names]
    evaluations = [
        evaluate(
            [
                LabelledVerdict(page.label.page_type, page.label.source, judge(page.features, ruleset))
                for page in measured
            ]
        )
        for ruleset in rulesets
    ]
    return tables_of(evaluation_report(names, rulesets, evaluations), details=True)


def main() -> None:
    """Print the choice and the report, and renew the sections of both pages of rules in the given folder."""
    root = Path(os.environ.get("FARMWATCH_TEST_DATA", Path(__file__).resolve().parents[3] / "shared"))
    labelled = LabelledPages(root / "data" / "pages")
    measured = list(labelled.measured(MeasureSettings(workers=2, time_limit_s=60)))
    if labelled.skipped:
        sys.exit("the labelled pages are damaged")
    found = chosen(measured)
    print(document(found))
    for docs in map(Path, sys.argv[1:]):
        for name, tables in (("explanation", found), ("reference", shipped(measured))):
            page = docs / name / "rules.md"
            page.write_text(renewed(page.read_text(encoding="utf-8"), COMMAND, document(tables)), encoding="utf-8")


if __name__ == "__main__":
    main()
