"""The differences of two rulesets that affect verdicts. Rulesets without a difference have the same digest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from filters.rules.catalogue import RULES
from filters.rules.ruleset import Ruleset, rule_fields


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference; None = absent. `rule` "" = the ruleset itself. Each pattern is a difference of its own."""

    rule: str
    field: str
    a: Any
    b: Any


def differences(a: Ruleset, b: Ruleset) -> list[Difference]:
    """The differences, rules in the order of `a`, then of `b`. Empty if the digests are equal."""
    ours, theirs = ({rule.name: rule_fields(rule) for rule in ruleset.rules} for ruleset in (a, b))
    changes = [*_values("", "", a.fields, b.fields)]
    for name in ours | theirs:
        if name in ours and name in theirs:
            patterns = ours[name].pop("patterns", {}), theirs[name].pop("patterns", {})
            changes += [*_values(name, "", ours[name], theirs[name]), *_values(name, "patterns.", *patterns)]
            changes += _order(name, "patterns order", *patterns)
        else:
            changes.append(Difference(name, "rule", ours.get(name), theirs.get(name)))
    return [*changes, *_order("", "order", ours, theirs)]


def shown(difference: Difference) -> tuple[str, str, str, str]:
    """Rule, field, and both values as text: a threshold as the condition that passes, - for none."""
    a, b = (_cell(difference, value) for value in (difference.a, difference.b))
    return difference.rule or "(ruleset)", difference.field, a, b


def _cell(difference: Difference, value: Any) -> str:
    if value is None and difference.field != "threshold":
        return "-"
    if difference.field not in ("rule", "threshold"):
        return _text(value)
    threshold = value["threshold"] if difference.field == "rule" else value
    return "disabled" if threshold is None else f"{RULES[difference.rule].op} {_text(threshold)}"


def _text(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(value)
    return f"{value:.10g}" if isinstance(value, float) else str(value)


def _values(rule: str, prefix: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[Difference]:
    for key in {**ours, **theirs}:
        if ours.get(key) != theirs.get(key):
            yield Difference(rule, f"{prefix}{key}", ours.get(key), theirs.get(key))


def _order(rule: str, field: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[Difference]:
    a, b = [key for key in ours if key in theirs], [key for key in theirs if key in ours]
    if a != b:
        yield Difference(rule, field, a, b)
