"""An evaluation as tables and as JSON: shares in percent with their 95 % intervals and counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from filters.rules.evaluation import KeptShare, Pages, RuleDrops, RulesetEvaluation
from filters.rules.ruleset import Ruleset
from scoring.estimate.intervals import Z95, wilson
from stream.schema.vocabulary import PageClass


@dataclass(frozen=True, slots=True)
class Table:
    """One table; all cells are text."""

    title: str
    headings: list[str]
    rows: list[list[str]]


@dataclass(frozen=True, slots=True)
class RulesetReport:
    """A ruleset and its kept pages. `name` is unique in the report."""

    name: str
    digest: str
    evaluation: RulesetEvaluation

    def as_json(self) -> dict[str, Any]:
        """The evaluation under the stable names of `--json`."""
        evaluation, confusion = self.evaluation, self.evaluation.confusion
        return {
            "ruleset": self.name,
            "digest": self.digest,
            **_kept_json(evaluation.whole),
            "articles": _kept_json(confusion.articles),
            "others": _kept_json(confusion.others),
            **{name: getattr(confusion, name) for name in ("precision", "recall", "f1")},
            "page_types": {name: _kept_json(kept) for name, kept in evaluation.labels.items()},
            "sources": {name: _kept_json(kept) for name, kept in evaluation.sources.items()},
            "rules": [_rule_json(rule) for rule in evaluation.rules],
        }


def report(
    names: Sequence[str], rulesets: Sequence[Ruleset], evaluations: Sequence[RulesetEvaluation]
) -> list[RulesetReport]:
    """Evaluations under the names of their rulesets; two with one name have their arguments instead."""
    own = [ruleset.name for ruleset in rulesets]
    return [
        RulesetReport(ruleset.name if own.count(ruleset.name) == 1 else name, ruleset.digest, evaluation)
        for name, ruleset, evaluation in zip(names, rulesets, evaluations, strict=True)
    ]


def tables_of(report: Sequence[RulesetReport], *, details: bool) -> list[Table]:
    """A summary, pass rates by page type and source, and with `details` the rules of each ruleset."""
    whole = report[0].evaluation
    tables = [_summary(report)]
    if whole.labels:
        tables.append(_matrix("page type", report, [evaluated.evaluation.labels for evaluated in report]))
    tables.append(_matrix("source", report, [evaluated.evaluation.sources for evaluated in report]))
    if details:
        tables += [_rules(evaluated) for evaluated in report]
    return tables


def remarks(report: Sequence[RulesetReport]) -> list[str]:
    """Remarks on the limits of the labels."""
    evaluation = report[0].evaluation  # the labels are the same for every ruleset
    kinds = ", ".join(map(repr, evaluation.labels))
    said = [
        f"page_type {kind!r} counts as another kind of page: articles are '{PageClass.ARTICLE}', so written"
        for kind in evaluation.labels
        if kind != PageClass.ARTICLE and kind.strip().casefold() == PageClass.ARTICLE
    ]
    if not evaluation.labels:
        said.append("no page has a page_type: nothing can be said of precision and recall")
    elif not evaluation.confusion.articles.pages:
        said.append(
            f"no page_type is '{PageClass.ARTICLE}', there are {kinds}: nothing can be said of precision and recall"
        )
    elif not evaluation.confusion.others.pages:
        said.append(f"every page_type is '{PageClass.ARTICLE}': nothing can be said of precision")
    return said


def _summary(report: Sequence[RulesetReport]) -> Table:
    rows = []
    for evaluated in report:
        confusion = evaluated.evaluation.confusion
        both = confusion.articles.pages and confusion.others.pages  # otherwise keeping all pages is no merit
        rows.append(
            [
                evaluated.name,
                *(f"{k.kept} of {k.pages}" for k in (evaluated.evaluation.whole, confusion.articles, confusion.others)),
                _decimal(confusion.precision if both else None),
                _decimal(confusion.recall),
                _decimal(confusion.f1 if both else None),
            ]
        )
    headings = ["ruleset", "pages kept", "articles kept", "others kept", "precision", "recall", "F1"]
    return Table("Articles against the other pages with a page type", headings, rows)


def _matrix(what: str, report: Sequence[RulesetReport], columns: Sequence[dict[str, KeptShare]]) -> Table:
    rows = [[name, str(kept.pages), *(_percent(c[name]) for c in columns)] for name, kept in columns[0].items()]
    headings = [what, "pages", *(evaluated.name for evaluated in report)]
    return Table(f"Kept by {what}, percent (95% interval)", headings, rows)


def _rules(evaluated: RulesetReport) -> Table:
    rows = []
    for rule in evaluated.evaluation.rules:
        counts = (sum(rule.drops), sum(rule.marginal), sum(rule.sole), rule.sole.articles, rule.sole.others)
        shown = ["disabled", *"-----"] if rule.disabled else [str(count) for count in (*counts, sum(rule.unknown))]
        rows.append([rule.name, *shown])
    headings = ["rule", "drops", "marginal", "sole", "sole articles", "sole others", "n/a"]
    return Table(f"What the rules of {evaluated.name} drop", headings, rows)


def _percent(kept: KeptShare) -> str:
    if not kept.pages:
        return "-"
    share, low, high = wilson(kept.kept, kept.pages, Z95)
    return f"{share * 100:.0f} ({low * 100:.0f}-{high * 100:.0f})"


def _decimal(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _kept_json(kept: KeptShare) -> dict[str, float | None]:
    _, low, high = wilson(kept.kept, kept.pages, Z95) if kept.pages else (None, None, None)
    return {"kept": kept.kept, "pages": kept.pages, "low": low, "high": high}


def _rule_json(rule: RuleDrops) -> dict[str, Any]:
    counts: dict[str, Pages] = {name: getattr(rule, name) for name in ("drops", "marginal", "sole", "unknown")}
    pages = {name: {**of_kind._asdict(), "all": sum(of_kind)} for name, of_kind in counts.items()}
    return {"rule": rule.name, "disabled": rule.disabled, **pages}
