"""The differences of two rulesets that affect verdicts. Rulesets without a difference have the same digest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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
    found = [*_values("", "", a.fields, b.fields)]
    for name in ours | theirs:
        if name in ours and name in theirs:
            patterns = ours[name].pop("patterns", {}), theirs[name].pop("patterns", {})
            found += [*_values(name, "", ours[name], theirs[name]), *_values(name, "patterns.", *patterns)]
            found += _order(name, "patterns order", *patterns)
        else:
            found.append(Difference(name, "rule", ours.get(name), theirs.get(name)))
    return [*found, *_order("", "order", ours, theirs)]


def _values(rule: str, prefix: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[Difference]:
    for key in {**ours, **theirs}:
        if ours.get(key) != theirs.get(key):
            yield Difference(rule, f"{prefix}{key}", ours.get(key), theirs.get(key))


def _order(rule: str, field: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[Difference]:
    a, b = [key for key in ours if key in theirs], [key for key in theirs if key in ours]
    if a != b:
        yield Difference(rule, field, a, b)
