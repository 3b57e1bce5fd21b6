"""The article rules: what each measures, and by which operator its value passes.

A rule only measures; `filters.judging` compares. A value of None is unknown: the outcome is n/a, and the ruleset's
policy decides.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from filters.blocks import Definition, Kind, measured
from stream.records import Features

RULES_VERSION = 1
"""Raised with every change of this module or of `judging` that may change a verdict; part of a ruleset's digest."""

Value = float | str | None
Threshold = float | str | list[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule as a ruleset has it. `threshold` None disables it; the other fields belong to some rules only."""

    name: str
    threshold: Threshold = None
    drop_unknown: bool = False
    block_chars: int = 0
    min_probability: float = 0.0
    patterns: tuple[tuple[str, re.Pattern[str]], ...] = ()


class Facts:
    """Features as the rules see them, under one definition of a block; what several rules need is computed once."""

    def __init__(self, features: Features, definition: Definition) -> None:
        """Read `features`; nothing is computed yet."""
        self.features = features
        self.measures = features.measures
        self._definition = definition

    @cached_property
    def blocks(self) -> list[tuple[int, int]]:
        """(kind, characters) of every block."""
        return measured(self.features.blocks, self._definition)

    @cached_property
    def chars(self) -> int:
        """Characters of all blocks."""
        return sum(chars for _, chars in self.blocks)


def _measure(name: str) -> Callable[[Facts, Rule], Value]:
    return lambda facts, _: facts.measures.get(name)


def _extracted(facts: Facts, _: Rule) -> Value:
    return facts.features.extract_error or "ok"


def _longest_block(facts: Facts, _: Rule) -> Value:
    return max((chars for _, chars in facts.blocks), default=None)


def _large_block_share(facts: Facts, rule: Rule) -> Value:
    large = rule.block_chars
    return sum(chars for _, chars in facts.blocks if chars >= large) / facts.chars if facts.chars else None


def _list_table_share(facts: Facts, rule: Rule) -> Value:
    if not facts.chars or facts.features.extract_path == "fallback":
        return None  # flat text: lists and tables were dissolved, so none is known
    small = rule.block_chars
    listed = sum(chars for kind, chars in facts.blocks if chars <= small and (kind == Kind.ITEM or kind == Kind.CELL))
    return listed / facts.chars


def _language(facts: Facts, rule: Rule) -> Value:
    probability = facts.measures.get("language_probability")
    if rule.min_probability and isinstance(probability, int | float) and probability < rule.min_probability:
        return None
    return facts.measures.get("language")


def _url_kind(facts: Facts, rule: Rule) -> Value:
    path = facts.measures.get("url_path")
    if not isinstance(path, str):
        return None
    return next((kind for kind, pattern in rule.patterns if pattern.search(path)), "other")


@dataclass(frozen=True, slots=True)
class RuleKind:
    """What a rule is: its measure, the operator by which a value passes, the type of its threshold, its own fields."""

    measure: Callable[[Facts, Rule], Value]
    op: str
    threshold: type[Any]  # float, str or list
    fields: frozenset[str] = field(default_factory=frozenset)


RULES: dict[str, RuleKind] = {
    "extracted": RuleKind(_extracted, "==", str),
    "min_tokens": RuleKind(_measure("tokens"), ">=", float),
    "link_code_share": RuleKind(_measure("link_code_share"), "<=", float),
    "longest_block": RuleKind(_longest_block, ">", float),
    "large_block_share": RuleKind(_large_block_share, ">=", float, frozenset({"block_chars"})),
    "list_table_share": RuleKind(_list_table_share, "<=", float, frozenset({"block_chars"})),
    "duplicate_share": RuleKind(_measure("duplicate_share"), "<=", float),
    "language": RuleKind(_language, "in", list, frozenset({"min_probability"})),
    "url_kind": RuleKind(_url_kind, "not in", list, frozenset({"patterns"})),
}
"""Every rule by its name."""

PASSES: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "in": lambda value, allowed: value in allowed,
    "not in": lambda value, refused: value not in refused,
}
"""(value, threshold) -> True when the rule passes."""
