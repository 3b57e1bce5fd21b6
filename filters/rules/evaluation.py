"""Evaluates a ruleset on labelled pages: kept pages, and drops by rule. Verdicts in, counts out.

The rules of a ruleset overlap, so a rule's drops are counted in three ways:

- drops: pages that fail the rule.
- marginal drops: pages that fail the rule and pass every rule before it. Their sum over all rules is the dropped pages.
- sole drops: pages that fail only this rule. Disabling the rule would keep exactly these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from filters.rules.judgement import UNKNOWN
from stream.schema.records import Verdict
from stream.schema.vocabulary import PageClass


class LabelledVerdict(NamedTuple):
    """A verdict on a labelled page; `page_type` is "" for a page without a label."""

    page_type: str
    source: str
    verdict: Verdict


class KeptShare(NamedTuple):
    """A number of pages, and the number that a ruleset keeps."""

    kept: int
    pages: int

    @property
    def share(self) -> float | None:
        return self.kept / self.pages if self.pages else None


class Pages(NamedTuple):
    """A number of pages by label: article, another label, or none."""

    articles: int
    others: int
    unlabelled: int


@dataclass(frozen=True, slots=True)
class RuleDrops:
    """The drops of one rule, see the module. `unknown`: pages with an unknown measure."""

    name: str
    disabled: bool
    drops: Pages
    marginal: Pages
    sole: Pages
    unknown: Pages


@dataclass(frozen=True, slots=True)
class Confusion:
    """The confusion matrix over the labelled pages; keeping an article is a true positive."""

    articles: KeptShare
    others: KeptShare

    @property
    def precision(self) -> float | None:
        kept = self.articles.kept + self.others.kept
        return self.articles.kept / kept if kept else None

    @property
    def recall(self) -> float | None:
        return self.articles.share

    @property
    def f1(self) -> float | None:
        total = self.articles.pages + self.articles.kept + self.others.kept
        return 2 * self.articles.kept / total if total else None


@dataclass(frozen=True, slots=True)
class RulesetEvaluation:
    """The evaluation of one ruleset; labels and sources sorted by name, rules in the ruleset's order."""

    whole: KeptShare
    confusion: Confusion
    labels: dict[str, KeptShare]  # by page_type, pages without one left out
    sources: dict[str, KeptShare]
    rules: list[RuleDrops]


def evaluate(judged: Sequence[LabelledVerdict]) -> RulesetEvaluation:
    """Count the verdicts of one ruleset, without its rules for pages that are no articles.

    Raises ValueError for verdicts of different rulesets.
    """
    if len({page.verdict.digest for page in judged}) > 1:
        raise ValueError("the verdicts are of different rulesets")
    labelled = [page for page in judged if page.page_type]
    rules = min((len(page.verdict.rules) for page in judged), default=0)  # an article has but the ruleset's first ones
    return RulesetEvaluation(
        whole=_kept(judged),
        confusion=Confusion(
            articles=_kept([page for page in labelled if page.page_type == PageClass.ARTICLE]),
            others=_kept([page for page in labelled if page.page_type != PageClass.ARTICLE]),
        ),
        labels=_kept_by(labelled, "page_type"),
        sources=_kept_by(judged, "source"),
        rules=[_drops(judged, number) for number in range(rules)],
    )


def _kept_by(judged: Sequence[LabelledVerdict], field: str) -> dict[str, KeptShare]:
    names = sorted({getattr(page, field) for page in judged})
    return {name: _kept([page for page in judged if getattr(page, field) == name]) for name in names}


def _kept(judged: Sequence[LabelledVerdict]) -> KeptShare:
    return KeptShare(sum(page.verdict.verdict == PageClass.ARTICLE for page in judged), len(judged))


def _drops(judged: Sequence[LabelledVerdict], number: int) -> RuleDrops:
    rule = judged[0].verdict.rules[number]
    disabled = rule.threshold is None
    failing = [page for page in judged if rule.name in page.verdict.failed]
    marginal = [page for page in failing if page.verdict.first_failed == rule.name]
    sole = [page for page in failing if len(page.verdict.failed) == 1]
    unknown = [page for page in judged if page.verdict.rules[number].outcome == UNKNOWN and not disabled]
    return RuleDrops(rule.name, disabled, *map(_pages, (failing, marginal, sole, unknown)))


def _pages(judged: Sequence[LabelledVerdict]) -> Pages:
    articles = sum(page.page_type == PageClass.ARTICLE for page in judged)
    unlabelled = sum(not page.page_type for page in judged)
    return Pages(articles, len(judged) - articles - unlabelled, unlabelled)
