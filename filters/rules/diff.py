"""In what two rulesets differ: pure comparison of what decides, so that no difference means one digest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from filters.rules.ruleset import Ruleset, rule_fields


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that two rulesets have otherwise; None where the one does not have it.

    `rule` "" is the ruleset as a whole, with `field` blocks, reads, scores or order (of the rules that both have). A
    rule that only one has is a difference of `field` "rule", with all its fields. Patterns are compared one by one:
    patterns.KIND, and patterns order.
    """

    rule: str
    field: str
    a: Any
    b: Any


def differences(a: Ruleset, b: Ruleset) -> list[Difference]:
    """What decides otherwise: the rulesets' fields, rules in the order of `a`, those of `b` alone, the order.

    Empty exactly where the digests are equal: names, descriptions, comments and 1 for 1.0 are no difference.
    """
    ours, theirs = ({rule.name: rule_fields(rule) for rule in ruleset.rules} for ruleset in (a, b))
    found = [*_values("", "", a.fields, b.fields)]
    for name in _either(ours, theirs):
        one, other = ours.get(name), theirs.get(name)
        if one is None or other is None:
            found.append(Difference(name, "rule", one, other))
        else:
            found.extend(_rule(name, one, other))
    found.extend(_order("", "order", ours, theirs))
    return found


def _rule(name: str, ours: dict[str, Any], theirs: dict[str, Any]) -> Iterator[Difference]:
    patterns_a, patterns_b = ours.pop("patterns", {}), theirs.pop("patterns", {})
    yield from _values(name, "", ours, theirs)
    yield from _values(name, "patterns.", patterns_a, patterns_b)
    yield from _order(name, "patterns order", patterns_a, patterns_b)


def _values(rule: str, prefix: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[Difference]:
    for key in _either(ours, theirs):
        if ours.get(key) != theirs.get(key):
            yield Difference(rule, f"{prefix}{key}", ours.get(key), theirs.get(key))


def _order(rule: str, field: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[Difference]:
    a, b = [key for key in ours if key in theirs], [key for key in theirs if key in ours]
    if a != b:
        yield Difference(rule, field, a, b)


def _either(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    return [*ours, *(key for key in theirs if key not in ours)]
