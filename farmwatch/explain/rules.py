"""The rules of an explanation: a table with value, condition and outcome, and the meaning of failed rules."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from farmwatch.explain.explanation import PageExplanation
from farmwatch.terminal.messages import put, put_table, put_wrapped
from filters.articles.inputs import MEANINGS
from filters.articles.model import Contribution
from filters.measure.epoch import feature_epoch
from filters.rules.catalogue import RULES
from filters.rules.kinds import Rule
from stream.schema.records import Features, RuleOutcome
from stream.schema.vocabulary import PageClass
from stream.text.wording import counted, one_line

_PROBABILITY = "article_probability"
REST = "rest"
_INPUTS_SHOWN = 6  # of an article model
_SHOWN_CHARS = 100  # of a passage, of a pattern, and of its match


class UrlMatch(NamedTuple):
    """The kind of a URL, the first pattern found in its path and query, and the match."""

    kind: str
    pattern: str
    found: str


def put_rules(page: PageExplanation) -> None:
    """Print the rules. Text of the page or the log is printed on one line, without control characters."""
    features, verdict = page.features, page.verdict
    rows, styles = [], []
    for rule in verdict.rules:
        outcome, style = _outcome(rule, drops=rule.name in verdict.failed)
        rows.append((rule.name, shown_value(rule), _condition(rule, page.rules.get(rule.name)), outcome))
        styles.append(style)
    put_table(("rule", "value", "passes when", "outcome"), rows, styles=styles)
    unknown = not features.extract_error and any(rule.value is None for rule in verdict.rules)
    if unknown and page.source == "log" and features.epoch != feature_epoch(page.settings):
        put_wrapped(
            "the page was measured with other settings or an earlier version: what that did not measure is unknown"
            " until `farmwatch replay --name NAME` measures the stored page again"
        )
    for rule_of_set in page.rules.values():
        for part in contributions(features, rule_of_set):
            value = "" if part.name == REST else f" {value_text(part.value)}"
            put_wrapped(f"{rule_of_set.name}: logit {part.logit:+.2f} by {part.name}{value} ({meaning_of(part)})", "  ")
        match = url_match(features, rule_of_set)
        if match is not None:
            pattern, piece = shortened(match.pattern), shortened(match.found)
            why = f'{match.kind}, because the URL matches {pattern}: "{piece}"'
            put_wrapped(one_line(f"{rule_of_set.name}: {why}"), "  ")
    if verdict.failed:
        put("")
        in_force = sum(rule.threshold is not None for rule in verdict.rules)
        put(f"{len(verdict.failed)} of {counted(in_force, 'rule')} in force failed:")
    for name in verdict.failed:
        put_wrapped(one_line(f"  {name}: {RULES[name].doc}" if name in RULES else f"  {name}"), "    ")


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


def _condition(outcome: RuleOutcome, rule: Rule | None) -> str:
    condition = "-" if outcome.threshold is None else f"{outcome.op} {value_text(outcome.threshold)}"
    fields = ", ".join(f"{name} {value_text(value)}" for name, value in (fields_of(rule) if rule else {}).items())
    return f"{condition} ({fields})" if fields else condition


def _outcome(rule: RuleOutcome, *, drops: bool) -> tuple[str, str]:
    """Text and style of an outcome; capitals mark what drops the page."""
    if rule.threshold is None:
        return "disabled", "dim"
    if rule.outcome == "n/a":
        return ("N/A, DROPS", "bold red") if drops else ("n/a", "dim")
    return ("FAIL", "bold red") if drops else (rule.outcome, "")


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
