"""The rules of an explanation: which passed, and why others failed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

from farmwatch.explain.explanation import PageExplanation
from farmwatch.terminal.messages import put_wrapped
from filters.articles.inputs import MEANINGS
from filters.articles.model import Contribution
from filters.measure.epoch import feature_epoch
from filters.rules.catalogue import RULES
from filters.rules.judgement import FAIL, UNKNOWN
from filters.rules.kinds import Rule
from stream.schema.records import Features, RuleOutcome, Verdict
from stream.schema.vocabulary import PageClass
from stream.text.wording import one_line

_PROBABILITY = "article_probability"
REST = "rest"
_INPUTS_SHOWN = 6  # of an article model
_SHOWN_CHARS = 100  # of a passage, of a pattern, and of its match


class UrlMatch(NamedTuple):
    """The kind of a URL, the first pattern found in its path and query, and the match."""

    kind: str
    pattern: str
    found: str


def put_rules(page: PageExplanation, *, everything: bool = False) -> None:
    """Print the rules on a line for each outcome, but failures, and with `everything` all, with value and bound."""
    features, verdict = page.features, page.verdict
    by_outcome: dict[str, dict[str, RuleOutcome]] = {"failed": {}}
    drops = dropping(page)
    for name, rule in named_outcomes(verdict):
        by_outcome.setdefault(_outcome(rule, drops=name in drops), {})[name] = rule
    for outcome, rules in by_outcome.items():
        if outcome == "failed" or everything:
            for name, rule in rules.items():
                meaning = f": {RULES[rule.name].doc}" if rule.name in RULES else ""
                said = f"{name} {shown_value(rule)}{_bound(rule, page.rules.get(name))}"
                put_wrapped(one_line(f"{outcome}: {said}{meaning}"), "  ")
                for line in _evidence(features, page.rules.get(name)):
                    put_wrapped(one_line(line), "    ")
        else:
            put_wrapped(f"{outcome}: {', '.join(rules)}", "  ")
    unknown = not features.extract_error and any(rule.value is None for rule in verdict.rules)
    if unknown and page.source == "log" and features.epoch != feature_epoch(page.settings):
        put_wrapped(
            "the page was measured with other settings or an earlier version: what that did not measure is unknown"
            " until `farmwatch replay --name NAME` measures the stored page again"
        )


def named_outcomes(verdict: Verdict) -> Iterator[tuple[str, RuleOutcome]]:
    """Each outcome with the name of its rule; those of the table `otherwise`, as in otherwise.no_page, are last.

    No ruleset is loaded in which a table does not begin with `extracted`, so the second begins where it comes again.
    """
    table = ""
    for place, outcome in enumerate(verdict.rules):
        if place and outcome.name == verdict.rules[0].name:
            table = "otherwise."
        yield f"{table}{outcome.name}", outcome


def dropping(page: PageExplanation) -> list[str]:
    """The names of the rules that the page fails.

    An unknown measure fails as its rule says. Without the ruleset, it fails in both tables if it does in one.
    """

    def drops(name: str, rule: RuleOutcome) -> bool:
        if rule.outcome != UNKNOWN:
            return rule.outcome == FAIL
        known = page.rules.get(name)
        is_dropping = known.drop_unknown if known else rule.name in page.verdict.failed
        return is_dropping and rule.threshold is not None

    return [name for name, rule in named_outcomes(page.verdict) if drops(name, rule)]


def _evidence(features: Features, rule: Rule | None) -> Iterator[str]:
    """The inputs of a rule's model, and the pattern that the URL matches."""
    if rule is None:
        return
    for part in contributions(features, rule):
        value = "" if part.name == REST else f" {value_text(part.value)}"
        yield f"  logit {part.logit:+.2f} by {part.name}{value} ({meaning_of(part)})"
    if (match := url_match(features, rule)) is not None:
        yield f'  {match.kind}, because the URL matches {shortened(match.pattern)}: "{shortened(match.found)}"'


def url_match(features: Features, rule: Rule) -> UrlMatch | None:
    """The pattern that decides the kind of the page's URL; None if no pattern matches or the URL is unknown."""
    path = features.measures.get("url_path")
    if not isinstance(path, str):
        return None
    for kind, pattern in rule.patterns:
        piece = pattern.find(path)
        if piece is not None:
            return UrlMatch(kind, pattern.text, piece)
    return None


def fields_of(rule: Rule) -> dict[str, float | str]:
    """The non-zero fields of a rule, besides its threshold, that affect its measure; a model as its digest."""
    named = sorted(RULES[rule.name].fields - {"patterns", "model"})
    model = {} if rule.model is None else {"model": rule.model.digest}
    return {**{name: value for name in named if (value := getattr(rule, name))}, **model}


def contributions(features: Features, rule: Rule) -> list[Contribution]:
    """The inputs that move the probability of an article the most, and the rest, so that the sum is its logit."""
    model = rule.model
    logits = model.logits(features) if rule.name == _PROBABILITY and model else None
    if model is None or logits is None:
        return []
    shown = [part for part in model.contributions(features)[:_INPUTS_SHOWN] if part.logit]
    rest = logits[model.kinds.index(PageClass.ARTICLE)] - sum(part.logit for part in shown)
    return [*shown, Contribution(REST, None, round(rest, 4))]


def meaning_of(part: Contribution) -> str:
    """The meaning of a contribution."""
    return MEANINGS.get(part.name, "the bias, and all other measures")


def shown_value(rule: RuleOutcome) -> str:
    """A value with enough digits to show its side of the threshold."""
    value, threshold = rule.value, rule.threshold
    if not isinstance(value, float | int) or not isinstance(threshold, float | int):
        return value_text(value)
    for digits in range(3, 18):
        text = _number(value, digits)
        if (float(text) > threshold) == (value > threshold) and (float(text) < threshold) == (value < threshold):
            return text
    return repr(value)


def value_text(value: Any) -> str:
    """A measure or threshold as text: whole counts, "unknown" for None."""
    if value is None:
        return "unknown"
    if isinstance(value, list):
        return ", ".join(value)
    return _number(value) if isinstance(value, float | int) else str(value)


def _bound(outcome: RuleOutcome, rule: Rule | None) -> str:
    fields = [f"{name} {value_text(value)}" for name, value in (fields_of(rule) if rule else {}).items()]
    bound = [] if outcome.threshold is None else [f"passes when {outcome.op} {value_text(outcome.threshold)}"]
    return f" ({', '.join([*bound, *fields])})" if bound or fields else ""


def _outcome(rule: RuleOutcome, *, drops: bool) -> str:
    if rule.threshold is None:
        return "not in force"
    if drops:
        return "failed"
    return "passed" if rule.outcome == "pass" else "unknown"


def _number(value: float, digits: int = 3) -> str:
    """A number without exponent: whole numbers whole, others with `digits` significant digits."""
    if not math.isfinite(value) or float(value).is_integer():
        return f"{value:.0f}"
    text = f"{value:.{max(1, digits - 1 - math.floor(math.log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".")


def shortened(text: str) -> str:
    """The start of a text on one line."""
    line = " ".join(one_line(text[: 4 * _SHOWN_CHARS]).split())
    return line if len(text) <= _SHOWN_CHARS else f"{line[:_SHOWN_CHARS]}..."
