"""What a rule is made of: its measure, the operator by which a value passes, and the thresholds that are possible."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from filters.blocks import Definition, measured
from filters.quality_names import MEASURES
from stream.records import Features

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
    patterns: tuple[tuple[str, re.Pattern[str]], ...] = ()


class Facts:
    """Features as the rules see them, under one definition of a block; what several rules need is computed once."""

    def __init__(self, features: Features, definition: Definition, reads: str = "main") -> None:
        """Read `features`, and the quality measures of the text `reads`; nothing is computed yet."""
        self.features = features
        self.measures = features.measures
        self._definition = definition
        self._reads = reads

    @cached_property
    def blocks(self) -> list[tuple[int, int]]:
        """(kind, characters) of every block."""
        return measured(self.features.blocks, self._definition)

    @cached_property
    def chars(self) -> int:
        """Characters of all blocks."""
        return sum(chars for _, chars in self.blocks)

    @cached_property
    def quality(self) -> list[float | None]:
        """Quality measures in the order of MEASURES; those that an older epoch did not have are None."""
        values = self.features.quality.get(self._reads, [])
        missing = len(MEASURES) - len(values)
        return [*values, *[None] * missing] if missing > 0 else values


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleKind:
    """What a rule is: `what` is measured, in a few words, and the `source` that published the rule.

    A number as threshold lies from `low` to `high`, both possible, and is whole where `whole`; a list of texts is of
    `items`, where there are any. `of` names the measure: two rules of one measure bound it from both sides.
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

    @property
    def doc(self) -> str:
        """One line: what is measured, and its source in brackets."""
        return f"{self.what} ({self.source})" if self.source else self.what

    def refusal(self, threshold: object) -> str:
        """Why this cannot be a threshold of the rule; "" where it can."""
        if self.threshold is str:
            return "" if threshold == "ok" else f'is {threshold!r}, not "ok"'
        if self.threshold is list:
            return self._list_refusal(threshold)
        return number_refusal(threshold, self.low, self.high, whole=self.whole)

    def _list_refusal(self, threshold: object) -> str:
        if not isinstance(threshold, list) or not all(isinstance(item, str) for item in threshold):
            return f"is {threshold!r}, not a list of texts"
        if not threshold:
            return "is an empty list; leave it out to disable the rule"
        wrong = next((item for item in threshold if self.items and item not in self.items), None)
        if wrong is None:
            return ""
        near = next((code for code in (wrong.lower(), wrong[:2].lower()) if code in self.items), None)
        return f"has {wrong!r}, no code that the language identifier gives" + (
            f"; did you mean {near!r}?" if near else ""
        )


def number_refusal(value: object, low: float, high: float, *, whole: bool) -> str:
    """Why a value is no number from `low` to `high`; "" where it is one. NaN and infinities are none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(_as_float(value)):
        return f"is {value!r}, not a number"
    if not low <= value <= high:
        return f"is {value!r}, not from {low:g} to {high:g}"
    return f"is {value!r}, not a whole number" if whole and value != int(value) else ""


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        return MOST * 10.0
