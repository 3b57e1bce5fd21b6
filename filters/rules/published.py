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

# The name is FAMILY_min_MEASURE or FAMILY_max_MEASURE; if the family has its own variant of the measure, it is used.
_RULES = """
gopher_min_words gopher_max_words gopher_min_mean_word_chars gopher_max_mean_word_chars gopher_min_median_word_chars
gopher_max_median_word_chars gopher_max_hashes_per_word gopher_max_ellipses_per_word gopher_max_bullet_line_share
gopher_max_ellipsis_line_share gopher_min_alpha_word_share gopher_min_stop_words gopher_max_duplicate_paragraph_share
gopher_max_duplicate_paragraph_char_share gopher_max_duplicate_line_share gopher_max_duplicate_line_char_share
gopher_max_top_2gram_share gopher_max_top_3gram_share gopher_max_top_4gram_share gopher_max_duplicate_5gram_share
gopher_max_duplicate_6gram_share gopher_max_duplicate_7gram_share gopher_max_duplicate_8gram_share
gopher_max_duplicate_9gram_share gopher_max_duplicate_10gram_share
c4_lorem_ipsum c4_curly_bracket c4_min_sentences
fineweb_min_punctuated_line_share fineweb_max_short_line_share fineweb_max_duplicate_line_char_share
fineweb_max_newlines_per_word
dolma_min_words dolma_max_words dolma_min_median_word_chars dolma_max_median_word_chars dolma_max_symbol_word_share
dolma_min_alpha_word_share dolma_min_required_words dolma_max_bullet_line_share dolma_max_ellipsis_line_share
dolma_max_duplicate_line_share dolma_max_duplicate_line_char_share dolma_max_top_2gram_share dolma_max_top_3gram_share
dolma_max_top_4gram_share dolma_max_duplicate_5gram_share dolma_max_duplicate_6gram_share
dolma_max_duplicate_7gram_share dolma_max_duplicate_8gram_share dolma_max_duplicate_9gram_share
dolma_max_duplicate_10gram_share dolma_max_unpunctuated_line_share dolma_max_repetitions
"""
_MEASURES = {"c4_lorem_ipsum": "c4_lorem_ipsum_lines", "c4_curly_bracket": "c4_curly_bracket_lines"}  # exceptions
_LIMITS: dict[str, dict[str, Any]] = {"stop_words": {"whole": True, "high": 8}}
_SOURCES = {
    "gopher": "Gopher, arXiv:2112.11446",
    "c4": "C4, JMLR 21:140",
    "fineweb": "FineWeb, arXiv:2406.17557",
    "dolma": "DOLMa, arXiv:2402.00159",
}


def _kind(name: str) -> RuleKind:
    family, _, rest = name.partition("_")
    measured = rest.removeprefix("min_").removeprefix("max_")
    own = _MEASURES.get(name, f"{family}_{measured}")
    of = own if own in MEANINGS else measured
    position = MEASURES.index(of)  # computed once, not per page
    limits = {"op": ">=" if rest.startswith("min_") else "<=", **_LIMITS.get(of, _limits(of))}
    return RuleKind(
        measure=lambda facts, rule: facts.quality(rule)[position],
        of=of,
        what=MEANINGS[of],
        source=_SOURCES[family],
        fields=frozenset({"text"}),
        **limits,
    )


def _limits(of: str) -> dict[str, Any]:
    if of.endswith("_share") and "top_" not in of:  # the pairs of "a a a a" have twice its characters
        return {"high": 1}
    return {"whole": not of.endswith(("_share", "_chars", "_per_word"))}


QUALITY_RULES = {name: _kind(name) for name in _RULES.split()}
"""Rules by name, over the quality measures of the text that the rule or its ruleset names."""
