"""The differences of two rulesets that affect verdicts. Rulesets without a difference have the same digest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from filters.rules.catalogue import RULES
from filters.rules.ruleset import Ruleset, rule_fields

_OTHERWISE = "otherwise"


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference; None = absent. `rule` "" = the ruleset itself. Each pattern is a difference of its own.

    A rule of the table `otherwise` is named as in otherwise.no_page, and the table itself as otherwise.
    """

    rule: str
    field: str
    a: Any
    b: Any


def differences(a: Ruleset, b: Ruleset) -> list[Difference]:
    """The differences, rules in the order of `a`, then of `b`. Empty if the digests are equal."""
    return [*_of_table("", a, b), *_of_table(_OTHERWISE, a.otherwise, b.otherwise)]


def _of_table(table: str, a: Ruleset | None, b: Ruleset | None) -> list[Difference]:
    ours, theirs = ({r.name: rule_fields(r) for r in of.rules} if of else {} for of in (a, b))
    changes = [*_values(table, "", a.fields if a else {}, b.fields if b else {})]
    for name in ours | theirs:
        rule = f"{table}.{name}" if table else name
        if name in ours and name in theirs:
            patterns = ours[name].pop("patterns", {}), theirs[name].pop("patterns", {})
            changes += [*_values(rule, "", ours[name], theirs[name]), *_values(rule, "patterns.", *patterns)]
            changes += _order(rule, "patterns order", *patterns)
        else:
            changes.append(Difference(rule, "rule", ours.get(name), theirs.get(name)))
    return [*changes, *_order(table, "order", ours, theirs)]


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
    name = difference.rule.removeprefix(f"{_OTHERWISE}.")
    return "disabled" if threshold is None else f"{RULES[name].op} {_text(threshold)}"


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
