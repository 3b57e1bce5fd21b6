"""The parts of a rule: its measure, its operator, and its valid thresholds."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import cached_property
from types import MappingProxyType
from typing import Any, NamedTuple

from filters.articles.model import ArticleModel, Logits
from filters.extraction.blocks import Definition, PageBlocks
from filters.quality.names import MEASURES, TextName
from filters.rules.url_patterns import UrlPattern
from filters.segments.names import OF_SITE, SegmentKind
from stream.schema.packed_features import quality_of, segments_of
from stream.schema.records import Features, Segments
from stream.text.toml import as_toml

Value = float | str | None


class Prepared(NamedTuple):
    """What is known of a page before it is judged: quicker to find for many pages at once."""

    logits: Mapping[str, Logits | None] = MappingProxyType({})  # by the digest of the model
    blocks: Mapping[Definition, PageBlocks] = MappingProxyType({})  # of all pages
    place: int = 0  # of the page among them


NOTHING = Prepared()
Threshold = float | str | list[str] | None

MOST = 10**9  # above any count, length or rate of a page; a larger threshold is a typo

PASSES: dict[str, Callable[[Any, Any], bool]] = {  # (value, threshold) -> whether the rule passes
    "==": operator.eq,
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
    "in": lambda value, allowed: value in allowed,
    "not in": lambda value, refused: value not in refused,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule of a ruleset. `threshold` None disables it; the other fields apply to some rules only."""

    name: str
    threshold: Threshold = None
    drop_unknown: bool = False
    block_chars: int = 0
    min_probability: float = 0.0
    patterns: tuple[tuple[str, UrlPattern], ...] = ()
    model: ArticleModel | None = None
    text: TextName | None = None  # None = the one that the ruleset reads
    any_pattern: UrlPattern | None = field(default=None, compare=False)  # of all patterns; None = not available


class Facts:
    """Features as input of rules, under one definition of a block. Caches values that several rules need."""

    def __init__(
        self,
        features: Features,
        definition: Definition,
        reads: TextName = TextName.MAIN,
        prepared: Prepared = NOTHING,
        kinds: Sequence[SegmentKind] = OF_SITE,
    ) -> None:
        self.features = features
        self.measures = features.measures
        self._definition = definition
        self._known_blocks = prepared.blocks.get(definition)
        self._reads = reads
        self._prepared = prepared
        self._logits: dict[str, Logits | None] = {}  # of models that `prepared` lacks
        self._kinds = kinds
        self._quality: dict[TextName, list[float | None]] = {}

    @property
    def _blocks(self) -> PageBlocks:
        if self._known_blocks is None:
            self._known_blocks = PageBlocks([self.features.blocks], self._definition)
        return self._known_blocks

    @property
    def longest_block(self) -> int | None:
        return self._blocks.longest[self._prepared.place]

    def large_block_share(self, least: int) -> float | None:
        """The share of characters in blocks of at least so many; None without characters."""
        return self._share(self._blocks.in_large[least])

    def small_listed_share(self, most: int) -> float | None:
        """The share of characters in list items and table cells of at most so many; None without characters."""
        return self._share(self._blocks.in_small_listed[most])

    def _share(self, chars: list[int]) -> float | None:
        place = self._prepared.place
        return chars[place] / self._blocks.chars[place] if self._blocks.chars[place] else None

    @cached_property
    def segments(self) -> list[Segments] | None:
        """The segments of the kinds that count, most words first; None for an older epoch."""
        every = segments_of(self.features)
        if every is None:
            return None
        counted = [of_kind for of_kind in every if of_kind.kind in self._kinds]
        return sorted(counted, key=lambda of_kind: -of_kind.words)

    def logits(self, model: ArticleModel) -> Logits | None:
        """The logit of each kind of page; None for a page without a text or a parsed structure."""
        digest = model.digest
        if digest in self._prepared.logits:
            return self._prepared.logits[digest]
        if digest not in self._logits:
            self._logits[digest] = model.logits(self.features)
        return self._logits[digest]

    def quality(self, rule: Rule) -> list[float | None]:
        """Quality measures of the rule's text in the order of MEASURES; None for what an older epoch lacks."""
        text = rule.text or self._reads
        if text not in self._quality:
            values = quality_of(self.features, text)
            if text == TextName.OWN and not values and not self.features.template_lines:
                values = quality_of(self.features, TextName.MAIN)
            self._quality[text] = [*values, *[None] * (len(MEASURES) - len(values))]
        return self._quality[text]


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


Check = tuple[str, Rule, Callable[[Facts, Rule], Value], str, Threshold, Callable[[Any, Any], bool], bool]
"""A rule prepared for judging: name, rule, measure, op, threshold, test function, whether unknown drops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleKind:
    """A rule's definition: `what` it measures, in a few words, and the `source` that published it.

    A number as threshold lies between `low` and `high`, which some page can pass; `whole` = an integer. A list of texts
    may be limited to `items`. `of` names the measure: two rules of one measure bound it from both sides.
    """

    measure: Callable[[Facts, Rule], Value]
    of: str
    op: str
    what: str
    source: str = ""
    threshold: type[Any] = float  # float, str, list or date; a date is a text such as 2022-11-30
    low: float = 0
    high: float = MOST
    whole: bool = False
    items: frozenset[str] = frozenset()
    fields: frozenset[str] = field(default_factory=frozenset)

    def check(self, rule: Rule) -> Check:
        drops = rule.drop_unknown and rule.threshold is not None
        return rule.name, rule, self.measure, self.op, rule.threshold, PASSES[self.op], drops

    @property
    def doc(self) -> str:
        return f"{self.what} ({self.source})" if self.source else self.what

    def refusal(self, threshold: Any) -> str:
        """The reason for refusing this threshold; "" if it is valid."""
        if self.threshold is str:
            expected, fits = '"ok"', threshold == "ok"
        elif self.threshold is list:
            expected = "a list of texts that is not empty"
            fits = isinstance(threshold, list) and threshold != [] and all(isinstance(item, str) for item in threshold)
            if fits and self.items and (unknown := sorted(set(threshold) - self.items)):
                return f"has {as_toml(unknown)}, not among the codes in docs/reference/languages.md"
        elif self.threshold is date:
            expected, fits = 'a day in quotes such as "2022-11-30"', isinstance(threshold, str) and _is_day(threshold)
        else:
            expected = f"a {'whole ' * self.whole}number from {self.low:g} to {self.high:,}"
            number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
            fits = number and self.low <= threshold <= self.high and not (self.whole and threshold % 1)
        return "" if fits else f"is {as_toml(threshold)}, not {expected}"

    def passes_all(self, threshold: Threshold) -> bool:
        """Whether every page with the measure passes, such as "at least 0"."""
        if not isinstance(threshold, int | float):
            return False
        return (self.op == ">=" and threshold <= self.low) or (self.op == "<=" and self.high <= threshold < MOST)
