"""What a rule is made of: its measure, the operator by which a value passes, and the thresholds that are possible."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from filters.extraction.blocks import Definition, columns
from filters.quality.names import MEASURES
from filters.rules.toml import as_toml
from filters.rules.url_patterns import UrlPattern
from stream.schema.records import Features

Value = float | str | None
Threshold = float | str | list[str] | None

MOST = 10**9
"""Above any count, length or rate that a page can have; a threshold beyond it is a slip of the pen."""

PASSES: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "in": lambda value, allowed: value in allowed,
    "not in": lambda value, refused: value not in refused,
}
"""(value, threshold) -> True when the rule passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule as a ruleset has it. `threshold` None disables it; the other fields belong to some rules only."""

    name: str
    threshold: Threshold = None
    drop_unknown: bool = False
    block_chars: int = 0
    min_probability: float = 0.0
    patterns: tuple[tuple[str, UrlPattern], ...] = ()
    any_pattern: UrlPattern | None = field(default=None, compare=False)  # found where one of them is; None = not known


class Facts:
    """Features as the rules see them, under one definition of a block; what several rules need is computed once."""

    def __init__(self, features: Features, definition: Definition, reads: str = "main") -> None:
        """Read `features`, and the quality measures of the text `reads`; nothing is computed yet."""
        self.features = features
        self.measures = features.measures
        self._definition = definition
        self._reads = reads

    @cached_property
    def _blocks(self) -> tuple[list[int], list[int]]:
        return columns(self.features.blocks, self._definition)

    @property
    def block_kinds(self) -> list[int]:
        """Kind of every block."""
        return self._blocks[0]

    @property
    def block_chars(self) -> list[int]:
        """Characters of every block."""
        return self._blocks[1]

    @cached_property
    def chars(self) -> int:
        """Characters of all blocks."""
        return sum(self.block_chars)

    @cached_property
    def quality(self) -> list[float | None]:
        """Quality measures in the order of MEASURES; those that an older epoch did not have are None."""
        values = self.features.quality.get(self._reads, [])
        missing = len(MEASURES) - len(values)
        return [*values, *[None] * missing] if missing > 0 else values


class Check(NamedTuple):
    """A rule made ready to be run on page after page."""

    name: str
    rule: Rule
    measure: Callable[[Facts, Rule], Value]
    op: str
    threshold: Threshold
    passes: Callable[[Any, Any], bool]
    drops_unknown: bool  # a page whose measure is unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleKind:
    """What a rule is: `what` is measured, in a few words, and the `source` that published the rule.

    A number as threshold lies from `low` to `high`, either of which some page can pass, and is whole where `whole`; a
    list of texts is of `items`, where there are any. `of` names the measure: two rules of one measure bound it from
    both sides.
    """

    measure: Callable[[Facts, Rule], Value]
    of: str
    op: str
    what: str
    source: str = ""
    threshold: type[Any] = float  # float, str or list
    low: float = 0
    high: float = MOST
    whole: bool = False
    items: frozenset[str] = frozenset()
    fields: frozenset[str] = field(default_factory=frozenset)

    def check(self, rule: Rule) -> Check:
        """A rule of this kind, made ready."""
        drops = rule.drop_unknown and rule.threshold is not None
        return Check(rule.name, rule, self.measure, self.op, rule.threshold, PASSES[self.op], drops)

    @property
    def doc(self) -> str:
        """One line: what is measured, and its source in brackets."""
        return f"{self.what} ({self.source})" if self.source else self.what

    def refusal(self, threshold: object) -> str:
        """Why this cannot be a threshold of the rule; "" where it can. Of a list, see `wrong_items` too."""
        if self.threshold is str:
            return "" if threshold == "ok" else f'is {as_toml(threshold)}, not "ok"'
        if self.threshold is list:
            return _list_refusal(threshold)
        return number_refusal(threshold, self.low, self.high, whole=self.whole)

    def wrong_items(self, threshold: list[str]) -> list[str]:
        """Messages about items that this rule's list cannot have."""
        wrong = [item for item in dict.fromkeys(threshold) if self.items and item not in self.items]
        return [
            f"has {as_toml(item)}, none of the codes in docs/reference/languages.md{self._near(item)}" for item in wrong
        ]

    def _near(self, item: str) -> str:
        near = next((code for code in (item.lower(), item[:2].lower()) if code in self.items), None)
        return f"; did you mean {near!r}?" if near else ""

    def passes_all(self, threshold: Threshold) -> bool:
        """Whether every page that has the measure passes: 0 is least, or 1 is most."""
        if not isinstance(threshold, int | float):
            return False
        return (self.op == ">=" and threshold <= self.low) or (self.op == "<=" and self.high <= threshold < MOST)


def number_refusal(value: object, low: float, high: float, *, whole: bool) -> str:
    """Why a value is no number from `low` to `high`; "" where it is one. NaN and infinities are none."""
    written = as_toml(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(_as_float(value)):
        meant = _number_meant(value)
        right = meant is not None and not number_refusal(meant, low, high, whole=whole)
        return f"is {written}, not a number" + (f": write {as_toml(meant)}" if right else "")
    if not low <= value <= high:
        if high < MOST:
            percent = f"; {value:g}% is {value / 100:g}" if high == 1 < value <= 100 else ""
            return f"is {written}, not from {low:g} to {high:g}{percent}"
        return f"is {written}, less than {low:g}" if value < low else f"is {written}, more than any page has"
    return f"is {written}, not a whole number" if whole and value != int(value) else ""


def _list_refusal(threshold: object) -> str:
    written = as_toml(threshold)
    if isinstance(threshold, str):
        return f"is {written}, not a list of texts: write [{written}]"
    if not isinstance(threshold, list) or not all(isinstance(item, str) for item in threshold):
        return f"is {written}, not a list of texts"
    return "" if threshold else "is an empty list; leave it out to disable the rule"


def _number_meant(value: object) -> float | None:
    """The number that was written as a text or as a list of one; None where there is none."""
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], int | float):
        return value[0]
    if not isinstance(value, str):
        return None
    try:
        return int(value) if value.isdecimal() else float(value)
    except ValueError:
        return None


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        return MOST * 10.0
