"""Every rule by its name: those on articles here, those of web-corpus builders in `filters.rules.published`.

A rule only measures; `filters.rules.judgement` compares. A value of None is unknown: the outcome is n/a, and the
ruleset's policy decides.
"""

from __future__ import annotations

from collections.abc import Callable

from filters.extraction.blocks import BlockKind
from filters.quality.language_codes import LANGUAGES
from filters.rules.kinds import Facts, Rule, RuleKind, Value
from filters.rules.published import QUALITY_RULES
from filters.rules.url_patterns import OTHER

RULES_VERSION = 2
"""Raised with every change of the rules' code, of `judgement`, or of `c4.clean` (which JUDGE runs where `scores`
is "c4") that may change a verdict or the text that is scored; part of a ruleset's digest."""

FLAT_PATHS = frozenset({"fallback", "plain"})
"""Extraction paths of flat text: lists and tables were dissolved, so none is known."""

_LISTED = (int(BlockKind.ITEM), int(BlockKind.CELL))
_SHARE = 1.0
_SIMHASH_BITS = 64


def _measure(name: str) -> Callable[[Facts, Rule], Value]:
    return lambda facts, _: facts.measures.get(name)


def _extracted(facts: Facts, _: Rule) -> Value:
    return facts.features.extract_error or "ok"


def _longest_block(facts: Facts, _: Rule) -> Value:
    return max(facts.block_chars, default=None)


def _large_block_share(facts: Facts, rule: Rule) -> Value:
    large = rule.block_chars
    return sum([chars for chars in facts.block_chars if chars >= large]) / facts.chars if facts.chars else None


def _list_table_share(facts: Facts, rule: Rule) -> Value:
    if not facts.chars or facts.features.extract_path in FLAT_PATHS:
        return None
    small = rule.block_chars
    blocks = zip(facts.block_kinds, facts.block_chars, strict=True)
    return sum([chars for kind, chars in blocks if chars <= small and kind in _LISTED]) / facts.chars


def _language(facts: Facts, rule: Rule) -> Value:
    probability = facts.measures.get("language_probability")
    if rule.min_probability and isinstance(probability, int | float) and probability < rule.min_probability:
        return None
    return facts.measures.get("language")


def _url_kind(facts: Facts, rule: Rule) -> Value:
    path = facts.measures.get("url_path")
    if not isinstance(path, str) or not path:
        return None
    if rule.any_pattern is not None and rule.any_pattern.find(path) is None:
        return OTHER
    return next((kind for kind, pattern in rule.patterns if pattern.find(path) is not None), OTHER)


ARTICLE_RULES: dict[str, RuleKind] = {
    "extracted": RuleKind(
        measure=_extracted,
        of="extracted",
        op="==",
        threshold=str,
        what="ok where a main text was found, else the reason why none was",
    ),
    "min_tokens": RuleKind(
        measure=_measure("tokens"),
        of="tokens",
        op=">=",
        whole=True,
        what="whitespace words",
        source="users' notes",
    ),
    "link_code_share": RuleKind(
        measure=_measure("link_code_share"),
        of="link_code_share",
        op="<=",
        high=_SHARE,
        what="characters in links or code / characters",
        source="users' notes",
    ),
    "longest_block": RuleKind(
        measure=_longest_block,
        of="longest_block",
        op=">",
        whole=True,
        what="characters of the longest block",
        source="users' notes",
    ),
    "large_block_share": RuleKind(
        measure=_large_block_share,
        of="large_block_share",
        op=">=",
        high=_SHARE,
        fields=frozenset({"block_chars"}),
        what="characters in blocks of at least block_chars / characters",
        source="users' notes",
    ),
    "list_table_share": RuleKind(
        measure=_list_table_share,
        of="list_table_share",
        op="<=",
        high=_SHARE,
        fields=frozenset({"block_chars"}),
        what="characters in list items and table cells of at most block_chars / characters",
        source="users' notes",
    ),
    "duplicate_share": RuleKind(
        measure=_measure("duplicate_share"),
        of="duplicate_share",
        op="<=",
        high=_SHARE,
        what="bytes in chunks that stand on earlier pages of the site / bytes",
        source="users' notes",
    ),
    "template_share": RuleKind(
        measure=_measure("template_share"),
        of="template_share",
        op="<=",
        high=_SHARE,
        what="sequences of 5 words that stand on earlier pages of the site / such sequences",
        source="Broder 1997",
    ),
    "simhash_distance": RuleKind(
        measure=_measure("simhash_distance"),
        of="simhash_distance",
        op=">=",
        high=_SIMHASH_BITS,
        whole=True,
        what="bits of 64 in which the page's simhash differs from the nearest of the site",
        source="Manku et al. 2007",
    ),
    "language": RuleKind(
        measure=_language,
        of="language",
        op="in",
        threshold=list,
        items=LANGUAGES,
        fields=frozenset({"min_probability"}),
        what="language of the text by an offline identifier, unknown below min_probability",
        source="users' notes",
    ),
    "url_kind": RuleKind(
        measure=_url_kind,
        of="url_kind",
        op="not in",
        threshold=list,
        fields=frozenset({"patterns"}),
        what="first of the patterns that is found in path and query of the URL, else other",
        source="users' notes",
    ),
}
"""Rules that tell an article from other pages."""

RULES: dict[str, RuleKind] = {**ARTICLE_RULES, **QUALITY_RULES}
"""Every rule by its name."""
