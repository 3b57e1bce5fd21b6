"""The published rules of web-corpus builders, each over one quality measure (`filters.quality.measures`).

- Gopher: Rae et al. 2021, arXiv:2112.11446, appendix A.1; limits of the median are from the users' notes and DOLMa.
- C4: Raffel et al. 2020, JMLR 21:140, section 2.2, with the lines that its cleaning keeps.
- FineWeb: Penedo et al. 2024, arXiv:2406.17557, section 3.6.
- DOLMa: Soldaini et al. 2024, arXiv:2402.00159, with the counting of its published taggers.
"""

from __future__ import annotations

from typing import Any

from filters.quality.names import MEANINGS, MEASURES
from filters.rules.kinds import RuleKind

_DUPLICATES = tuple(f"max_duplicate_{size}gram_share" for size in range(5, 11))
_TOPS = tuple(f"max_top_{size}gram_share" for size in range(2, 5))
# Family -> its rules: `min_` or `max_` and the measure; if the family has its own variant of the measure, it is used.
_RULES: dict[str, tuple[str, ...]] = {
    "gopher": (
        *("min_words", "max_words", "min_mean_word_chars", "max_mean_word_chars", "min_median_word_chars"),
        *("max_median_word_chars", "max_hashes_per_word", "max_ellipses_per_word", "max_bullet_line_share"),
        *("max_ellipsis_line_share", "min_alpha_word_share", "min_stop_words", "max_duplicate_paragraph_share"),
        *("max_duplicate_paragraph_char_share", "max_duplicate_line_share", "max_duplicate_line_char_share"),
        *_TOPS,
        *_DUPLICATES,
    ),
    "c4": ("lorem_ipsum", "curly_bracket", "min_sentences"),
    "fineweb": (
        *("min_punctuated_line_share", "max_short_line_share", "max_duplicate_line_char_share"),
        "max_newlines_per_word",
    ),
    "dolma": (
        *("min_words", "max_words", "min_median_word_chars", "max_median_word_chars", "max_symbol_word_share"),
        *("min_alpha_word_share", "min_required_words", "max_bullet_line_share", "max_ellipsis_line_share"),
        *("max_duplicate_line_share", "max_duplicate_line_char_share"),
        *_TOPS,
        *_DUPLICATES,
        *("max_unpunctuated_line_share", "max_repetitions"),
    ),
}
_MEASURES = {"c4_lorem_ipsum": "c4_lorem_ipsum_lines", "c4_curly_bracket": "c4_curly_bracket_lines"}  # exceptions
_SOURCES = {
    "gopher": "Gopher, arXiv:2112.11446",
    "c4": "C4, JMLR 21:140",
    "fineweb": "FineWeb, arXiv:2406.17557",
    "dolma": "DOLMa, arXiv:2402.00159",
}


def _kind(family: str, rule: str) -> RuleKind:
    measured = rule.removeprefix("min_").removeprefix("max_")
    own = _MEASURES.get(f"{family}_{rule}", f"{family}_{measured}")
    of = own if own in MEANINGS else measured
    position = MEASURES.index(of)  # computed once, not per page
    limits: dict[str, Any] = {"whole": not of.endswith(("_share", "_chars", "_per_word"))}
    if of.endswith("_share") and "top_" not in of:  # the pairs of "a a a a" have twice its characters
        limits = {"high": 1}
    elif of == "stop_words":
        limits = {"whole": True, "high": 8}
    return RuleKind(
        measure=lambda facts, rule: facts.quality(rule)[position],
        of=of,
        what=MEANINGS[of],
        source=_SOURCES[family],
        fields=frozenset({"text"}),
        op=">=" if rule.startswith("min_") else "<=",
        **limits,
    )


QUALITY_RULES = {f"{family}_{rule}": _kind(family, rule) for family, rules in _RULES.items() for rule in rules}
"""Rules by name, over the quality measures of the text that the rule or its ruleset names."""
